//go:build !linux

package bench

// pollsMany reports whether one poller can wait for all of the lines.
func pollsMany([]*line) bool { return false }

// newPoller returns a poller for one line.
func newPoller(lines []*line) (poller, error) { return lone{lines[0]}, nil }
