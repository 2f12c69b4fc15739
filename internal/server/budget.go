package server

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"bellwether/internal/config"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// The limits of what waits for a client that reads slowly.
const (
	// outputMax is how many bytes of replies and events may wait for one
	// connection before it is closed (Options.OutputMax).
	outputMax = 64 << 20
	// outputFair is what a connection may owe in any case, or its even share of
	// all where that is less.
	outputFair = 1 << 20
	// outputHigh is where a connection stops taking requests until its output
	// has drained.
	outputHigh = 64 << 10
)

// budget bounds the memory of what waits for all connections.
type budget struct {
	each  int          // bytes for one connection
	limit atomic.Int64 // memory for all, with what the collector has not freed yet
	bytes atomic.Int64 // that wait now
	conns atomic.Int64 // that there are
	// inputs are the bytes of the buffers that inputs have borrowed. Most of those
	// connections are at work; while one waits for its client its buffer counts
	// among bytes too.
	inputs atomic.Int64

	closing sync.Mutex // of those who choose connections to close
	looked  int64      // the server's clock when connections were last looked through

	mu   sync.Mutex
	data map[*byte]int // how many outputs hold the data of a znode
}

// exceeded reports whether a connection owes too much: of its own, or of all that
// it keeps in memory.
func (b *budget) exceeded(own, holds int) bool {
	return own > b.each || b.full() && holds > b.share()
}

// full reports whether more waits than may.
func (b *budget) full() bool { return b.bytes.Load() > b.total() }

// busy reports whether so much waits that replies are counted before they are built.
func (b *budget) busy() bool { return b.bytes.Load() > b.total()/2 }

// claim counts n bytes, unless the budget is full.
func (b *budget) claim(n int) bool {
	for {
		was := b.bytes.Load()
		if was > b.total() {
			return false
		}
		if b.bytes.CompareAndSwap(was, was+int64(n)) {
			return true
		}
	}
}

// total is how many bytes may wait. The rest of the limit is for what comes with
// them: replies that are being built or have just been dropped, garbage that Go has
// not collected yet, the buffers lent to inputs, and the stacks of the readers.
func (b *budget) total() int64 { return b.limit.Load() / 4 }

// share is what a connection may owe while the budget is full: those that owe
// less than the even share cannot have filled it.
func (b *budget) share() int {
	return int(min(outputFair, b.total()/max(b.conns.Load(), 1)))
}

// inputShare is the part of the budget that the buffers lent to inputs may take.
const inputShare = 4

// lendInput counts a buffer that an input is about to borrow; false: it may not.
func (b *budget) lendInput() bool {
	if b == nil {
		return true
	}
	if b.inputs.Add(inputBusy) <= b.total()/inputShare {
		return true
	}
	b.inputs.Add(-inputBusy)
	return false
}

// returnInput undoes one lendInput.
func (b *budget) returnInput() {
	if b != nil {
		b.inputs.Add(-inputBusy)
	}
}

