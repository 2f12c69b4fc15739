package server

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"bellwether/internal/config"
	"bellwether/internal/peerwire"
	"bellwether/internal/store"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// pipeline creates n znodes below a path, all in flight at once.
func (c *client) pipeline(path string, n int) {
	c.t.Helper()
	c.create(path, "")
	var all []byte
	for i := range n {
		c.xid++
		all = append(all, request(c.xid, wire.OpCreate, create(fmt.Sprintf("%s/%d", path, i), strings.Repeat("x", 50)))...)
	}
	c.write(all)
	for range n {
		if h := c.reply(&wire.PathResponse{}); h.Err != wire.OK {
			c.t.Fatal(h)
		}
	}
}

// TestServerThatWasAwayJoins: a server that was away gets what it lacks: from the
// leader's memory, from the leader's log, or as a snapshot. A server whose disk was wiped
// gets a snapshot.
func TestServerThatWasAwayJoins(t *testing.T) {
	for _, row := range []struct {
		name   string
		wiped  bool
		txns   int
		factor float64
		snaps  int64
	}{
		{"from memory", false, 20, 0.33, 0},
		{"from the log", false, 3 * zab.KeepMin, 0.33, 0},
		{"by a snapshot", false, 3 * zab.KeepMin, -1, 1},
		{"wiped", true, 20, 0.33, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := newTestEnsemble(t, 3, 0, false)
			g.change = func(c *config.Config) { c.Ensemble.SnapshotFactor = row.factor }
			for _, m := range g.servers {
				g.start(m)
			}
			l := g.settled()
			l.connect().pipeline("/before", 20)
			f := g.follower()
			g.equal()
			g.kill(f)
			snaps := l.member.stats.snaps.Value()
			l.connect().pipeline("/many", row.txns)
			if row.wiped {
				f.fs = store.NewMem(99)
			}
			g.start(f)
			g.settled()
			g.equal()
			if n := l.member.stats.snaps.Value() - snaps; n != row.snaps {
				t.Errorf("%d snapshots were sent", n)
			}
			c := f.connect()
			c.create("/more", "")
			c.data(fmt.Sprintf("/many/%d", row.txns-1))
			g.kill(f) // what it got is on its disk
			f.fs.(*store.Mem).Crash(store.LoseAll)
			g.start(f)
			g.settled()
			g.equal()
		})
	}
}

// TestEpochsWithoutHistory: a server that has lost its snapshots and logs, but kept its
// epochs, does not elect a leader together with a server that is behind: what it
// acknowledged would be lost.
func TestEpochsWithoutHistory(t *testing.T) {
	g := startTestEnsemble(t, 3, 0, false)
	l := g.leader()
	l.connect().create("/a", "")
	g.equal()
	behind := g.follower()
	g.kill(behind)
	l.connect().create("/b", "")
	g.equal()
	for _, m := range g.servers {
		if m != behind {
			g.kill(m)
		}
	}
	l.loseHistory(t)
	g.start(behind)
	g.start(l)
	eventually(t, "the one that lost its history votes no more", func() bool {
		all := l.Elections()
		return len(all) > 0 && all[len(all)-1].Barred
	})
	for _, m := range g.servers {
		if m.down {
			g.start(m)
		}
	}
	g.settled()
	l.connect().data("/b")
	g.equal()
}

