package server

import (
	"fmt"
	"testing"

	"bellwether/internal/config"
	"bellwether/internal/store"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// seededDisk returns a disk with an empty tree at a given zxid.
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

// TestCounterRolloverUnderLoad: the zxid counter of an epoch is used up under load. No
// write is lost or reordered, and the history continues after a restart (ZOOKEEPER-1277,
// 2789, 4883).
func TestCounterRolloverUnderLoad(t *testing.T) {
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

// TestCounterRolloverInAnEnsemble: in an ensemble the zxid counter of an epoch is used up
// repeatedly, with an election each time. Clients only notice a pause: their connections
// stay, each write is carried out once and in order, and an ephemeral survives.
func TestCounterRolloverInAnEnsemble(t *testing.T) {
	g := newTestEnsemble(t, 3, 0, false)
	g.hooks.CounterMax = 60
	g.change = func(c *config.Config) { c.Ensemble.KeepClients = true }
	for _, m := range g.servers {
		g.start(m)
	}
	g.settled()
	var clients []*client
	for _, m := range g.servers {
		c := m.connect()
		path := fmt.Sprintf("/c%d", m.id)
		c.create(path, "")
		c.must(wire.OpCreate, &wire.CreateRequest{Path: path + "/e", ACL: wire.OpenACL(), Flags: wire.FlagEphemeral}, nil)
		clients = append(clients, c)
	}
	const writes, together = 120, 8
	for n := 0; n < writes; n += together {
		for _, c := range clients {
			path := fmt.Sprintf("/c%d", c.session.Session>>56)
			for i := range together {
				c.send(wire.OpSetData, &wire.SetDataRequest{Path: path, Data: fmt.Append(nil, n+i), Version: int32(n + i)})
			}
		}
		for _, c := range clients {
			for range together {
				if h := c.reply(nil); h.Err != wire.OK {
					t.Fatalf("session %v: %v", c.session.Session, h.Err)
				}
			}
		}
	}
	l := g.settled()
	if epoch := l.ReplicaStatus().Epoch; epoch < 4 {
		t.Errorf("%d writes of 60 an epoch are in epoch %d", 3*writes, epoch)
	}
	g.equal()
	for _, c := range clients {
		path := fmt.Sprintf("/c%d", c.session.Session>>56)
		var r wire.StatResponse
		c.must(wire.OpExists, &wire.PathWatchRequest{Path: path + "/e"}, &r)
		if got := c.data(path); got != fmt.Sprint(writes-1) || r.Stat.EphemeralOwner != c.session.Session {
			t.Errorf("%s is %q, the ephemeral is of %x", path, got, r.Stat.EphemeralOwner)
		}
	}
	if e := l.figure("looking_count"); e < 4 {
		t.Errorf("%v elections", e)
	}
}
