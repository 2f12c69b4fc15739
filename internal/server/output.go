package server

import (
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"bellwether/wire"
)

const (
	// writeChunk is about how many bytes are encoded for one write to the socket. A large
	// buffer has space for that.
	writeChunk = bufferKept - 8<<10
	// lingerMax is how long a client may take to accept the last replies of a connection
	// that is to be closed.
	lingerMax = 5 * time.Second
	// lingerStopping replaces lingerMax when the server stops. It then also limits every write.
	lingerStopping = 500 * time.Millisecond
)

// output holds what a connection must send to its client. The order is: ready, then
// items, then the reply for which a read has reserved a place, then later. Replies to
// reads are encoded by the goroutine that carried out the read. Events and replies to
// writes wait as items, so that the loop encodes nothing. Invariants: items before head
// are encoded and empty; later is empty unless reserved is set; if closed is set, nothing
// waits; only the goroutine that has set writing writes to the socket.
type output struct {
	mu         sync.Mutex
	writeEnded sync.Cond // on mu: a write has ended, or the connection is closed
	ready      *buffer
	items      []item
	head       int // number of items that are encoded already
	later      []item
	queued     int // memory of items and later, without long parts
	long       int // bytes of their long parts
	names      int // bytes of the long parts that are lists of names, which other outputs hold as well
	taken      int // memory of the buffer that is being written
	takenLong  int // bytes of the long part that is written after this buffer
	counted    int // bytes that the budget counts for queued, ready and taken
	reserved   bool
	zxid       wire.Zxid // zxid of the reserved reply
	writing    bool      // a goroutine writes to the socket; it checks for new output before it stops
	listed     bool      // the connection is in the server's pendingFlush
	ending     bool      // accept nothing more, and close the socket when everything is written
	closed     bool      // the output is dropped: accept nothing more
	traffic    traffic
	budget     *budget
	since      int64      // the server's clock when the current write began
	coder      wire.Coder // reused by encode
	traced     []*Trace   // traces of requests whose replies are not written yet
}

// item is a reply or an event that is not encoded yet. A bare item is a ConnectResponse.
// A framed item consists of its long part alone, which includes the length and the
// header.
type item struct {
	header wire.ReplyHeader
	record wire.Record
	bare   bool
	framed bool
	long   *longPart // nil: the item has no long part
}

// push adds an item at the end. If a place is reserved for a reply, the item comes after that
// reply. If push returns true, the caller must add the connection to pendingFlush.
func (o *output) push(it item) (flush bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || o.ending {
		return false
	}
	o.add(it, o.reserved)
	if o.budget.exceeded(o.owed()-o.names, o.holds()) {
		o.discard()
	} else if o.writing {
		return false
	}
	flush, o.listed = !o.listed, true
	return flush
}

// add queues an item: in items, or in later if later is true.
func (o *output) add(it item, later bool) {
	queue := &o.items
	if later {
		queue = &o.later
	}
	if n := len(*queue); n == cap(*queue) {
		// append alone would copy the items of a burst of events several times.
		*queue = slices.Grow(*queue, max(n, 1))
	}
	*queue = append(*queue, it)
	o.queued += it.cost()
	if it.long != nil {
		o.lengthen(it.long, 1)
		o.budget.hold(it.long)
	}
	o.count()
}

// lengthen counts a long part that enters the queue (by is 1) or leaves it (by is -1).
func (o *output) lengthen(l *longPart, by int) {
	o.long += by * l.bytes
	if l.names != nil {
		o.names += by * l.bytes
	}
}

// count tells the budget how much memory is in use beyond a small buffer. For a client
// that reads its replies promptly the amount does not change, and nothing is counted.
func (o *output) count() {
	n := o.queued + o.taken
	if o.ready != nil {
		n += cap(o.ready.b)
	}
	if n = max(n-bufferStart, 0); n != o.counted {
		o.budget.add(n - o.counted)
		o.counted = n
	}
}

// reserve keeps the place of a reply. z is the zxid of its header.
func (o *output) reserve(z wire.Zxid) {
	o.mu.Lock()
	o.reserved, o.zxid = true, z
	o.mu.Unlock()
}

