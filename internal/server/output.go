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
	head     int // items before it are encoded already
	later    []item
	framed   int // bytes in items that are encoded on their own
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
// is a ConnectResponse. frame, if any, is the whole of it.
type item struct {
	header wire.ReplyHeader
	record wire.Record
	bare   bool
	frame  []byte
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
	var frame []byte
	if long(r) {
		frame = replyFrame(h, r)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed:
		return
	case o.ending: // the term in which this was read is over
	case frame == nil && o.pending() <= fillItems:
		o.encodeItems(o.pending())
		o.encode(item{header: h, record: r})
	default:
		if frame == nil { // too much lies before it
			frame = replyFrame(h, r)
		}
		o.framed += len(frame)
		o.items = append(o.items, item{frame: frame})
		o.budget.items.Add(1)
	}
	o.release()
}

// longBytes and longNames are what makes a reply too long to be encoded under
// the lock, for which an event waits with the tree's lock held.
const (
	longBytes = 64 << 10
	longNames = 1000
)

func long(r wire.Record) bool {
	switch r := r.(type) {
	case *wire.DataResponse:
		return len(r.Data) > longBytes
	case *wire.ChildrenResponse:
		return len(r.Children) > longNames
	case *wire.ChildrenStatResponse:
		return len(r.Children) > longNames
	case *wire.EphemeralsResponse, *wire.MultiResponse:
		return true
	}
	return false
}

func replyFrame(h wire.ReplyHeader, r wire.Record) []byte {
	if r == nil {
		return wire.AppendFrame(nil, &h)
	}
	return wire.AppendFrame(nil, &h, r)
}

// fillItems is how many items a reader encodes before its own reply.
const fillItems = 64

// pending is how many items are not encoded yet.
func (o *output) pending() int { return len(o.items) - o.head }

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
	if o.writing {
		return false
	}
	flush, o.dirty = !o.dirty, true
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
	for i := o.head; i < o.head+n; i++ {
		o.encode(o.items[i])
		o.items[i] = item{}
	}
	o.head += n
	o.budget.items.Add(-int64(n))
	switch {
	case o.pending() == 0 && cap(o.items) > itemsKept:
		o.items, o.head = nil, 0
	case o.pending() == 0:
		o.items, o.head = o.items[:0], 0
	case o.head > takeItems && o.head > len(o.items)/2:
		n = copy(o.items, o.items[o.head:])
		clear(o.items[n:])
		o.items, o.head = o.items[:n], 0
	}
}

// itemsKept is how much room for items an idle connection keeps.
const itemsKept = 8

func (o *output) encode(it item) {
	if o.ready == nil {
		o.ready = takeBuffer()
	}
	if it.frame != nil {
		if len(o.ready.b) == 0 && len(it.frame) > cap(o.ready.b) {
			o.ready.b = it.frame // nothing else holds it
		} else {
			o.ready.b = append(o.ready.b, it.frame...)
		}
		o.framed -= len(it.frame)
		o.count(len(it.frame)-frameHead, false)
		return
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
	if it.bare { // a ConnectResponse
		o.ready.packets++
		o.traffic.sent++
		return
	}
	o.count(len(b)-mark-frameHead, it.header.Xid == wire.XidEvent)
}

// frameHead is what stands before a frame: its length.
const frameHead = 4

// count counts a reply or an event of n bytes in ready.
func (o *output) count(n int, event bool) {
	o.ready.packet(int64(n), event)
	o.traffic.sent++
}

// owed is about how many bytes wait.
func (o *output) owed() int {
	n := (o.pending()+len(o.later))*itemCost + o.framed
	if o.ready != nil {
		n += len(o.ready.b)
	}
	return n
}

// take returns the next bytes for the socket, nil if there are none.
func (o *output) take() *buffer {
	for o.pending() > 0 && (o.ready == nil || len(o.ready.b) < writeChunk) {
		o.encodeItems(min(o.pending(), takeItems))
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
	o.budget.items.Add(-int64(o.pending() + len(o.later)))
	o.items, o.later, o.ready, o.head, o.framed = nil, nil, nil, 0, 0
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
	o.ready.packets++
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