// hold counts the memory of a long part, once for all outputs that hold it.
func (b *budget) hold(l *long) {
	if l.names != nil {
		b.bytes.Add(int64(l.names.Hold()))
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.data == nil {
		b.data = map[*byte]int{}
	}
	at := unsafe.SliceData(l.data)
	if b.data[at]++; b.data[at] == 1 {
		b.bytes.Add(int64(cap(l.data)))
	}
}

// release undoes one hold.
func (b *budget) release(l *long) {
	if l.names != nil {
		b.bytes.Add(-int64(l.names.Release()))
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	at := unsafe.SliceData(l.data)
	if b.data[at]--; b.data[at] == 0 {
		delete(b.data, at)
		b.bytes.Add(-int64(cap(l.data)))
	}
}

// What an item costs in memory: its place in the queue, which may be twice as
// long as what is in it, and its record; each element of a list in it.
const (
	itemCost    = 256
	elementCost = 192
)

// cost is about how many bytes of memory an item takes, its long part left out.
func (it *item) cost() int {
	n := itemCost
	switch r := it.record.(type) {
	case *wire.WatcherEvent:
		n += len(r.Path)
	case *wire.PathResponse:
		n += len(r.Path)
	case *wire.PathStatResponse:
		n += len(r.Path)
	case *wire.DataResponse:
		if it.long == nil {
			n += len(r.Data)
		}
	case *wire.ChildrenResponse:
		n += namesCost(r.Children)
	case *wire.ChildrenStatResponse:
		n += namesCost(r.Children)
	case *wire.EphemeralsResponse:
		n += namesCost(r.Paths)
	case *wire.MultiResponse:
		n += multiCost(r)
	}
	return n
}

func namesCost(names []string) int {
	n := 16 * len(names)
	for _, name := range names {
		n += len(name)
	}
	return n
}

func multiCost(r *wire.MultiResponse) int {
	n := elementCost * len(r.Results)
	for i := range r.Results {
		switch r := r.Results[i].Response.(type) {
		case *wire.PathResponse:
			n += len(r.Path)
		case *wire.PathStatResponse:
			n += len(r.Path)
		case *wire.DataResponse:
			n += len(r.Data)
		case *wire.ChildrenResponse:
			n += namesCost(r.Children)
		case *tree.Names:
			n += r.Bytes
		}
	}
	return n
}

// When memory for replies is wanted and none is left.
const (
	unreadMin = time.Second           // so long a write must have been going on before its connection is closed for it
	roomPause = 50 * time.Millisecond // between two looks
	replyFree = 4 << 10               // a connection may owe this much in any case
)

// awaitRoomFor waits, before a read whose reply takes about n bytes, while the
// budget is full. Nothing of the reply is in memory yet. A client that is owed
// little does not wait for a short reply. The bytes are claimed until the reply is
// queued and counts: readers that were let in together could fill the memory
// several times over, since the tree may keep them waiting meanwhile.
func (c *conn) awaitRoomFor(n int) {
	c.out.mu.Lock()
	own := c.out.holds()
	c.out.mu.Unlock()
	if n+own <= replyFree {
		return
	}
	for !c.srv.budget.claim(n) {
		if !c.pauseForRoom() {
			return
		}
	}
	c.claimed = n
}

// unclaim ends the claim of awaitRoomFor, if there is one.
func (c *conn) unclaim() {
	if c.claimed > 0 {
		c.srv.budget.bytes.Add(-int64(c.claimed))
		c.claimed = 0
	}
}

// awaitRoom waits while the budget is full.
func (c *conn) awaitRoom() {
	for c.srv.budget.full() && c.pauseForRoom() {
	}
}

// pauseForRoom closes connections that owe much, or waits a little. False: there is
// nothing to wait for any more, because the connection has ended or the server stops.
func (c *conn) pauseForRoom() bool {
	c.leaveTurn()
	c.flushReader()
	if !c.srv.closeUnread() {
		c.stall(roomPause)
	}
	return !c.ended() && !c.srv.stopping.Load()
}

// awaitRoomInTurn waits until the reader has its turn and the budget is not full,
// so that no more long replies are built at once than there are turns. False: the
// reply is not wanted any more, because the connection has ended or the server stops.
func (c *conn) awaitRoomInTurn() bool {
	for {
		c.awaitRoom()
		c.enterTurn()
		switch {
		case c.ended(), c.srv.stopping.Load():
			return false
		case !c.srv.budget.full():
			return true
		}
		c.leaveTurn()
	}
}

// multiReadShare is the part of the budget that the answer of one multiRead may take.
const multiReadShare = 8

// multiReadMax is how many bytes the results of a multiRead may take.
func (b *budget) multiReadMax() int { return int(min(int64(b.each), b.total()/multiReadShare)) }

// closeUnread closes the connections whose clients have kept a write going for
// longest, as far as they owe more than their share, until enough memory will be
// free. False: there are none, or they were looked through a moment ago.
func (s *Server) closeUnread() bool {
	b := &s.budget
	if !b.closing.TryLock() {
		return false
	}
	defer b.closing.Unlock()
	if !b.full() {
		return true
	}
	now := s.clock()
	if now-b.looked < int64(roomPause) {
		return false
	}
	b.looked = now
	unread := s.unread(now - int64(unreadMin))
	slices.SortFunc(unread, func(a, b unreadConn) int { return cmp.Compare(a.since, b.since) })
	closed := false
	for excess := b.bytes.Load() - b.total(); excess > 0 && len(unread) > 0; unread = unread[1:] {
		u := unread[0]
		u.c.unread.Store(true)
		u.c.out.mu.Lock()
		u.c.close()
		u.c.out.mu.Unlock()
		excess, closed = excess-int64(u.own), true
	}
	return closed
}

// unreadConn is a connection that owes more than its share, and whose write has
// been going on since a time.
type unreadConn struct {
	c     *conn
	since int64
	own   int // bytes that its end frees
}

// unread lists the connections whose writes have been going on since before a time.
func (s *Server) unread(before int64) (list []unreadConn) {
	share := s.budget.share()
	for _, c := range s.crowd.all() {
		c.out.mu.Lock()
		if o := &c.out; o.writing && !o.closed && o.since < before && o.holds() > share {
			list = append(list, unreadConn{c, o.since, o.holds() - o.names})
		}
		c.out.mu.Unlock()
	}
	return list
}

// replyMemory is the default where the machine's memory is not known.
const replyMemory = 1 << 30

// replyMemoryOf is the memory for replies that the configuration allows.
func replyMemoryOf(c *config.Config) int64 {
	if mb := c.Limits.ReplyMemoryMB; mb > 0 {
		return int64(mb) << 20
	}
	return cmp.Or(machineMemory()/4, replyMemory)
}
