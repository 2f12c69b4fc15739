package server

import (
	"fmt"
	"strings"
	"testing"

	"bellwether/internal/config"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/wire"
)

// spoil makes the tree of a running server wrong: it changes the data of a znode without a transaction.
func (m *testServer) spoil(path string) {
	m.ask(func(*loop) {
		m.Tree().Apply(&record.Txn{TxnHeader: record.TxnHeader{Type: wire.OpSetData, Zxid: 1},
			Body: &record.SetDataTxn{Path: path, Data: []byte("wrong"), Version: 77}})
	})
}

// awaitReplaced writes until the tree of the server was replaced and it serves in a role.
func (m *testServer) awaitReplaced(c *client, as peerwire.ServerState) {
	m.t.Helper()
	n := 0
	eventually(m.t, "the snapshot has replaced the tree", func() bool {
		n++
		c.create(fmt.Sprintf("/more%d", n), "y")
		return m.figure("tree_replaced_count") == 1 && m.serves(as)
	})
}

// confirmed waits until a quorum has confirmed each tree that was copied at the start. Such a copy counts nowhere before that.
func (g *testEnsemble) confirmed(book *logBook) {
	eventually(g.t, "all copied trees are confirmed", func() bool {
		return strings.Count(book.String(), " by SNAP(") == 2*strings.Count(book.String(), "the tree of this server is right") // both ends report a snapshot
	})
}

// newLoggedEnsemble starts three servers. Their log goes to the buffer.
func newLoggedEnsemble(t *testing.T) (*testEnsemble, *logBook) {
	g := newTestEnsemble(t, 3, 0, false)
	book := new(logBook)
	g.book = book
	for _, m := range g.servers {
		g.start(m)
	}
	return g, book
}

// TestServerWhoseTreeDiffers: a follower whose tree was made wrong names the transaction, gets a snapshot from its leader,
// and shows again what the others show. The figures for the alarm stay above 0. When its tree is made wrong again, its process ends
// with the reason, and the others go on.
func TestServerWhoseTreeDiffers(t *testing.T) {
	g, book := newLoggedEnsemble(t)
	l := g.settled()
	c := l.connect()
	c.create("/x", "right")
	g.equal()
	g.confirmed(book)
	f, epoch := g.follower(), l.ReplicaStatus().Epoch
	n := 0
	write := func() { n++; c.create(fmt.Sprintf("/more%d", n), "y") }

	f.spoil("/x")
	eventually(t, "the snapshot has replaced the tree", func() bool {
		write()
		return f.figure("tree_replaced_count") == 1 && f.serves(peerwire.Following)
	})
	g.equal()
	if got := f.connect().data("/x"); got != "right" {
		t.Errorf("/x is %q", got)
	}
	if st := g.settled().ReplicaStatus(); st.Epoch != epoch || f.figure("digest_mismatches_count") == 0 {
		t.Errorf("epoch %d after %d, %v mismatches", st.Epoch, epoch, f.figure("digest_mismatches_count"))
	}
	g.confirmed(book) // until then a difference may be the fault of the leader
	if got := f.Status().Differs; !strings.Contains(got, "a snapshot of its leader has replaced it") {
		t.Errorf("the status says %q", got)
	}

	f.spoil("/x")
	eventually(t, "the server whose tree is wrong again has ended", func() bool {
		write()
		select {
		case <-f.dead:
			return true
		default:
			return false
		}
	})
	if err := f.end(); err == nil || !strings.Contains(err.Error(), "wrong again") || !strings.Contains(err.Error(), "check its memory and its disk") {
		t.Errorf("it ended with %v", err)
	}
	f.down = true
	write()
	if st := g.settled().ReplicaStatus(); st.Epoch != epoch {
		t.Errorf("epoch %d after %d", st.Epoch, epoch)
	}
	for _, want := range []string{"digests are not matching at zxid", "this tree differs from the leader's", "should not lead: its tree differs",
		"; that server gets a snapshot", "has replaced the wrong tree of this server", "so that server stops"} {
		if !strings.Contains(book.String(), want) {
			t.Errorf("no %q in the log", want)
		}
	}
}

// TestLeaderWhoseTreeIsWrong: a leader whose tree was made wrong transfers leadership. Then its tree is replaced, and those of
// the others are not.
func TestLeaderWhoseTreeIsWrong(t *testing.T) {
	g, book := newLoggedEnsemble(t)
	old := g.settled()
	c := g.follower().connect()
	c.create("/x", "right")
	g.equal()
	g.confirmed(book)
	old.spoil("/x")
	old.awaitReplaced(c, peerwire.Following)
	if l := g.settled(); l == old {
		t.Error("the same server leads")
	}
	for _, m := range g.servers {
		if got := m.connect().data("/x"); got != "right" || m != old && m.figure("tree_replaced_count") > 0 {
			t.Errorf("server %d: /x is %q", m.id, got)
		}
	}
}

// TestObserverWhoseTreeDiffers: an observer that learns from a follower connects to the leader when its tree has been wrong for syncLimit, and
// gets a snapshot. Its master and the other observer keep their trees.
func TestObserverWhoseTreeDiffers(t *testing.T) {
	g := newObserverEnsemble(t, 2)
	port := g.change
	g.change = func(c *config.Config) {
		port(c)
		c.Ensemble.SyncLimit = 10
	}
	book := new(logBook)
	g.book = book
	for _, m := range g.servers {
		g.start(m)
	}
	g.mastersChosen()
	l, o := g.leader(), g.servers[3]
	c := l.connect()
	c.create("/x", "right")
	g.equal()
	o.spoil("/x")
	o.awaitReplaced(c, peerwire.Observing)
	g.equal()
	if got, master := o.connect().data("/x"), o.ReplicaStatus().Master; got != "right" || master != l.id {
		t.Errorf("/x is %q, the observer learns from server %d", got, master)
	}
	for _, m := range g.servers {
		if m != o && m.figure("tree_replaced_count") > 0 {
			t.Errorf("the tree of server %d was replaced", m.id)
		}
	}
	if want := fmt.Sprintf("only the leader, server %d, compares trees", l.id); !strings.Contains(book.String(), want) {
		t.Errorf("no %q in the log", want)
	}
}
