//go:build race

package store

// variants are the ways in which one crash is tried: nothing unsynced kept,
// everything kept (the process alone died), and chances, fewer of them
// where the race detector makes each ten times as slow.
const variants = 3
