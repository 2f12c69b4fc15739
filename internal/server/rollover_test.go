package server

import (
	"testing"

	"bellwether/internal/store"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// seededDisk has an empty tree at a certain zxid.
func seededDisk(t *testing.T, z wire.Zxid) *store.Mem {
	t.Helper()
	disk := store.NewMem(1)
	st, err := store.Open(disk, storeOptions(testConfig()))
	if err != nil {
		t.Fatal(err)
	}
	tr := tree.New(tree.Options{})
	if _, err := st.Load(tr.Loader()); err != nil {
		t.Fatal(err)
	}
	if _, err := st.InstallSnapshot(z, tr.Snapshot()); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	return disk
}

// The counter of an epoch ends under load: no write is lost or out of order,
// and the history is continued after a restart (ZOOKEEPER-1277, 2789, 4883).
func TestEpochEndsUnderLoad(t *testing.T) {
	o := diskOptions(seededDisk(t, 0xffffff80))
	s := start(t, o)
	const n = 400
	if acked := workload(s, n); acked != n {
		t.Fatalf("%d of %d writes answered", acked, n)
	}
	if z := s.Tree().LastZxid(); z.Epoch() != 1 || z.Counter() == 0 {
		t.Errorf("the last zxid is %v", z)
	}
	if err := s.end(); err != nil {
		t.Fatal(err)
	}
	again := start(t, o)
	survives(t, again, n, n)
}
