//go:build !race

package store

// variants are the ways in which one crash is tried: nothing unsynced kept,
// everything kept (the process alone died), and chances.
const variants = 8
