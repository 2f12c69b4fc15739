package store

import (
	"errors"
	"syscall"
	"testing"
)

// TestCutOfAFullLogIsDurable: after a full disk the refused end of the log is cut off with an fsync, before
// the store reports that the disk is full. Otherwise a crash could bring back what was refused. If this
// fsync fails, the store cannot go on.
func TestCutOfAFullLogIsDurable(t *testing.T) {
	d := newDriver(NewMem(1), Options{DataDir: "/data", PreallocBytes: -1})
	must(t, d.start())
	must(t, d.commit(1))
	d.m.SetSpace(0)
	d.m.Fail(OpSync, 1, syscall.EIO)
	var err error
	for err == nil {
		err = d.add(d.last + 1)
		if d.last%100 == 0 && err == nil {
			err = d.sync()
		}
	}
	var full *FullError
	if errors.As(err, &full) || !errors.Is(err, syscall.EIO) {
		t.Errorf("the fsync of the cut has failed, and the store says: %v", err)
	}
	if err := d.s.Sync(); !errors.Is(err, syscall.EIO) {
		t.Errorf("the store goes on: %v", err)
	}
}
