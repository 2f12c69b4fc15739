//go:build !race

package store

const (
	// variants are the ways in which one crash is tried: nothing unsynced kept,
	// everything kept (the process alone died), and chances.
	variants = 8
	// apart is how far a place of damage is from the next.
	apart = 1
)