// loseHistory removes the snapshots and logs of a server, but not its epochs.
func (m *testServer) loseHistory(t *testing.T) {
	t.Helper()
	dir := filepath.Join(m.dir, "version-2")
	files, err := m.fs.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasSuffix(f.Name, "Epoch") {
			continue
		}
		if err := m.fs.Remove(filepath.Join(dir, f.Name)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFormerLeaderIsTruncated: transactions that only a former leader has logged are
// truncated when it returns, or replaced by a snapshot if the others have continued.
func TestFormerLeaderIsTruncated(t *testing.T) {
	for _, wentOn := range []bool{false, true} {
		t.Run(fmt.Sprintf("went on=%v", wentOn), func(t *testing.T) { formerLeader(t, wentOn) })
	}
}

func formerLeader(t *testing.T, wentOn bool) {
	g := startTestEnsemble(t, 3, 0, true)
	old := g.leader()
	c := old.connect()
	c.create("/a", "")
	g.equal()
	for _, m := range g.servers {
		if m != old {
			g.kill(m)
		}
	}
	before := old.store.Synced()
	c.write(request(99, wire.OpCreate, create("/lost", "")))
	eventually(t, "the leader has logged it, or has given up", func() bool {
		return old.store.Synced() > before || !old.serves(peerwire.Leading)
	})
	logged := old.store.Synced() > before
	g.kill(old)
	for _, m := range g.servers {
		if m != old {
			g.start(m)
		}
	}
	l := g.settled()
	if wentOn {
		l.connect().create("/kept", "")
	}
	g.start(old)
	g.settled()
	g.equal()
	c = old.connect()
	c.data("/a")
	if wentOn {
		c.data("/kept")
	}
	if h := c.call(wire.OpExists, &wire.PathWatchRequest{Path: "/lost"}, &wire.StatResponse{}); h.Err != wire.ErrNoNode {
		t.Errorf("/lost: %v; it was logged: %v", h.Err, logged)
	}
	if !logged {
		t.Log("the leader gave up before it had logged anything")
	}
}

// TestFollowerWithFullDisk: a follower whose disk is full leaves the ensemble, which
// continues. It answers the reads of clients that accept that, and joins again when there
// is space.
func TestFollowerWithFullDisk(t *testing.T) {
	g := startTestEnsemble(t, 3, 0, false)
	l, f := g.leader(), g.follower()
	c := l.connect()
	c.create("/a", "")
	g.equal()
	f.fs.(*store.Mem).SetSpace(0)
	c.pipeline("/many", 200)
	eventually(t, "the follower is disabled", func() bool { st := f.ReplicaStatus(); return !st.Serving && st.Disabled != "" })
	c.create("/b", "")
	if st := f.Status(); st.Mode == "follower" || !st.ReadOnly || st.Reason == "" {
		t.Errorf("it is %+v", st)
	}
	r := f.connectReader()
	if h := r.call(wire.OpCreate, create("/c", ""), nil); h.Err != wire.ErrNotReadOnly {
		t.Errorf("a write is answered with %v", h.Err)
	}
	r.data("/a")
	f.fs.(*store.Mem).SetSpace(-1)
	r.closed()
	g.settled()
	g.equal()
	f.connect().data("/b")
	if st := f.Status(); st.ReadOnly || st.Reason != "" {
		t.Errorf("it is %+v", st)
	}
}

// TestLeaderWithFullDisk: a leader whose disk is full leaves the ensemble, and another leader
// is elected. The old one joins again when there is space.
func TestLeaderWithFullDisk(t *testing.T) {
	g := startTestEnsemble(t, 3, 0, false)
	l := g.leader()
	c := l.connect()
	c.create("/a", "")
	g.equal()
	l.fs.(*store.Mem).SetSpace(0)
	var all []byte
	for i := range 200 {
		all = append(all, request(int32(100+i), wire.OpCreate, create(fmt.Sprintf("/b%d", i), strings.Repeat("x", 100)))...)
	}
	c.write(all)
	eventually(t, "another one leads", func() bool { n := g.leader(); return n != nil && n != l })
	g.leader().connect().create("/c", "")
	l.fs.(*store.Mem).SetSpace(-1)
	g.settled()
	g.equal()
	l.connect().data("/c")
}

// TestPowerFailureOfAll: a power failure of all servers loses no acknowledged write.
func TestPowerFailureOfAll(t *testing.T) {
	g := startTestEnsemble(t, 3, 0, false)
	g.follower().connect().pipeline("/many", 100)
	for _, m := range g.servers {
		g.kill(m)
		m.fs.(*store.Mem).Crash(store.LoseAll)
	}
	for _, m := range g.servers {
		g.start(m)
	}
	g.settled()
	g.equal()
	g.follower().connect().data("/many/99")
}

// TestForeignDirectoryIsKeptOut: a member starts with the data directory of another
// ensemble that has had more epochs. It is not admitted, and the others continue
// undisturbed.
func TestForeignDirectoryIsKeptOut(t *testing.T) {
	other := startTestEnsemble(t, 3, 0, false)
	other.leader().connect().create("/theirs", "")
	for range 2 {
		l := other.leader()
		other.kill(l)
		other.settled()
		other.start(l)
		other.settled()
	}
	foreign := other.leader()
	other.kill(foreign)

	g := startTestEnsemble(t, 3, 0, false)
	l, f := g.leader(), g.follower()
	c := l.connect()
	c.create("/ours", "")
	g.equal()
	epoch, elections := l.ReplicaStatus().Epoch, len(l.Elections())
	g.kill(f)
	f.fs = foreign.fs
	g.start(f)
	eventually(t, "it has tried to join again and again", func() bool { return len(f.Elections()) > 4 })
	c.data("/ours")
	c.create("/more", "")
	if now := l.ReplicaStatus(); !now.Serving || now.Epoch != epoch || len(l.Elections()) != elections || f.ReplicaStatus().Serving {
		t.Errorf("the leader is at %+v after %d elections, the foreign one at %+v", now, len(l.Elections()), f.ReplicaStatus())
	}
}
