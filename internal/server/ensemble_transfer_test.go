package server

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"bellwether/internal/election"
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// counter sets one znode repeatedly on one connection, with the version that the znode
// must have. So a write that is lost or carried out twice is noticed at once.
type counter struct {
	c    *client
	path string
	n    int32
	err  error
}

func (w *counter) run(stop *atomic.Bool) {
	for xid := int32(1000); !stop.Load() && w.err == nil; xid++ {
		set := &wire.SetDataRequest{Path: w.path, Data: []byte(fmt.Sprint(w.n)), Version: w.n}
		if _, w.err = w.c.nc.Write(request(xid, wire.OpSetData, set)); w.err != nil {
			return
		}
		var b []byte
		if b, w.err = wire.ReadFrame(w.c.nc, nil, 1<<20); w.err != nil {
			return
		}
		in := wire.Decoder(b)
		var h wire.ReplyHeader
		if h.Code(&in); h.Err != wire.OK || h.Xid != xid {
			w.err = fmt.Errorf("write %d as %d: %+v", w.n, xid, h)
			return
		}
		w.n++
	}
}

// counting writes on two connections to each server while f runs. It fails if a
// connection to a server that still runs was closed, or if a write was lost or repeated.
func (g *testEnsemble) counting(f func()) {
	g.t.Helper()
	var stop atomic.Bool
	var done sync.WaitGroup
	at := map[*counter]*testServer{}
	for _, m := range g.servers {
		for i := range 2 {
			c := m.connect()
			w := &counter{c: c, path: fmt.Sprintf("/count-%d-%d-%v", m.id, i, c.session.Session)}
			w.c.create(w.path, "")
			at[w] = m
		}
	}
	for w := range at {
		done.Go(func() { w.run(&stop) })
	}
	f()
	g.wrote(20)
	stop.Store(true)
	done.Wait()
	for w, m := range at {
		if m.down {
			continue
		}
		if w.err != nil {
			g.t.Errorf("server %d: %v", m.id, w.err)
			continue
		}
		if got := w.c.data(w.path); got != fmt.Sprint(w.n-1) {
			g.t.Errorf("server %d: %s is %q after %d writes", m.id, w.path, got, w.n)
		}
	}
}

// TestTransferUnderWrites: leadership moves from server to server while clients write
// through all of them. Each write is carried out once, and no connection is closed, even
// if the machine is so busy that an election decides instead.
func TestTransferUnderWrites(t *testing.T) {
	g, transfers := startTestEnsemble(t, 3, 1, false), 0
	g.counting(func() {
		for i := range 6 {
			g.wrote(5)
			old := g.settled()
			epoch, to := old.ReplicaStatus().Epoch, peerwire.NoServer
			if i%2 == 1 {
				to = old.id%3 + 1
			}
			h, err := old.TransferLeadership(t.Context(), to)
			now := g.settled()
			if err != nil {
				t.Logf("%+v: %v", h, err)
				continue
			}
			all := now.Elections()
			last := &all[len(all)-1]
			if last.Decision.Ending != election.LeadershipTransferred {
				t.Log(last)
				continue
			}
			transfers++
			if h.From != old.id || h.To != now.id || h.Epoch != epoch+1 || to != peerwire.NoServer && h.To != to {
				t.Errorf("%+v; server %d led epoch %d, server %d leads", h, old.id, epoch, now.id)
			}
			if want := fmt.Sprintf("server %d: server %d transfers leadership to server %d; LEADING", h.To, h.From, h.To); !strings.HasPrefix(last.String(), want) {
				t.Errorf("%s\nwant %s", last.String(), want)
			}
			t.Log(h.Took)
		}
	})
	g.equal()
	if transfers == 0 {
		t.Error("leadership was never transferred")
	}
}

// TestStoppedLeaderTransfersLeadership: a leader that is stopped transfers leadership
// first. Clients of other servers notice nothing, and the leader's clients continue at other
// servers.
func TestStoppedLeaderTransfersLeadership(t *testing.T) {
	g := startTestEnsemble(t, 3, 0, false)
	for range 5 { // a transfer may take too long on a busy machine
		old := g.leader()
		mine := old.connect()
		g.counting(func() {
			g.wrote(20)
			g.stopped(old)
			mine.closed()
		})
		now := g.settled()
		all := now.Elections()
		how := all[len(all)-1]
		d := now.dial()
		d.handshake(wire.ConnectRequest{TimeoutMS: lastingMS, Session: mine.session.Session, Password: mine.session.Password})
		if d.session.Session != mine.session.Session {
			t.Error("the session was lost")
		}
		if how.Decision.Ending == election.LeadershipTransferred {
			return
		}
		t.Log(how.String())
		g.start(old)
		g.settled()
	}
	t.Error("leadership was never transferred")
}

// TestTransferIsRefused: a server that cannot transfer leadership says why, and continues
// as before.
func TestTransferIsRefused(t *testing.T) {
	alone := start(t, Options{Config: testConfig()})
	if _, err := alone.TransferLeadership(t.Context(), peerwire.NoServer); err == nil || !strings.Contains(err.Error(), "alone") {
		t.Errorf("alone: %v", err)
	}
	g := startTestEnsemble(t, 3, 1, false)
	l, epoch := g.leader(), g.leader().ReplicaStatus().Epoch
	if _, err := g.follower().TransferLeadership(t.Context(), peerwire.NoServer); err == nil || !strings.Contains(err.Error(), "does not lead") {
		t.Errorf("a follower: %v", err)
	}
	for to, want := range map[ensemble.ServerID]string{4: "no vote", l.id: "it leads", 77: "no vote"} {
		if _, err := l.TransferLeadership(t.Context(), to); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("to %d: %v, want %s", to, err, want)
		}
	}
	gone := g.follower()
	g.stopped(gone)
	eventually(t, "it is missed", func() bool { return len(l.Learners()) == 2 })
	if _, err := l.TransferLeadership(t.Context(), gone.id); err == nil || !strings.Contains(err.Error(), "does not follow") {
		t.Errorf("to a stopped server: %v", err)
	}
	if st := l.ReplicaStatus(); !st.Serving || st.Epoch != epoch {
		t.Errorf("%+v", st)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	eventually(t, "the other server is named", func() bool { // the former leader may be slow to follow
		h, err := l.TransferLeadership(ended, peerwire.NoServer)
		return h.To != peerwire.NoServer && (err != nil || h.Epoch > epoch) // or it has become the leader again meanwhile
	})
	g.settled()
}
