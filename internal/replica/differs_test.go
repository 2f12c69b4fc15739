package replica

import (
	"slices"
	"strings"
	"testing"

	"bellwether/internal/record"
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

// named counts the reports of a server about a difference.
func (s *server) named() (n int) {
	for _, o := range s.seen {
		if _, ok := o.(TreeDiffers); ok {
			n++
		}
	}
	return n
}

// TestDifferentTreeIsNamed: a follower whose tree differs says once after which transaction, and tells its leader. It
// stays, and its tree and the leader's stay as they are. In the next term it says so again.
func TestDifferentTreeIsNamed(t *testing.T) {
	h, s := differing(t, 3)
	l, epoch := h.leader(), h.leader().r.Status().Epoch
	s.spoil("/x")
	right := l.r.tree.LastZxid()
	h.work(5000)
	if !slices.Contains(s.seen, Observation(TreeDiffers{Zxid: right + 1})) || s.named() != 1 {
		t.Errorf("the first transaction after %v is not named once: %v", right, s.seen)
	}
	if st := s.r.Status(); !st.Serving || st.Epoch != epoch || !strings.Contains(st.Differs, "its tree differs") {
		t.Errorf("%+v", st)
	}
	if got := l.r.Status().Unfit; !strings.Contains(got, "its tree differs") {
		t.Errorf("the leader knows %q", got)
	}
	h.kill(l)
	h.run(2000)
	h.work(5000)
	if next := h.leader(); next == nil || next == s || s.named() != 2 {
		t.Errorf("%d reports under the next leader", s.named())
	}
}

// TestWrongLeaderSpoilsNobody: if the leader's tree is wrong, its followers say that theirs differ. They do not take over the
// wrong tree, whenever each of them notices it.
func TestWrongLeaderSpoilsNobody(t *testing.T) {
	for _, offset := range []int64{0, 20, 150} {
		h, _ := differing(t, 3)
		for i, s := range h.servers {
			s.tickAfter = int64(i) * offset
		}
		wrong := h.leader()
		wrong.spoil("/x")
		wrong.r.tree.Discard()
		h.work(20_000)
		for _, s := range h.servers {
			var r wire.DataResponse
			s.r.tree.GetData(anonymousReader{}, "/x", false, &r)
			if spoiled := r.Stat.Version == 77; spoiled != (s == wrong) || s != wrong && s.named() != 1 {
				t.Errorf("offset %d ms: server %d has version %d, and has reported %d differences", offset, s.id, r.Stat.Version, s.named())
			}
		}
	}
}
