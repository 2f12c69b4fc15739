package server

import (
	"cmp"
	"sync"
	"sync/atomic"
	"unsafe"

	"bellwether/internal/config"
	"bellwether/internal/fifo"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// Limits of the output that waits for a client that reads slowly.
const (
	// outputMax is the most bytes of replies and events that may wait for one connection.
	// Beyond it the connection is closed (Options.OutputMax).
	outputMax = 64 << 20
	// outputFair is how many bytes may always wait for a connection. If the connection's even
	// share of the total is smaller, the share is used instead.
	outputFair = 1 << 20
	// outputHigh is the number of waiting bytes at which a connection stops taking
	// requests until its output has been written.
	outputHigh = 64 << 10
)

// budget bounds the memory of everything that waits for clients: replies and events that
// clients have not read, requests that have partly arrived, and replies that are being
// built. Invariants: bytes >= 0; wanted is the sum of the bytes of queue; waiting is set
// exactly while queue is not empty.
type budget struct {
	each  int          // most bytes for one connection
	limit atomic.Int64 // most memory for all, including garbage that is not collected yet
	bytes atomic.Int64 // bytes in use now
	conns atomic.Int64 // number of connections
	tls   atomic.Int64 // bytes that TLS adds to the cost of connections (tlscost.go)

	mu       sync.Mutex
	data     map[*byte]int      // by the start of a znode's data: how many outputs hold it
	queue    fifo.Queue[*claim] // claims of readers that wait for memory, oldest first
	wanted   int                // bytes that they wait for
	waiting  atomic.Bool        // there are such claims
	relieved bool               // a goroutine runs relieve
}

// exceeded reports whether too much waits for a connection. own is the number of bytes of its
// own output, and holds is the number of bytes of memory that the connection uses in total.
func (b *budget) exceeded(own, holds int) bool {
	return own > b.each || b.full() && holds > b.share()
}

// full reports whether more memory is in use than allowed.
func (b *budget) full() bool { return b.bytes.Load() > b.total() }

// busy reports whether so much memory is in use that memory for a reply must be claimed
// before the reply is built, and that buffers stay small.
func (b *budget) busy() bool { return b.bytes.Load() > b.total()/2 }

// add counts n more bytes; n may be negative. It never waits.
func (b *budget) add(n int) {
	b.bytes.Add(int64(n))
	if n < 0 && b.waiting.Load() {
		b.grant()
	}
}

// The parts of the memory limit. The collector frees memory when the heap has grown by
// half (cmd/bellwether). Garbage that arises while it runs stays until its next run.
const (
	connCost   = 16 << 10 // cost of a connection with little output: the stack of its reader and its buffers
	useParts   = 2        // of the limit minus the cost of all connections, useParts/limitParts may be in use
	limitParts = 5
	limitShare = 16 // 1/limitShare of the limit may always be in use, however many connections there are
)

// total returns how many bytes may be in use. The rest of the limit is for the
// connections themselves and for garbage that is not collected yet.
func (b *budget) total() int64 {
	limit := b.limit.Load()
	return max((limit-connCost*b.conns.Load()-b.tls.Load())*useParts/limitParts, limit/limitShare)
}

// share returns how much may wait for a connection while the budget is full. Connections
// with less than the even share cannot have filled it.
func (b *budget) share() int {
	return int(min(outputFair, b.total()/max(b.conns.Load(), 1)))
}

// hold counts the memory of a long part, once for all outputs that hold it.
func (b *budget) hold(l *longPart) {
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
func (b *budget) release(l *longPart) {
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

// The memory that an item costs: itemCost covers its record and its place in the queue,
// whose capacity may be twice its length; elementCost covers each element of a list in
// it.
const (
	itemCost    = 256
	elementCost = 192
)

// cost returns about how many bytes of memory an item takes without its long part.
func (it *item) cost() int {
	if it.long != nil {
		return itemCost
	}
	return itemCost + textCost(it.record)
}

// textCost returns about how many bytes the texts, data and lists in a reply or event
// take.
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

// replyMemory is the default limit if the machine's memory is not known.
const replyMemory = 1 << 30

// replyMemoryOf returns the memory for replies that the configuration allows.
func replyMemoryOf(c *config.Config) int64 {
	if mb := c.Limits.ReplyMemoryMB; mb > 0 {
		return int64(mb) << 20
	}
	return cmp.Or(machineMemory()/4, replyMemory)
}
