//go:build !race

package store

const (
	// variants is the number of ways in which one crash is tried: all data without fsync is lost,
	// all is kept (only the process died), or each part is kept at random.
	variants = 8
	// apart is the distance between two tested places of damage.
	apart = 1
)
