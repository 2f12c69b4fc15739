//go:build unix && !linux

package store

// statOf describes the file that name leads to.
func statOf(name string) (FileInfo, error) { return statWithTimes(name) }
