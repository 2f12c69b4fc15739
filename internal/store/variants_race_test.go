//go:build race

package store

// The race detector makes each case ten times as slow and finds nothing here, because
// only one goroutine runs. So with the race detector only some places are tested.
const (
	variants = 3
	apart    = 17 // distance between tested places; it is odd, so that every bit of a byte is tested
)
