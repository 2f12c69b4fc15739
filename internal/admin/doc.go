// Package admin holds what operators and their tools read from a server. So
// far: the texts of the four-letter words ([Words]), in the exact forms that
// monitoring software has parsed for fifteen years.
//
// The package decides nothing and keeps nothing but the trace mask, which has
// no effect and is kept because tools set it. It starts no goroutine. Read
// words.go first.
package admin
