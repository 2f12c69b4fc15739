// Package admin builds what operators and their tools read from a server: the answers to the
// four-letter words ([Admin.Word]), in the exact form that monitoring software has parsed
// for fifteen years, and the commands of ZooKeeper's AdminServer ([Admin.Commands]), with
// their names, the order of their fields and their status codes.
//
// The package takes no decisions. Its only state is the trace mask, which has no effect and
// exists because tools set it, and the times at which the commands snapshot and restore were
// last allowed. It starts no goroutine. Read words.go first, then commands.go.
package admin
