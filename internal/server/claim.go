package server

import (
	"cmp"
	"slices"
	"time"
)

// When memory is wanted and none is left.
const (
	unreadMin   = time.Second           // so long a client must have been waited for before its connection is closed for it
	reliefPause = 50 * time.Millisecond // between two looks for such connections
	replyFree   = 4 << 10               // a connection may owe this much in any case
)

// claim is memory that a reader waits for. Readers wait in the order in which they
// came, and nobody looks again and again: thousands may wait.
type claim struct {
	bytes   int
	granted chan bool // of one; false: there is nothing to wait for any more
}

// claim counts n bytes, unless the budget is full or others wait already.
func (b *budget) claim(n int) bool {
	for !b.waiting.Load() {
		was := b.bytes.Load()
		if was > b.total() {
			return false
		}
		if b.bytes.CompareAndSwap(was, was+int64(n)) {
			return true
		}
	}
	return false
}

// wait queues a claim for n bytes. Somebody has to call relieve where relieve is true.
func (b *budget) wait(n int) (w *claim, relieve bool) {
	w = &claim{n, make(chan bool, 1)}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = append(b.queue, w)
	b.wanted += n
	b.waiting.Store(true)
	relieve, b.relieved = !b.relieved, true
	return w, relieve
}

// grant gives memory to those who wait, in their order, while there is some.
func (b *budget) grant() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.queue) > 0 && !b.full() {
		b.bytes.Add(int64(b.queue[0].bytes))
		b.next(true)
	}
}

// next takes the first claim from the queue. The lock is held.
func (b *budget) next(granted bool) {
	w := b.queue[0]
	b.queue[0] = nil
	b.queue = b.queue[1:]
	b.wanted -= w.bytes
	w.granted <- granted
	if len(b.queue) == 0 {
		b.queue = nil
		b.waiting.Store(false)
	}
}

// forget takes a claim back. It reports whether memory was counted for it.
func (b *budget) forget(w *claim) (granted bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.queue, w); i >= 0 {
		b.queue = slices.Delete(b.queue, i, i+1)
		b.wanted -= w.bytes
		b.waiting.Store(len(b.queue) > 0)
		return false
	}
	return <-w.granted
}

// relieve closes connections whose clients do not read while readers wait for
// memory. It ends when none waits, or when the server stops: then nobody gets any.
func (s *Server) relieve() {
	b := &s.budget
	tick := time.NewTicker(reliefPause)
	defer tick.Stop()
	for ; ; <-tick.C {
		b.grant()
		if !s.relieving() {
			return
		}
		s.closeUnread()
	}
}

// relieving reports whether readers wait for memory that they may get.
func (s *Server) relieving() bool {
	b := &s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	for s.stopping.Load() && len(b.queue) > 0 {
		b.next(false)
	}
	b.relieved = len(b.queue) > 0
	return b.relieved
}

// claim counts n bytes that the reader is about to use, for a reply or for input.
// It waits while the budget is full; what the client is owed is written before.
// False: the connection has ended, or the server stops.
func (c *conn) claim(n int) bool {
	b := &c.srv.budget
	if b.claim(n) {
		return true
	}
	c.leaveTurn()
	c.flush()
	if c.srv.stopping.Load() || c.ended() {
		return false
	}
	c.in.waits()
	w, relieve := b.wait(n)
	if relieve {
		c.srv.readers.Go(c.srv.relieve)
	}
	b.grant() // what became free before the claim was queued
	select {
	case granted := <-w.granted:
		return granted
	case <-c.done:
	case <-c.srv.dead:
	}
	if b.forget(w) {
		b.add(-n)
	}
	return false
}

// claimReply claims memory for a reply of about n bytes, before anything of it is
// built. A client that is owed little does not wait for a short reply. The bytes
// are claimed until the reply is queued and counts.
func (c *conn) claimReply(n int) bool {
	c.out.mu.Lock()
	own := c.out.owed() // not what is being written: that may have been read already
	c.out.mu.Unlock()
	if n+own <= replyFree {
		return true
	}
	if !c.claim(n) {
		return false
	}
	c.claimed = n
	return true
}

// unclaim ends the claim of claimReply, if there is one.
func (c *conn) unclaim() {
	if c.claimed > 0 {
		c.srv.budget.add(-c.claimed)
		c.claimed = 0
	}
}

// multiReadShare is the part of the limit that the answer of one multiRead may take.
const multiReadShare = 32

// multiReadMax is how many bytes the results of a multiRead may take.
func (b *budget) multiReadMax() int { return int(min(int64(b.each), b.limit.Load()/multiReadShare)) }

// unreadConn is a connection that takes more than its share, and whose client has
// been waited for since a time.
type unreadConn struct {
	c     *conn
	since int64
	own   int // bytes that its end frees
}

// closeUnread closes the connections whose clients have been waited for longest,
// as far as they take more than their share, until there will be enough memory for
// all that is wanted.
func (s *Server) closeUnread() {
	b := &s.budget
	b.mu.Lock()
	excess := int(b.bytes.Load()-b.total()) + b.wanted
	b.mu.Unlock()
	unread := s.unread(s.clock() - int64(unreadMin))
	slices.SortFunc(unread, func(a, b unreadConn) int { return cmp.Compare(a.since, b.since) })
	for ; excess > 0 && len(unread) > 0; unread = unread[1:] {
		u := unread[0]
		u.c.unread.Store(true)
		u.c.out.mu.Lock()
		u.c.close()
		u.c.out.mu.Unlock()
		excess -= u.own
	}
}

// unread lists the connections whose clients have not read a reply, or not sent
// the rest of a request, since before a time, and those that have waited so long
// for memory themselves with much input: these could wait for each other.
func (s *Server) unread(before int64) (list []unreadConn) {
	share := s.budget.share()
	for _, c := range s.crowd.all() {
		c.out.mu.Lock()
		o, in := &c.out, c.in.held(before)
		switch {
		case o.closed:
		case o.writing && o.since < before && o.holds()+in > share:
			list = append(list, unreadConn{c, o.since, o.holds() - o.names + in})
		case in > share:
			list = append(list, unreadConn{c, c.in.since.Load(), in})
		}
		c.out.mu.Unlock()
	}
	return list
}
