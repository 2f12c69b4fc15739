package server

import (
	"sync"

	"bellwether/internal/election"
	"bellwether/internal/replica"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// inbox is where everybody leaves events for the loop. Clients' connections
// stop reading while too many of their requests are in process
// (globalOutstandingLimit, inProcessBytesMax), so that they need no bound here.
// Who reads from another server is held up here while too much of it waits: for
// the loop, or behind the loop for the disk.
type inbox struct {
	mu     sync.Mutex
	events []event
	wake   chan struct{} // of one: somebody left something

	lower   sync.Cond // on mu: one of the following went down, or somebody is let off
	links   map[zab.LinkID]int
	votes   map[wire.ServerID]int
	logging int                 // bytes that wait for the disk
	held    map[zab.LinkID]bool // links whose readers wait; false: they need not any more
	open    bool                // the loop has ended
}

// Bounds of what may wait. Whoever comes to one is let in with what it has in
// hand, so that no packet is too large.
const (
	linkBytesMax = 16 << 20  // of one link, for the loop
	logBytesMax  = 128 << 20 // of all, for the disk
	votesMax     = 1 << 10   // notifications of one server
	packetCost   = 256       // of a packet beside its data
)

// event is an event for the replica, or a question to the loop. conn is set
// where the loop has to know a new connection.
type event struct {
	event replica.Event
	conn  *conn
	ask   func(*loop)
}

// size is about what an event brings along for the log.
func (e *event) size() int {
	switch ev := e.event.(type) {
	case *replica.Request:
		return len(ev.Body)
	case replica.Zab:
		if r, ok := ev.Event.(zab.Received); ok {
			return packetCost + len(r.Packet.Data)
		}
	}
	return 0
}

func newInbox() *inbox {
	b := &inbox{wake: make(chan struct{}, 1),
		links: map[zab.LinkID]int{}, votes: map[wire.ServerID]int{}, held: map[zab.LinkID]bool{}}
	b.lower.L = &b.mu
	return b
}

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

// pushPackets leaves the packets of a link in order, when there is room.
func (b *inbox) pushPackets(link zab.LinkID, packets []*wire.QuorumPacket) {
	size := 0
	for _, p := range packets {
		size += packetCost + len(p.Data)
	}
	b.mu.Lock()
	b.held[link] = true
	for !b.open && b.held[link] && (b.links[link] >= linkBytesMax || b.logging >= logBytesMax) {
		b.lower.Wait()
	}
	delete(b.held, link)
	b.links[link] += size
	first := len(b.events) == 0
	for _, p := range packets {
		b.events = append(b.events, event{event: replica.Zab{Event: zab.Received{Link: link, Packet: p}}})
	}
	b.mu.Unlock()
	if first {
		b.ring()
	}
}

// pushHeard leaves a notification, when there is room.
func (b *inbox) pushHeard(e election.Heard) {
	b.mu.Lock()
	for !b.open && b.votes[e.From] >= votesMax {
		b.lower.Wait()
	}
	b.votes[e.From]++
	b.mu.Unlock()
	b.push(replica.Vote{Event: e}, nil)
}

// release lets the reader of a link that is to end go on, so that it can.
func (b *inbox) release(link zab.LinkID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held[link] {
		b.held[link] = false
		b.lower.Broadcast()
	}
}

// log notes that so many bytes more, or less, wait for the disk.
func (b *inbox) log(bytes int) {
	if bytes == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.logging += bytes; bytes < 0 {
		b.lower.Broadcast()
	}
}

// close holds up nobody any more: the loop has ended.
func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = true
	b.lower.Broadcast()
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
	if len(b.links)+len(b.votes) > 0 {
		clear(b.links)
		clear(b.votes)
		b.lower.Broadcast()
	}
	return out
}
