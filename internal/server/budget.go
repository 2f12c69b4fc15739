package server

import (
	"cmp"
	"sync"
	"sync/atomic"
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

// budget bounds the memory of what waits for all connections: replies and events
// that clients have not read, requests that have come in half, and what is being
// built for them.
type budget struct {
	each  int          // bytes for one connection
	limit atomic.Int64 // memory for all, with what the collector has not freed yet
	bytes atomic.Int64 // that are in use now
	conns atomic.Int64 // that there are

	mu       sync.Mutex
	data     map[*byte]int // how many outputs hold the data of a znode
	queue    []*claim      // of readers that wait for memory, the oldest first
	wanted   int           // bytes that they wait for
	waiting  atomic.Bool   // there are some
	relieved bool          // a goroutine closes connections for them
}

// exceeded reports whether a connection owes too much: of its own, or of all that
// it keeps in memory.
func (b *budget) exceeded(own, holds int) bool {
	return own > b.each || b.full() && holds > b.share()
}

// full reports whether more is in use than may.
func (b *budget) full() bool { return b.bytes.Load() > b.total() }

// busy reports whether so much is in use that replies are counted before they are
// built, and buffers stay small.
func (b *budget) busy() bool { return b.bytes.Load() > b.total()/2 }

// add counts n bytes more, or fewer. It never waits.
func (b *budget) add(n int) {
	b.bytes.Add(int64(n))
	if n < 0 && b.waiting.Load() {
		b.grant()
	}
}

// What the bound is made of. The collector frees memory when the heap has grown by
// half (cmd/bellwether); what is dropped while it is at work stays until it runs again.
const (
	connCost   = 16 << 10 // of a connection that owes little: the stack of its reader, its buffers
	useParts   = 2        // of limitParts, the part of the rest that may be in use
	limitParts = 5
	limitShare = 16 // the part of the limit that may be in use however many connections there are
)

// total is how many bytes may be in use. The rest of the limit is for the
// connections themselves, and for garbage that Go has not collected yet.
func (b *budget) total() int64 {
	limit := b.limit.Load()
	return max((limit-connCost*b.conns.Load())*useParts/limitParts, limit/limitShare)
}

// share is what a connection may owe while the budget is full: those that owe
// less than the even share cannot have filled it.
func (b *budget) share() int {
	return int(min(outputFair, b.total()/max(b.conns.Load(), 1)))
}

// hold counts the memory of a long part, once for all outputs that hold it.
func (b *budget) hold(l *long) {
	switch {
	case l.names != nil:
		b.add(l.names.Hold())
		return
	case l.chunks != nil:
		b.add(bufferKept * len(l.chunks))
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

// release undoes one hold. The chunks of a reply return to their pool.
func (b *budget) release(l *long) {
	switch {
	case l.names != nil:
		b.add(-l.names.Release())
		return
	case l.chunks != nil:
		b.add(-bufferKept * len(l.chunks))
		for _, c := range l.chunks {
			giveBuffer(c)
		}
		return
	}
	b.mu.Lock()
	at := unsafe.SliceData(l.data)
	b.data[at]--
	last := b.data[at] == 0
	if last {
		delete(b.data, at)
	}
	b.mu.Unlock()
	if last {
		b.add(-cap(l.data))
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
	if it.long != nil {
		return itemCost
	}
	return itemCost + textCost(it.record)
}

// textCost is about how many bytes the texts, data and lists in a reply or event take.
func textCost(r wire.Record) int {
	switch r := r.(type) {
	case *wire.WatcherEvent:
		return len(r.Path)
	case *wire.PathResponse:
		return len(r.Path)
	case *wire.PathStatResponse:
		return len(r.Path)
	case *wire.DataResponse:
		return len(r.Data)
	case *wire.ChildrenResponse:
		return namesCost(r.Children)
	case *wire.ChildrenStatResponse:
		return namesCost(r.Children)
	case *wire.EphemeralsResponse:
		return namesCost(r.Paths)
	case *manyChildren:
		return r.names.Bytes
	case *tree.Names:
		return r.Bytes
	case *wire.MultiResponse:
		n := elementCost * len(r.Results)
		for i := range r.Results {
			n += textCost(r.Results[i].Response)
		}
		return n
	}
	return 0
}

func namesCost(names []string) int {
	n := 16 * len(names)
	for _, name := range names {
		n += len(name)
	}
	return n
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
