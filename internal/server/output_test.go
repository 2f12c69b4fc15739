package server

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"bellwether/wire"
)

// TestOutputKeepsOrder: Everything that is given to an output leaves it once and in
// order: events and replies as items, and replies to reads, encoded at once or in the
// place reserved for them.
func TestOutputKeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := &output{budget: testBudget()}
		o.writeEnded.L = &o.mu
		var want, got []int32
		var place int // index of the reserved reply in want; -1: none
		place = -1
		next := int32(0)
		header := func() wire.ReplyHeader {
			next++
			return wire.ReplyHeader{Xid: next}
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				for range rapid.SampledFrom([]int{1, 3, 100}).Draw(t, "events") {
					h := header()
					o.push(item{header: h, record: &wire.WatcherEvent{Path: "/a"}})
					want = append(want, h.Xid)
				}
			},
			"reserve": func(t *rapid.T) {
				if place >= 0 {
					return // only one reply may be reserved at a time
				}
				o.reserve(7)
				place = len(want)
				want = append(want, 0)
			},
			"fill": func(t *rapid.T) {
				if place < 0 {
					return // nothing is reserved
				}
				h := header()
				if rapid.Bool().Draw(t, "late") {
					o.fillLater(h, nil)
				} else {
					o.fill(h, &wire.StatResponse{})
				}
				want[place], place = h.Xid, -1
			},
			"take": func(t *rapid.T) { got = append(got, taken(t, o)...) },
		})
		if place >= 0 {
			o.fill(wire.ReplyHeader{Xid: -7}, nil)
			want[place] = -7
		}
		for len(got) < len(want) {
			more := taken(t, o)
			if len(more) == 0 {
				t.Fatalf("%d frames came out, %d went in", len(got), len(want))
			}
			got = append(got, more...)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("frame %d is %d, want %d", i, got[i], want[i])
			}
		}
		if n := o.budget.bytes.Load(); n != 0 || o.owed() != 0 {
			t.Fatalf("%d bytes are counted and %d wait", n, o.owed())
		}
	})
}

// taken takes what is ready and returns its xids.
func taken(t *rapid.T, o *output) (xids []int32) {
	b := o.take()
	if b == nil {
		return nil
	}
	r := bytes.NewReader(whole(b))
	for r.Len() > 0 {
		frame, err := wire.ReadFrame(r, nil, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		var h wire.ReplyHeader
		if err := wire.Decode(frame, &h); err != nil {
			t.Fatal(err)
		}
		xids = append(xids, h.Xid)
	}
	if int64(len(xids)) != b.packets {
		t.Fatalf("%d packets counted, %d there", b.packets, len(xids))
	}
	o.written(b)
	return xids
}

// whole returns all bytes of a buffer, including its long part.
func whole(b *buffer) []byte {
	all := bytes.Clone(b.b)
	if b.long != nil {
		for piece := range b.long.pieces {
			all = append(all, piece...)
		}
	}
	return all
}

// TestReplyDuringAWriteNeedsNoFlush: while a goroutine writes to the socket, it also
// writes the replies that are queued meanwhile. A reply that is queued later needs
// another flush.
func TestReplyDuringAWriteNeedsNoFlush(t *testing.T) {
	o := &output{budget: testBudget(), writing: true}
	if o.fillLater(wire.ReplyHeader{Xid: 1}, nil) || o.push(item{header: wire.ReplyHeader{Xid: 2}}) {
		t.Error("the goroutine that writes must also write this reply")
	}
	o.writing = false
	if !o.push(item{header: wire.ReplyHeader{Xid: 3}}) {
		t.Error("the later reply is not flushed")
	}
}

// TestLongReplyKeepsItsPlace: a long reply is encoded before the output is locked, and
// keeps its place between the earlier and the later replies.
func TestLongReplyKeepsItsPlace(t *testing.T) {
	var o output
	o.writeEnded.L, o.budget = &o.mu, testBudget()
	event := func(xid int32) item { return item{header: wire.ReplyHeader{Xid: xid}} }
	data := bytes.Repeat([]byte("x"), longBytes+1)
	o.push(event(1))
	o.reserve(7)
	o.push(event(3))
	o.fill(wire.ReplyHeader{Xid: 2}, &wire.DataResponse{Data: data})
	var all []byte
	for b := o.take(); b != nil; b = o.take() {
		all = append(all, whole(b)...)
		o.written(b)
	}
	in := bytes.NewReader(all)
	for want := int32(1); want <= 3; want++ {
		frame, err := wire.ReadFrame(in, nil, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		var h wire.ReplyHeader
		if err := wire.Decode(frame, &h); err != nil || h.Xid != want {
			t.Fatalf("frame %d: %+v %v", want, h, err)
		}
		if want == 2 && len(frame) < len(data) {
			t.Errorf("the long reply has %d bytes", len(frame))
		}
	}
	if n := o.budget.bytes.Load(); n != 0 || o.owed() != 0 {
		t.Errorf("%d bytes are counted and %d wait", n, o.owed())
	}
}

func testBudget() *budget {
	b := &budget{each: outputMax}
	b.limit.Store(1 << 30)
	return b
}

// TestManyEventsAreMovedSeldom: what a transaction queues for a connection is not copied
// repeatedly while the queue grows.
func TestManyEventsAreMovedSeldom(t *testing.T) {
	const n = 1 << 14
	o := &output{budget: testBudget()}
	o.writeEnded.L = &o.mu
	event := &wire.WatcherEvent{Path: "/a"}
	moves, copied, room := 0, 0, 0
	for i := range n {
		o.push(item{record: event})
		if cap(o.items) != room {
			moves, copied, room = moves+1, copied+i, cap(o.items)
		}
	}
	if copied > 2*n {
		t.Errorf("%d items were copied %d times, in %d moves", n, copied, moves)
	}
}
