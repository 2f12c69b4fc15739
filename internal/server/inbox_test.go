package server

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"bellwether/internal/config"
	"bellwether/internal/election"
	"bellwether/internal/peerwire"
	"bellwether/internal/store"
	"bellwether/internal/zab"
)

// bring runs f n times on one goroutine, and returns a counter of the calls that have returned.
func bring(all *sync.WaitGroup, n int, f func()) *atomic.Int32 {
	done := new(atomic.Int32)
	all.Go(func() {
		for range n {
			f()
			done.Add(1)
		}
	})
	return done
}

// TestLinkWaitsAtItsLimit: if a link brings packets faster than the loop takes them, its
// reader waits at a limit. Other links and votes do not wait. When the loop takes the
// packets the reader continues.
func TestLinkWaitsAtItsLimit(t *testing.T) {
	b := newInbox(diskQueueMax)
	var all sync.WaitGroup
	defer all.Wait()
	defer b.close()
	mega := func(link zab.LinkID) func() {
		p := &peerwire.QuorumPacket{Type: peerwire.PacketProposal, Data: make([]byte, 1<<20)}
		return func() { b.pushPackets(link, []*peerwire.QuorumPacket{p}) }
	}
	held := func(link zab.LinkID) bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.held[link]
	}
	const fits = linkBytesMax >> 20
	flood := bring(&all, 3*fits, mega(1))
	eventually(t, "link 1 is held up", func() bool { return held(1) && flood.Load() == fits })
	mega(2)()
	b.pushHeard(election.Heard{From: 1})
	if n := len(b.take(nil)); n != fits+2 {
		t.Errorf("%d events", n)
	}
	eventually(t, "it goes on up to the bound", func() bool { return held(1) && flood.Load() == 2*fits })
	b.release(2)
	if flood.Load() != 2*fits {
		t.Error("another link's end let it go on")
	}
	b.release(1)
	eventually(t, "it goes on at its end, with what it had in hand", func() bool { return flood.Load() == 2*fits+1 })
}

// TestVotesWaitAtTheirLimit: the notifications of one server wait at a limit. Those of
// other servers do not.
func TestVotesWaitAtTheirLimit(t *testing.T) {
	b := newInbox(diskQueueMax)
	var all sync.WaitGroup
	defer all.Wait()
	defer b.close()
	flood := bring(&all, 2*votesMax, func() { b.pushHeard(election.Heard{From: 7}) })
	eventually(t, "server 7 is held up", func() bool { return flood.Load() == votesMax })
	b.pushHeard(election.Heard{From: 8})
	if n := len(b.take(nil)); n != votesMax+1 {
		t.Errorf("%d events", n)
	}
	eventually(t, "it goes on", func() bool { return flood.Load() == 2*votesMax })
}

// TestStalledFollowerAccounts: a follower whose disk stalls keeps receiving writes. What
// it holds is counted, and released when the disk answers again.
func TestStalledFollowerAccounts(t *testing.T) {
	g := newTestEnsemble(t, 3, 0, false)
	fs := &stallFS{FS: store.NewMem(1)}
	g.servers[0].fs = fs
	g.change = func(c *config.Config) { c.Storage.SnapCount = 1 << 20 }
	for _, m := range g.servers {
		g.start(m)
	}
	l := g.settled()
	if l == g.servers[0] {
		g.stopped(l)
		g.settled()
		g.start(l)
		l = g.settled()
	}
	slow := g.servers[0]
	logging := func() int {
		slow.inbox.mu.Lock()
		defer slow.inbox.mu.Unlock()
		return slow.inbox.logging
	}
	eventually(t, "nothing waits for the disk", func() bool { return logging() == 0 })
	release := fs.stall()
	c := l.connect()
	const n, size = 20, 100 << 10
	for i := range n {
		c.create(fmt.Sprintf("/n%d", i), string(make([]byte, size)))
	}
	eventually(t, "it is accounted for", func() bool { return logging() >= n*size })
	release()
	eventually(t, "it is given back", func() bool { return logging() == 0 })
	g.settled()
	g.equal()
}
