package server

import (
	"cmp"
	"slices"
	"time"
)

// Limits that apply when a reader needs memory and none is left.
const (
	unreadMin   = time.Second           // how long a client must have failed to read before its connection may be closed
	reliefPause = 50 * time.Millisecond // between two searches for such connections
	replyFree   = 4 << 10               // so many bytes may always wait for a connection
)

// claim is memory for which a reader waits. Readers get memory in the order in which they
// came. They wait on a channel instead of polling, because there may be thousands.
type claim struct {
	bytes   int
	granted chan bool // capacity 1; false: the wait is over without memory
}

// claim counts n bytes. It returns false if the budget is full or others already wait.
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

// wait queues a claim for n bytes. If relieve is true, the caller must start
// Server.relieve.
func (b *budget) wait(n int) (w *claim, relieve bool) {
	w = &claim{n, make(chan bool, 1)}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue.Push(w)
	b.wanted += n
	b.waiting.Store(true)
	relieve, b.relieved = !b.relieved, true
	return w, relieve
}

// grant gives free memory to the waiting claims, oldest first.
func (b *budget) grant() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.queue.Len() > 0 && !b.full() {
		b.bytes.Add(int64((*b.queue.First()).bytes))
		b.next(true)
	}
}

// next removes the first claim from the queue. The lock must be held.
func (b *budget) next(granted bool) {
	w := b.queue.Pop()
	b.wanted -= w.bytes
	w.granted <- granted
	b.waiting.Store(b.queue.Len() > 0)
}

// forget withdraws a claim. It reports whether memory was already counted for it.
func (b *budget) forget(w *claim) (granted bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.queue.RemoveFunc(func(other *claim) bool { return other == w }) {
		b.wanted -= w.bytes
		b.waiting.Store(b.queue.Len() > 0)
		return false
	}
	return <-w.granted
}

// relieve closes connections whose clients do not read, while readers wait for memory. It
// returns when no reader waits, or when the server stops; then no claim is granted any
// more.
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

// relieving reports whether readers wait for memory. When the server stops it ends their
// waits.
func (s *Server) relieving() bool {
	b := &s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	for s.stopping.Load() && b.queue.Len() > 0 {
		b.next(false)
	}
	b.relieved = b.queue.Len() > 0
	return b.relieved
}

// claim counts n bytes that the reader is about to use, for a reply or for input. While
// the budget is full it first writes the output of the connection, then waits. It returns
// false if the connection has ended or the server stops.
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
	b.grant() // grants memory that became free before the claim was queued
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

// claimReply claims memory for a reply of about n bytes, before any of it is built. A
// short reply to a client for which little waits needs no claim. unclaim must be called
// when the reply is queued, because it is counted from then on.
func (c *conn) claimReply(n int) bool {
	c.out.mu.Lock()
	own := c.out.owed() // without what is being written: the client may have read that already
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

// multiReadShare is the part of the limit that the answer to one multiRead may take: one
// in multiReadShare.
const multiReadShare = 32

// multiReadMax returns how many bytes the results of a multiRead may take.
func (b *budget) multiReadMax() int { return int(min(int64(b.each), b.limit.Load()/multiReadShare)) }

// unreadConn is a connection that uses more than its share of memory. Its client has read
// nothing after the time in the field since.
type unreadConn struct {
	c     *conn
	since int64
	own   int // bytes that closing it frees
}

// closeUnread closes connections that use more than their share of memory until enough memory
// will be free for all claims. It begins with the connection that has waited longest for its
// client.
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
		u.c.abort()
		u.c.out.mu.Unlock()
		excess -= u.own
	}
}

// unread lists the connections that use more than their share of memory and have made no
// progress since before the given time: the client has not read a reply or not sent the rest of
// a request, or the connection itself waits for memory. Connections that wait for memory are
// included because they could be waiting for each other.
func (s *Server) unread(before int64) (list []unreadConn) {
	share := s.budget.share()
	for _, c := range s.conns.all() {
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
