package server

import (
	"sync"

	"bellwether/internal/replica"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// inbox is where everybody leaves events for the loop. It has no bound of its
// own: connections stop reading while too many of their requests are in
// process (globalOutstandingLimit, inProcessBytesMax), so that it cannot grow
// beyond that.
type inbox struct {
	mu     sync.Mutex
	events []event
	wake   chan struct{} // of one: somebody left something
}

// event is an event for the replica, or a question to the loop. conn is set
// where the loop has to know a new connection.
type event struct {
	event replica.Event
	conn  *conn
	ask   func(*loop)
}

func newInbox() *inbox { return &inbox{wake: make(chan struct{}, 1)} }

// push leaves one event.
func (b *inbox) push(e replica.Event, c *conn) { b.add(event{event: e, conn: c}) }

// ask leaves a question, which the loop calls.
func (b *inbox) ask(f func(*loop)) { b.add(event{ask: f}) }

func (b *inbox) add(e event) {
	b.mu.Lock()
	b.events = append(b.events, e)
	first := len(b.events) == 1
	b.mu.Unlock()
	if first {
		b.ring()
	}
}

// pushRequests leaves requests in order; the slice stays the caller's.
func (b *inbox) pushRequests(qs []*replica.Request) {
	b.mu.Lock()
	first := len(b.events) == 0
	for _, q := range qs {
		b.events = append(b.events, event{event: q})
	}
	b.mu.Unlock()
	if first {
		b.ring()
	}
}

// pushPackets leaves the packets of a link in order.
func (b *inbox) pushPackets(link zab.LinkID, packets []*wire.QuorumPacket) {
	b.mu.Lock()
	first := len(b.events) == 0
	for _, p := range packets {
		b.events = append(b.events, event{event: replica.Zab{Event: zab.Received{Link: link, Packet: p}}})
	}
	b.mu.Unlock()
	if first {
		b.ring()
	}
}

func (b *inbox) ring() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// take returns everything left since the last call, in room's memory next time.
func (b *inbox) take(room []event) []event {
	clear(room)
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.events
	b.events = room[:0]
	return out
}
