package tree

import (
	"fmt"
	"sync"
	"testing"

	"bellwether/wire"
)

// ordered is a client that checks that the events of a transaction come before any reply
// that shows its effects.
type ordered struct {
	id   wire.SessionID
	mu   sync.Mutex
	last wire.Zxid // the zxid of the last event
	seen wire.Zxid // the zxid of the last reply
	bad  string
	got  int
}

func (c *ordered) Session() wire.SessionID { return c.id }
func (c *ordered) Identities() []wire.ID   { return nil }

func (c *ordered) Notify(e Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got++
	if e.Zxid < c.last || e.Zxid <= c.seen {
		c.bad = fmt.Sprintf("event of %v behind an event of %v and a reply at %v", e.Zxid, c.last, c.seen)
	}
	c.last = e.Zxid
}

func (c *ordered) Overflow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bad = "too many watches"
}

func (c *ordered) Reserve(z wire.Zxid) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if z < c.seen || z < c.last {
		c.bad = fmt.Sprintf("reply at %v behind a reply at %v and an event of %v", z, c.seen, c.last)
	}
	c.seen = z
}

// TestReadersBesideTheWriter: connections read, set watches and leave while transactions
// are applied and a snapshot is taken.
func TestReadersBesideTheWriter(t *testing.T) {
	l := newLeader(1)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	clients := make([]*ordered, 8)
	for i := range clients {
		c := &ordered{id: wire.SessionID(i)}
		clients[i] = c
		readers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					l.tree.Forget(c)
					return
				default:
				}
				path := fmt.Sprintf("/p/%d", n%5)
				l.tree.GetData(c, path, n%2 == 0, new(wire.DataResponse))
				l.tree.Exists(c, path, n%3 == 0, new(wire.StatResponse))
				l.tree.Children(c, "/p", n%4 == 0, new(Listing))
				l.tree.AddWatch(c, "/", wire.WatchPersistentRecursive)
				l.tree.RemoveWatches(c, path, wire.WatcherAny)
				l.tree.Reserve(c)
				if n%50 == 0 {
					l.tree.Counts()
					l.tree.WatchesBySession()
					l.tree.Ephemerals(c, wire.NullString{}, new(wire.EphemeralsResponse))
					l.tree.GetACL(c, path, new(wire.ACLResponse))
					l.tree.DigestHistory()
				}
			}
		})
	}
	readers.Go(func() {
		for range 20 {
			load(t, l.tree.Snapshot(), New(Options{}), func() {})
		}
	})
	run := func(req *Request) {
		if txn := l.prepare(req); txn != nil {
			l.tree.Apply(txn)
		}
	}
	run(create("/p", 0))
	for n := range 3000 {
		path := fmt.Sprintf("/p/%d", n%5)
		run(createACL(path, acl(31, fmt.Sprintf("ip:1.2.3.%d", n%7)), acl(31, "world:anyone")))
		run(setData(path, fmt.Sprint(n), -1))
		run(create("/p/e-", wire.FlagEphemeralSequential))
		run(remove(path, -1))
		if n%40 == 0 {
			run(closeSession(alice))
			run(&Request{Session: alice, Op: wire.OpCreateSession, Body: []byte{0, 0, 1, 0}})
		}
	}
	close(stop)
	readers.Wait()
	audit(t, l.tree)
	for i, c := range clients {
		if c.bad != "" || c.got == 0 {
			t.Errorf("client %d with %d events: %s", i, c.got, c.bad)
		}
	}
	if c := l.tree.Counts(); c.Watches != 0 || c.WatchPaths != 0 {
		t.Errorf("left: %+v", c)
	}
}
