package store

import (
	"errors"
	"testing"

	"bellwether/wire"
)

// Behind an installed snapshot the log can go on with the first transaction of
// a later epoch, which follows whatever the log ended with before. What is
// only in the snapshot is missing in between all the same.

// installedBetween is a history of 1, 2, 3, an installed snapshot, and the
// first two transactions of epoch 2.
func installedBetween(t *testing.T, zxid int64) *driver {
	t.Helper()
	d := newDriver(NewMem(1), dataOptions)
	must(t, d.start())
	must(t, d.commit(1, 2, 3))
	must(t, d.install(wire.Zxid(zxid)))
	must(t, d.commit(2<<32+1, 2<<32+2))
	return d
}

// A learner is not given a history that skips what is in the snapshot alone.
func TestReadLogOverInstalledSnapshot_ZOOKEEPER_2418(t *testing.T) {
	for _, z := range []int64{1<<32 + 7, 2 << 32} {
		d := installedBetween(t, z)
		readFails(t, d.s, 1)
		readFails(t, d.s, 3)
		n := 0
		for _, err := range d.s.ReadLog(2<<32 + 1) {
			must(t, err)
			n++
		}
		if n != 1 {
			t.Errorf("%d transactions behind 2.1", n)
		}
		must(t, d.s.Close())
	}
}

// Where that snapshot is broken the server does not start from an older one,
// nor truncate over it.
func TestBrokenSnapshotInTheMiddleIsRefused(t *testing.T) {
	for _, z := range []int64{1<<32 + 7, 2 << 32} {
		d := installedBetween(t, z)
		name := snapshotName(wire.Zxid(z), Plain)
		b := get(t, d.m, name)
		b[300] ^= 8
		put(t, d.m, name, b)
		if err := d.s.Truncate(2<<32 + 1); err == nil {
			t.Errorf("%x: truncated over a broken snapshot", z)
		}
		must(t, d.s.Close())
		var damage *DamageError
		if _, err := loadInto(d.m, dataOptions, &recorded{}); !errors.As(err, &damage) {
			t.Errorf("%x: loaded over a broken snapshot: %v", z, err)
		}
	}
}

// Nor one whose beginning was purged: a first transaction of a later epoch
// proves nothing about what was before it.
func TestReadLogBeginsTooLate_ZOOKEEPER_2418(t *testing.T) {
	d := newDriver(NewMem(1), dataOptions)
	must(t, d.start())
	must(t, d.commit(1, 2, 3))
	must(t, d.roll())
	must(t, d.commit(2<<32+1, 2<<32+2))
	must(t, d.m.Remove("/data/version-2/log.1"))
	readFails(t, d.s, 1)
	must(t, d.s.Close())
}
