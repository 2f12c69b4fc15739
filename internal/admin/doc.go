// Package admin builds the texts that operators and their tools read from a server: the
// answers to the four-letter words ([Words]), in the exact form that monitoring software
// has parsed for fifteen years.
//
// The package takes no decisions. Its only state is the trace mask, which has no effect
// and exists because tools set it. It starts no goroutine. Read words.go first.
package admin
