package server

import (
	"sync"
	"sync/atomic"
	"time"

	"bellwether/wire"
)

// The limits of what waits for a client that reads slowly. Reads do not
// count: their connection takes no more requests while its output is above
// outputHigh.
const (
	// outputMax is how many bytes of replies and events may wait for one
	// connection before it is closed (Options.OutputMax).
	outputMax = 64 << 20
	// outputTotal is the same for all connections together; beyond it those are
	// closed that owe more than outputFair.
	outputTotal = 1 << 30
	outputFair  = 1 << 20
	// outputHigh is where a connection stops taking requests until its output
	// has drained.
	outputHigh = 64 << 10
	// writeChunk is about how much is encoded for one write to the socket.
	writeChunk = 256 << 10
	// lingerMax is how long a connection that is to be closed may take to
	// accept its last replies.
	lingerMax = 5 * time.Second
)

// budget bounds what waits for all connections.
type budget struct {
	each  int          // bytes for one connection
	total int64        // bytes for all
	items atomic.Int64 // that wait now, in all outputs
}

// exceeded reports whether a connection that owes n bytes owes too much.
func (b *budget) exceeded(n int) bool {
	return n > b.each || n > outputFair && b.items.Load()*itemCost > b.total
}

// output is what a connection owes its client, in order: ready, then items,
// then the place of the reply a read has reserved, then later. Replies of
// reads are encoded by whoever carried out the read; events and the replies
// of writes wait as items, so that the loop encodes nothing.
type output struct {
	mu       sync.Mutex
	drained  sync.Cond // on mu: writing ended, or the connection is closed
	ready    *buffer
	items    []item
	later    []item
	reserved bool
	zxid     wire.Zxid // of the reserved reply
	writing  bool      // somebody is at the socket, and looks here again before leaving
	dirty    bool      // the server's list of connections to be flushed has this one
	ending   bool      // close the socket when all is written; nothing more is taken
	closed   bool      // the socket is closed; nothing is taken any more
	traffic  traffic
	budget   *budget
	coder    wire.Coder // memory for encode
}

// item is a reply or an event that is not encoded yet. Without a header it
// is a ConnectResponse.
type item struct {
	header wire.ReplyHeader
	record wire.Record
	bare   bool
}

// itemCost is the estimate for an item in outputMax.
const itemCost = 128

// push puts an item at the end, behind a reserved place. It reports whether
// the connection has to be flushed by somebody, who then must take it off
// the list.
func (o *output) push(it item) (flush bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || o.ending {
		return false
	}
	if o.reserved {
		o.later = append(o.later, it)
	} else {
		o.items = append(o.items, it)
	}
	o.budget.items.Add(1)
	if o.budget.exceeded(o.owed()) {
		o.discard()
	} else if o.writing {
		return false
	}
	flush, o.dirty = !o.dirty, true
	return flush
}

// reserve keeps the place of a reply; z is for its header.
func (o *output) reserve(z wire.Zxid) {
	o.mu.Lock()
	o.reserved, o.zxid = true, z
	o.mu.Unlock()
}

// fill puts the reply into the reserved place, encoded at once: the record
// may be reused afterwards.
func (o *output) fill(h wire.ReplyHeader, r wire.Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	o.encodeItems(len(o.items))
	o.encode(item{header: h, record: r})
	o.release()
}

// fillLater is fill without encoding; the record is not reused. It reports
// what push reports.
func (o *output) fillLater(h wire.ReplyHeader, r wire.Record) (flush bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	o.items = append(o.items, item{header: h, record: r})
	o.budget.items.Add(1)
	o.release()
	flush, o.dirty = !o.dirty && !o.writing, true
	return flush
}

// release puts what came behind the reserved place behind the reply.
func (o *output) release() {
	o.reserved = false
	if len(o.later) > 0 {
		o.items = append(o.items, o.later...)
		clear(o.later)
		o.later = o.later[:0]
	}
}

// encodeItems moves n items to ready.
func (o *output) encodeItems(n int) {
	for _, it := range o.items[:n] {
		o.encode(it)
	}
	o.budget.items.Add(-int64(n))
	rest := copy(o.items, o.items[n:])
	clear(o.items[rest:])
	o.items = o.items[:rest]
	if rest == 0 && cap(o.items) > itemsKept {
		o.items = nil
	}
}

// itemsKept is how much room for items an idle connection keeps.
const itemsKept = 8

func (o *output) encode(it item) {
	if o.ready == nil {
		o.ready = takeBuffer()
	}
	b, mark := wire.BeginFrame(o.ready.b)
	o.coder = wire.Encoder(b)
	if !it.bare {
		it.header.Code(&o.coder)
	}
	if it.record != nil {
		it.record.Code(&o.coder)
	}
	b = o.coder.Bytes()
	o.coder = wire.Coder{}
	o.ready.b = wire.EndFrame(b, mark)
	o.ready.packet(int64(len(b) - mark))
	o.traffic.sent++
}

// owed is about how many bytes wait.
func (o *output) owed() int {
	n := (len(o.items) + len(o.later)) * itemCost
	if o.ready != nil {
		n += len(o.ready.b)
	}
	return n
}

// take returns the next bytes for the socket, nil if there are none.
func (o *output) take() *buffer {
	for len(o.items) > 0 && (o.ready == nil || len(o.ready.b) < writeChunk) {
		o.encodeItems(min(len(o.items), takeItems))
	}
	b := o.ready
	o.ready = nil
	return b
}

// takeItems is how many items are encoded between two looks at writeChunk.
const takeItems = 32

// discard gives up everything that waits; the connection will be closed.
func (o *output) discard() {
	o.closed, o.reserved = true, false
	o.budget.items.Add(-int64(len(o.items) + len(o.later)))
	o.items, o.later, o.ready = nil, nil, nil
	o.drained.Broadcast()
}

// raw puts text in without a frame.
func (o *output) raw(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || o.ending {
		return
	}
	if o.ready == nil {
		o.ready = takeBuffer()
	}
	o.ready.b = append(o.ready.b, text...)
	o.ready.packet(int64(len(text)))
}

// account notes what a reader has done since the last time: packets received,
// of which n were answered by itself, the last one being xid.
func (o *output) account(packets, n int64, xid int32, op wire.OpCode, ns int64, at int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.traffic.received += packets
	if n > 0 {
		o.traffic.answered(n, xid, op, o.zxid, ns, at)
	}
}

// answered notes one request that the loop has answered.
func (o *output) answered(xid int32, op wire.OpCode, z wire.Zxid, ns int64, at int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.traffic.answered(1, xid, op, z, ns, at)
}
