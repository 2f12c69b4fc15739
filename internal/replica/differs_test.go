package replica

import (
	"slices"
	"strings"
	"testing"

	"bellwether/internal/election"
	"bellwether/internal/record"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// spoil makes the tree of a server wrong: it changes the data of a znode without a transaction.
func (s *server) spoil(path string) {
	s.r.tree.Apply(&record.Txn{TxnHeader: record.TxnHeader{Type: wire.OpSetData, Zxid: 1},
		Body: &record.SetDataTxn{Path: path, Data: []byte("wrong"), Version: 77}})
}

// differing starts servers with a znode /x, of which the last one leads, and returns the first one.
func differing(t *testing.T, voters int) (*cluster, *server) {
	h := newCluster(t, voters, true)
	h.run(500)
	_, c := h.connect(h.leader(), 0)
	h.create(h.leader(), c, 1, "/x")
	h.run(500)
	return h, h.servers[0]
}

// differences counts what a server has reported about differences, and what the others have.
func (h *cluster) differences(of *server) (first, again, others int) {
	for _, s := range h.servers {
		for _, o := range s.seen {
			switch e, ok := o.(TreeDiffers); {
			case !ok:
			case s != of:
				others++
			case e.Again:
				again++
			default:
				first++
			}
		}
	}
	return first, again, others
}

// snapshots counts the snapshots that a server has got from its leaders.
func (s *server) snapshots() (n int) {
	for _, o := range s.seen {
		if e, ok := o.(zab.ServesUnder); ok && e.How == zab.Snap {
			n++
		}
	}
	return n
}

// TestDifferentTreeIsReplaced: a follower whose tree differs says after which transaction, and gets
// a snapshot in the same epoch. Its tree is then that of the leader, and nothing more happens.
func TestDifferentTreeIsReplaced(t *testing.T) {
	h, s := differing(t, 3)
	epoch := h.leader().r.Status().Epoch
	s.spoil("/x")
	right := h.leader().r.tree.LastZxid()
	h.work(5000)
	if !slices.Contains(s.seen, Observation(TreeDiffers{Zxid: right + 1})) {
		t.Errorf("the first transaction after %v is not named", right)
	}
	z, want := h.leader().r.tree.Digest()
	if at, got := s.r.tree.Digest(); at != z || got != want {
		t.Error("the tree still differs")
	}
	first, again, others := h.differences(s)
	if st := s.r.Status(); first != 1 || again+others > 0 || s.snapshots() != 1 || st.Epoch != epoch || st.Differs != "" || s.r.member.log.Last() != z {
		t.Errorf("%d differences, %d again, %d of others, %d snapshots, %+v", first, again, others, s.snapshots(), st)
	}
}

// TestServerThatDiffersAgainStops: if the tree differs again after a snapshot, the server stops once it
// has heard that the others go on without it.
func TestServerThatDiffersAgainStops(t *testing.T) {
	h, s := differing(t, 3)
	s.spoil("/x")
	h.work(5000)
	s.spoil("/x")
	h.work(2 * retryMS)
	first, again, _ := h.differences(s)
	if first != 1 || again != 1 || !strings.Contains(s.stopped, "again after a snapshot") {
		t.Errorf("%d differences, %d again, stopped: %q", first, again, s.stopped)
	}
	if l := h.leader(); l == s || l.stopped != "" {
		t.Error("the leader is stopped")
	}
}

// TestServerThatIsNeededGoesOn: with one of three servers down, a server whose tree differs is needed for
// the quorum. It never stops, and a new epoch begins only as often as its pauses allow. When the third
// server is back, the tree is replaced.
func TestServerThatIsNeededGoesOn(t *testing.T) {
	h, s := differing(t, 3)
	h.kill(h.servers[1])
	h.run(1000)
	before := h.leader().r.Status().Epoch
	s.spoil("/x")
	h.work(600_000)
	if n := h.leader().r.Status().Epoch - before; s.stopped != "" || s.snapshots() > 0 || n < 2 || n > 8 {
		t.Fatalf("stopped: %q, %d snapshots, %d epochs", s.stopped, s.snapshots(), n)
	}
	h.start(h.servers[1])
	h.work(2 * 700_000)
	z, want := h.leader().r.tree.Digest()
	if at, got := s.r.tree.Digest(); at != z || got != want || s.stopped != "" || s.snapshots() != 1 {
		t.Errorf("the tree still differs: %v, %d snapshots, stopped: %q", got != want, s.snapshots(), s.stopped)
	}
}

// TestWrongLeaderIsCorrected: if all followers differ from the leader, they leave it at the same time, and
// the leader loses its quorum. No server stops, and in the end all trees are equal.
func TestWrongLeaderIsCorrected(t *testing.T) {
	h, _ := differing(t, 3)
	wrong := h.leader()
	wrong.spoil("/x")
	wrong.r.tree.Discard()
	h.work(100_000)
	if first, again, others := h.differences(wrong); first != 1 || again > 0 || others != 2 {
		t.Errorf("%d differences of the old leader, %d again, %d of the others", first, again, others)
	}
	z, want := h.leader().r.tree.Digest()
	for _, s := range h.servers {
		if at, got := s.r.tree.Digest(); at != z || got != want || s.stopped != "" {
			t.Errorf("server %d: different tree: %v, stopped: %q", s.id, got != want, s.stopped)
		}
	}
}

// TestSnapshotIsAskedForOnce: a term that serves ends the wish for a snapshot, so a later break of the
// connection costs none.
func TestSnapshotIsAskedForOnce(t *testing.T) {
	h, s := differing(t, 3)
	s.spoil("/x")
	h.work(5000)
	for id, l := range h.links {
		if l.from == s {
			h.breakLink(id)
		}
	}
	h.work(2000)
	all := s.r.Elections()
	if last := all[len(all)-1].Decision.Ending; last != election.Follows || s.snapshots() != 1 {
		t.Errorf("%v, %d snapshots", last, s.snapshots())
	}
}

// TestServerThatIsNeededDoesNotStop: the tree differs again after a snapshot, while one of three servers is down. The
// server leaves its leader, and goes on as soon as there is a new one.
func TestServerThatIsNeededDoesNotStop(t *testing.T) {
	h, s := differing(t, 3)
	s.spoil("/x")
	h.work(2 * retryMS)
	h.kill(h.servers[1])
	h.run(1000)
	s.spoil("/x")
	h.work(10 * retryMS)
	if _, again, _ := h.differences(s); again == 0 || s.stopped != "" || !s.r.Status().Serving {
		t.Errorf("%d differences again, stopped: %q", again, s.stopped)
	}
}

// TestSnapshotIsNotAskedForInTheNextTerm: in a new epoch the difference is not known any more, because the leader may be
// another one. A server that then joins that leader again gets no snapshot.
func TestSnapshotIsNotAskedForInTheNextTerm(t *testing.T) {
	h, s := differing(t, 3)
	h.kill(h.servers[1])
	h.run(1000)
	epoch := h.leader().r.Status().Epoch
	s.spoil("/x")
	h.connect(h.leader(), 0)
	h.run(5000)
	h.start(h.servers[1])
	h.run(1000)
	for id, l := range h.links {
		if l.from == s {
			h.breakLink(id)
		}
	}
	h.run(1000)
	st := s.r.Status()
	if first, _, _ := h.differences(s); first != 1 || st.Epoch == epoch || !st.Serving || s.snapshots() > 0 {
		t.Errorf("%d differences, %d snapshots, %+v", first, s.snapshots(), st)
	}
}
