package server

import (
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bellwether/internal/config"
	"bellwether/internal/peerwire"
	"bellwether/internal/store"
	"bellwether/wire"
)

// writer is a client that creates znodes one after the other, at any server that accepts
// it, and records which were acknowledged.
type writer struct {
	name    string
	servers []string // addresses
	stop    atomic.Bool
	acked   []string
	n       int
	many    int // number of znodes /many/… that it sets in turn
}

func (w *writer) run() {
	for i := 0; !w.stop.Load(); i++ {
		w.attach(w.servers[i%len(w.servers)])
	}
}

// attach writes on one connection until it fails.
func (w *writer) attach(address string) {
	nc, err := net.Dial("tcp", address)
	if err != nil {
		time.Sleep(time.Millisecond)
		return
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(eventTimeout))
	call := func(frame []byte) ([]byte, error) {
		if _, err := nc.Write(frame); err != nil {
			return nil, err
		}
		return wire.ReadFrame(nc, nil, 1<<20)
	}
	if b, err := call(wire.AppendFrame(nil, &wire.ConnectRequest{TimeoutMS: 3000, Password: make([]byte, 16)})); err != nil || len(b) == 0 {
		return
	}
	for xid := int32(1); !w.stop.Load(); xid++ {
		w.n++
		path := fmt.Sprintf("/%s-%d", w.name, w.n)
		b, err := call(request(xid, wire.OpCreate, create(path, path)))
		if err != nil {
			return
		}
		in := wire.Decoder(b)
		var h wire.ReplyHeader
		if h.Code(&in); h.Err != wire.OK || h.Xid != xid {
			return
		}
		w.acked = append(w.acked, path)
		if w.many > 0 { // also change a znode that exists already
			xid++
			set := &wire.SetDataRequest{Path: fmt.Sprintf("/many/%d", (w.n*7919)%w.many), Data: []byte(path), Version: -1}
			if _, err := call(request(xid, wire.OpSetData, set)); err != nil {
				return
			}
		}
	}
}

// writeThrough runs writers while f runs, and returns the paths of the creates that were
// acknowledged.
func (g *testEnsemble) writeThrough(many int, f func()) []string {
	var addresses []string
	for _, m := range g.servers {
		addresses = append(addresses, m.Addr().String())
	}
	var writers []*writer
	var done sync.WaitGroup
	for i := range 4 {
		w := &writer{name: fmt.Sprintf("w%d", i), many: many, servers: append(addresses[i%len(addresses):len(addresses):len(addresses)], addresses...)}
		writers = append(writers, w)
		done.Go(w.run)
	}
	f()
	var acked []string
	for _, w := range writers {
		w.stop.Store(true)
	}
	done.Wait()
	for _, w := range writers {
		acked = append(acked, w.acked...)
	}
	return acked
}

// wrote waits until the leader has applied n more transactions.
func (g *testEnsemble) wrote(n int) {
	g.t.Helper()
	l := g.settled()
	from := l.Tree().LastZxid()
	eventually(g.t, "writes go on", func() bool {
		now := g.leader()
		return now != nil && (now.Tree().LastZxid() >= from+wire.Zxid(n) || now.Tree().LastZxid().Epoch() > from.Epoch())
	})
}

// present fails unless all paths exist on each server.
func (g *testEnsemble) present(paths []string) {
	g.t.Helper()
	g.equal()
	for _, m := range g.servers {
		c := m.connect()
		for _, p := range paths {
			if got := c.data(p); got != p {
				g.t.Errorf("server %d: %s is %q", m.id, p, got)
			}
		}
		c.must(wire.OpCloseSession, nil, nil)
		if _, err := io.ReadAll(c.nc); err != nil {
			g.t.Error(err)
		}
	}
}

// TestAcknowledgedWritesSurviveLeaders: while clients write, one leader after the other is
// killed by a power failure and returns. No acknowledged write is lost, and all trees are
// equal.
func TestAcknowledgedWritesSurviveLeaders(t *testing.T) {
	g := newTestEnsemble(t, 3, 0, false)
	ports := freePorts(t, 3)
	g.change = func(c *config.Config) { c.Client.Port = ports[c.Ensemble.ID-1] }
	for _, m := range g.servers {
		g.start(m)
	}
	g.settled()
	acked := g.writeThrough(0, func() {
		for range 4 {
			g.wrote(100)
			l := g.leader()
			g.kill(l)
			l.fs.(*store.Mem).Crash(store.LoseAll)
			g.wrote(100)
			g.start(l)
			g.settled()
		}
	})
	if len(acked) < 100 { // wrote counts the transactions of a change of leaders among its hundred
		t.Errorf("only %d writes were acknowledged", len(acked))
	}
	g.present(acked)
}

// startSnapshotEnsemble starts three voters and some observers with 5000 znodes, on ports
// that they keep. A leader always sends snapshots to learners that have lost their history.
func startSnapshotEnsemble(t *testing.T, observers int) *testEnsemble {
	g := newTestEnsemble(t, 3, observers, false)
	ports := freePorts(t, 3+observers)
	g.change = func(c *config.Config) {
		c.Client.Port = ports[c.Ensemble.ID-1]
		c.Ensemble.SnapshotFactor = -1
	}
	for _, m := range g.servers {
		g.start(m)
	}
	g.settled().connect().pipeline("/many", 5000)
	return g
}

// TestSnapshotUnderWrites: a server gets a snapshot while clients write. What the stream
// contains already and what follows it give the same tree.
func TestSnapshotUnderWrites(t *testing.T) {
	g := startSnapshotEnsemble(t, 1)
	acked := g.writeThrough(5000, func() {
		for i := range 4 {
			for _, m := range g.servers {
				if !m.serves(peerwire.Leading) && i%2 == int(m.id)%2 {
					g.kill(m)
					m.fs = store.NewMem(uint64(i) + 70)
					g.wrote(50)
					g.start(m)
					g.settled()
				}
			}
		}
	})
	g.present(acked)
}

// TestRestartAfterSnapshotUnderWrites: a server gets a snapshot under writes, is killed
// as soon as it serves, and starts from that snapshot and its log. No digest mismatch is
// reported, although the snapshot contains effects of transactions in the log.
func TestRestartAfterSnapshotUnderWrites(t *testing.T) {
	g := startSnapshotEnsemble(t, 0)
	m := g.follower()
	acked := g.writeThrough(5000, func() {
		for i := range 3 {
			g.kill(m)
			m.fs = store.NewMem(uint64(i) + 70)
			g.wrote(50)
			g.start(m)
			g.settled()
			g.wrote(200)
			g.kill(m)
			g.start(m)
			g.settled()
			if n, first := m.Tree().DigestMismatches(); n > 0 {
				t.Errorf("%d digests do not match, first %v", n, first)
			}
			g.wrote(50)
		}
	})
	g.present(acked)
}
