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

// TestServerWhoseTreeDiffers: a follower whose tree was made wrong names the transaction, gets a snapshot from
// its leader, and shows again what the others show. Its figure for the alarm stays above 0. When its tree is
// made wrong again, its process ends with the reason, and the others go on.
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
	n := 0
	write := func() { n++; c.create(fmt.Sprintf("/more%d", n), "y") }

	f.spoil("/x")
	eventually(t, "the snapshot has replaced the tree", func() bool {
		write()
		st := f.ReplicaStatus()
		differs, _ := f.Tree().DigestMismatches()
		return st.Serving && strings.Contains(book.String(), "by SNAP(") && differs == 0 && f.serves(peerwire.Following) && f.stats.mismatches.Load() > 0
	})
	g.equal()
	if got := f.connect().data("/x"); got != "right" {
		t.Errorf("/x is %q", got)
	}
	if st := g.settled().ReplicaStatus(); st.Epoch != epoch || f.figure("digest_mismatches_count") == 0 {
		t.Errorf("epoch %d after %d, %v mismatches", st.Epoch, epoch, f.figure("digest_mismatches_count"))
	}

	f.spoil("/x")
	eventually(t, "the server that differs again has ended", func() bool {
		write()
		select {
		case <-f.dead:
			return true
		default:
			return false
		}
	})
	if err := f.end(); err == nil || !strings.Contains(err.Error(), "again after a snapshot") {
		t.Errorf("it ended with %v", err)
	}
	f.down = true
	write()
	g.settled()
	for _, want := range []string{"digests are not matching at zxid", "this server leaves its leader and asks for a snapshot"} {
		if !strings.Contains(book.String(), want) {
			t.Errorf("no %q in the log", want)
		}
	}
}
