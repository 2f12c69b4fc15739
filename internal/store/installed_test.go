package store

import (
	"errors"
	"testing"

	"bellwether/wire"
)

// After an installed snapshot, the log can continue with the first transaction of a later
// epoch. Such a transaction may follow any zxid of an earlier epoch. So the logs alone do
// not show that transactions are missing which only the snapshot contains.

// installedBetween returns a disk with the transactions 1, 2 and 3, an installed snapshot, and the first
// two transactions of epoch 2.
func installedBetween(t *testing.T, zxid int64) *driver {
	t.Helper()
	d := newDriver(NewMem(1), dataOptions)
	must(t, d.start())
	must(t, d.commit(1, 2, 3))
	must(t, d.install(wire.Zxid(zxid)))
	must(t, d.commit(2<<32+1, 2<<32+2))
	return d
}

// TestReadLogOverInstalledSnapshot_ZOOKEEPER_2418: a learner is not given a history
// without the transactions that only the snapshot contains.
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

// TestBrokenSnapshotInTheMiddleIsRefused: if the installed snapshot is damaged, the
// server neither starts from an older one nor truncates to a zxid before it.
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

// TestReadLogBeginsTooLate_ZOOKEEPER_2418: a learner is also not given a log whose
// beginning was purged: the first transaction of a later epoch does not show what was
// before it.
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