// fill puts a reply into the reserved place. It encodes the record, or copies it if
// it is long, so the caller may reuse the record.
func (o *output) fill(h wire.ReplyHeader, r wire.Record) {
	it := item{header: h, record: r, long: longOf(r)}
	if it.long == nil && framedAlone(r) {
		it.framed, it.long = true, longFrame(h, r)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed:
		return
	case o.ending: // finishLater or finishUnanswered was called: the reply is dropped
	case it.long != nil:
		o.add(it.kept(), false)
	case o.pending() <= fillItems && !o.blocked():
		o.encodeItems(o.pending())
		if !o.blocked() {
			o.encode(it)
			break
		}
		o.add(framed(h, r), false)
	default: // too many items before it wait to be encoded
		o.add(framed(h, r), false)
	}
	o.release()
	o.count()
}

// blocked reports whether nothing may be encoded after ready, because ready ends with a
// long part.
func (o *output) blocked() bool { return o.ready != nil && o.ready.long != nil }

// kept returns the item with a record that the reader does not reuse.
func (it item) kept() item {
	switch r := it.record.(type) {
	case *wire.DataResponse:
		it.record = &wire.DataResponse{Data: r.Data}
	case *manyChildren:
		it.record = &manyChildren{names: r.names}
	}
	return it
}

// framed returns an item that is encoded already.
func framed(h wire.ReplyHeader, r wire.Record) item {
	it := item{record: r}
	f := wire.AppendFrame(make([]byte, 0, it.cost()), &h)
	if r != nil {
		f = wire.AppendFrame(f[:0], &h, r)
	}
	return item{framed: true, long: &longPart{data: f, bytes: len(f)}}
}

// fillItems is how many items a reader encodes before its own reply.
const fillItems = 64

// pending returns how many items are not encoded yet.
func (o *output) pending() int { return len(o.items) - o.head }

// fillLater is like fill, but without encoding; the caller must not reuse the record. If it returns
// true, the caller must add the connection to pendingFlush.
func (o *output) fillLater(h wire.ReplyHeader, r wire.Record) (flush bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	o.add(item{header: h, record: r, long: longOf(r)}, false)
	o.release()
	if o.budget.exceeded(o.queued, o.holds()) {
		o.discard()
	} else if o.writing {
		return false
	}
	flush, o.listed = !o.listed, true
	return flush
}

// release moves what came after the reserved place behind the reply.
func (o *output) release() {
	o.reserved = false
	if len(o.later) > 0 {
		o.items = append(o.items, o.later...)
		clear(o.later)
		o.later = o.later[:0]
	}
}

