package server

import (
	"fmt"
	"strings"
	"testing"

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

// TestServerWhoseTreeDiffers: a follower whose tree was made wrong names the transaction, raises an alarm and tells its
// leader. It goes on, and so do the others.
func TestServerWhoseTreeDiffers(t *testing.T) {
	g := newTestEnsemble(t, 3, 0, false)
	book := new(lockedBuffer)
	g.book = book
	for _, m := range g.servers {
		g.start(m)
	}
	l := g.settled()
	c := l.connect()
	c.create("/x", "right")
	g.equal()
	f, epoch := g.follower(), l.ReplicaStatus().Epoch
	f.spoil("/x")
	n := 0
	eventually(t, "the difference is known", func() bool {
		n++
		c.create(fmt.Sprintf("/more%d", n), "y")
		return f.ReplicaStatus().Differs != "" && l.ReplicaStatus().Unfit != ""
	})
	if st := g.settled().ReplicaStatus(); st.Epoch != epoch || f.figure("digest_mismatches_count") == 0 || !f.serves(peerwire.Following) {
		t.Errorf("epoch %d after %d, %v mismatches", st.Epoch, epoch, f.figure("digest_mismatches_count"))
	}
	for _, want := range []string{"digests are not matching at zxid", "this tree differs from the leader's", "should not lead: its tree differs"} {
		if !strings.Contains(book.String(), want) {
			t.Errorf("no %q in the log", want)
		}
	}
}
