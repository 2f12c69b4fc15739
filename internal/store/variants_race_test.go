//go:build race

package store

// The room has one goroutine: what it does at every place is looked at without
// the race detector, which makes each ten times as slow; here at some.
const (
	variants = 3
	apart    = 17 // places from one to the next; odd, so that every bit comes
)