// encodeItems moves n items to ready, but none after the first long part.
func (o *output) encodeItems(n int) {
	end := o.head + n
	for ; o.head < end && !o.blocked(); o.head++ {
		it := &o.items[o.head]
		o.queued -= it.cost()
		if it.long != nil {
			o.lengthen(it.long, -1)
		}
		o.encode(*it)
		*it = item{}
	}
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

// itemsKept is how many items an idle connection keeps memory for.
const itemsKept = 8

// encode adds an item to ready. A long part ends ready.
func (o *output) encode(it item) {
	o.makeRoom(&it)
	if it.framed {
		o.ready.long = it.long
		o.counts(it.long.bytes-frameHead, false)
		return
	}
	b, mark := wire.BeginFrame(o.ready.b)
	o.coder = wire.Encoder(b)
	if !it.bare {
		it.header.Code(&o.coder)
	}
	switch {
	case it.long != nil:
		longHead(&o.coder, it.record)
	case it.record != nil:
		it.record.Code(&o.coder)
	}
	b = o.coder.Bytes()
	o.coder = wire.Coder{}
	size := len(b) - mark - frameHead
	if it.long != nil {
		size += it.long.bytes
		o.ready.long = it.long
		binary.BigEndian.PutUint32(b[mark:], uint32(size))
	} else {
		b = wire.EndFrame(b, mark)
	}
	o.ready.b = b
	if it.bare { // a ConnectResponse
		o.ready.packets++
		o.traffic.sent++
		o.traffic.bytesOut += int64(frameHead + size)
		return
	}
	o.counts(size, it.header.Xid == wire.XidEvent)
}

// makeRoom prepares ready for an item. Short replies collect in a small buffer, then in a
// large one unless memory is short. A longer reply makes the buffer grow.
func (o *output) makeRoom(it *item) {
	if o.ready == nil {
		o.ready = takeBuffer()
	}
	b := o.ready
	if it.framed || cap(b.b)-len(b.b) >= it.cost() || cap(b.b) >= bufferKept || o.budget.busy() {
		return
	}
	large := takeLarge()
	large.b, b.b = b.b[:0], append(large.b, b.b...)
	giveBuffer(large)
}

// frameHead is the length of the length field of a frame.
const frameHead = 4

// counts updates the figures for a reply or an event of n bytes in ready.
func (o *output) counts(n int, event bool) {
	o.ready.packet(int64(n), event)
	o.traffic.sent++
	o.traffic.bytesOut += int64(frameHead + n)
}

// owed returns about how many bytes wait for the client.
func (o *output) owed() int {
	n := o.queued + o.long
	if o.ready != nil {
		n += len(o.ready.b)
		if o.ready.long != nil {
			n += o.ready.long.bytes
		}
	}
	return n
}

// take returns the next bytes for the socket, nil if there are none. They are counted
// until written is called.
func (o *output) take() *buffer {
	chunk := writeChunk
	if o.budget.busy() {
		chunk = replyFree
	}
	for o.pending() > 0 && !o.blocked() && (o.ready == nil || len(o.ready.b) < chunk) {
		o.encodeItems(min(o.pending(), takeItems))
	}
	b := o.ready
	o.ready = nil
	if b != nil {
		o.taken = cap(b.b)
		if b.long != nil {
			o.takenLong = b.long.bytes
		}
	}
	o.count()
	return b
}

// holds returns about how many bytes this output keeps in memory.
func (o *output) holds() int { return o.owed() + o.taken + o.takenLong }

// written must be called when a buffer from take is no longer used.
func (o *output) written(b *buffer) {
	if b.long != nil {
		o.budget.release(b.long)
	}
	giveBuffer(b)
	o.taken, o.takenLong = 0, 0
	o.count()
}

// takeItems is how many items are encoded between two checks of writeChunk.
const takeItems = 32

// discard drops everything that waits and accepts nothing more. The connection is about
// to be closed.
func (o *output) discard() {
	o.closed, o.reserved = true, false
	for _, queue := range [][]item{o.items[o.head:], o.later} {
		for i := range queue {
			if queue[i].long != nil {
				o.budget.release(queue[i].long)
			}
		}
	}
	if o.blocked() {
		o.budget.release(o.ready.long)
	}
	o.items, o.later, o.ready, o.head, o.queued, o.long, o.names = nil, nil, nil, 0, 0, 0, 0
	o.count()
	o.writeEnded.Broadcast()
}

// raw adds text without a frame.
func (o *output) raw(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || o.ending {
		return
	}
	if o.ready == nil {
		o.ready = takeBuffer()
	}
	// A long text is copied in steps, so that other goroutines can run in between.
	o.ready.b = slices.Grow(o.ready.b, len(text))
	for len(text) > 0 {
		n := min(len(text), bufferKept)
		o.ready.b, text = append(o.ready.b, text[:n]...), text[n:]
	}
	o.ready.packets++
}

// account records the requests of a reader since the last call: b says how many it has
// received and how many of them it has answered itself, each within ns.
func (o *output) account(b *batch, ns int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.traffic.received += b.packets
	o.traffic.bytesIn += b.bytes
	if b.direct > 0 {
		o.traffic.answered(b.direct, b.xid, b.op, o.zxid, ns, b.start+ns)
	}
}

// answered records one request that the loop has answered.
func (o *output) answered(xid int32, op wire.OpCode, z wire.Zxid, ns int64, at int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.traffic.answered(1, xid, op, z, ns, at)
}
