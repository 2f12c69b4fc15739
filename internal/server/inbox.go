package server

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"bellwether/internal/election"
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/replica"
	"bellwether/internal/zab"
)

// inbox is where everybody leaves events for the loop. Clients' connections
// stop reading while too many of their requests are in process
// (globalOutstandingLimit, inProcessBytesMax), or while too much waits for the
// disk (full).
//
// What waits for the disk never stops the reader of a link between servers,
// because control packets (ACK, PING, the handshake, COMMIT) arrive on the same
// stream as data. Data alone is held back (decision 0016):
//
//   - A leader parks the REQUESTs of a learner and reads on. A learner that
//     brings more than parkBytesMax, or more than there is room for in all
//     (parkTotalMax), loses its link.
//   - A follower in service cannot refuse the proposals of its leader. It gives
//     up its link, and comes back by itself.
//   - A learner that is being synchronised is the exception: its history comes
//     before everything else on the stream, so its reader waits for the disk,
//     at half the bound: proposals arrive as soon as the history has, and a link
//     that ended again at once would help nobody.
type inbox struct {
	mu     sync.Mutex
	events []event
	wake   chan struct{} // of one: somebody left something

	lower   sync.Cond // on mu: one of the following went down, or somebody is let off
	links   map[zab.LinkID]int
	votes   map[ensemble.ServerID]int
	logging int                 // bytes that wait for the disk
	most    int                 // of them, before data is held back
	full    atomic.Bool         // these are so many that no further request of a client is to be read
	held    map[zab.LinkID]bool // links whose readers wait; false: they need not any more
	open    bool                // the loop has ended

	leaders map[zab.LinkID]leaderLink
	pinged  zab.Arrived // of the newest link to a leader, what waits for the loop
	parked  map[zab.LinkID]*parked
	parks   int // bytes of all parked requests
}

// leaderLink is what the inbox knows of a link to a leader.
type leaderLink struct{ serves bool } // UPTODATE has come

// parked are REQUESTs of a learner that wait until the disk has caught up, in
// their order.
type parked struct {
	events []event
	bytes  int
}

// Bounds of what may wait. Whoever comes to one is let in with what it has in
// hand, so that no packet is too large.
const (
	linkBytesMax = 16 << 20  // of one link, for the loop
	diskQueueMax = 128 << 20 // of all, for the disk: the default
	// parkBytesMax is above what a follower of ours has in process for its clients.
	parkBytesMax = inProcessBytesMax + linkBytesMax
	// parkTotalMax bounds the requests of all learners, however many there are.
	parkTotalMax = 4 * parkBytesMax
	votesMax     = 1 << 10 // notifications of one server
	packetCost   = 256     // of a packet beside its data
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

func newInbox(diskQueueMax int) *inbox {
	b := &inbox{most: diskQueueMax, wake: make(chan struct{}, 1),
		links: map[zab.LinkID]int{}, votes: map[ensemble.ServerID]int{}, held: map[zab.LinkID]bool{},
		leaders: map[zab.LinkID]leaderLink{}, parked: map[zab.LinkID]*parked{}}
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

// follows notes that a link goes to a leader.
func (b *inbox) follows(link zab.LinkID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leaders[link] = leaderLink{}
	b.pinged = zab.Arrived{Link: link}
}

// pings is how many pings of the leader wait for the loop.
func (b *inbox) pings() zab.Arrived {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pinged
}

// closed drops what is kept of a link that has ended, parked requests included:
// their server sends them again to its next leader.
func (b *inbox) closed(link zab.LinkID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.leaders, link)
	if p := b.parked[link]; p != nil {
		b.parks -= p.bytes
		delete(b.parked, link)
	}
}

// What ends a link because of the disk.
var (
	errBehind = errors.New("too much waits for the disk of this server")
	errParked = fmt.Errorf("more than %d MiB of requests of one server, or %d MiB of all, wait until the disk of this server has caught up",
		parkBytesMax>>20, parkTotalMax>>20)
)

// pushPackets leaves the packets of a link in order, when there is room. After an
// error the first of them were left or none, and the link is to end.
func (b *inbox) pushPackets(link zab.LinkID, packets []*peerwire.QuorumPacket) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	leader, learns := b.leaders[link]
	b.held[link] = true
	for !b.open && b.held[link] && (b.links[link] >= linkBytesMax || learns && !leader.serves && b.logging >= b.most/2) {
		b.lower.Wait()
	}
	delete(b.held, link)
	if leader.serves && b.logging >= b.most {
		return errBehind
	}
	first := len(b.events) == 0
	defer func() {
		if first && len(b.events) > 0 {
			b.ring()
		}
	}()
	for _, p := range packets {
		e := event{event: replica.Zab{Event: zab.Received{Link: link, Packet: p}}}
		switch {
		case learns && p.Type == peerwire.PacketPing && b.pinged.Link == link:
			b.pinged.Pings++
		case learns && p.Type == peerwire.PacketUpToDate:
			b.leaders[link] = leaderLink{serves: true}
		case !learns && p.Type == peerwire.PacketRequest && (b.logging >= b.most || b.parked[link] != nil):
			if !b.park(link, e) {
				return errParked
			}
			continue
		}
		b.links[link] += e.size()
		b.events = append(b.events, e)
	}
	return nil
}

// park keeps a request until the disk has caught up; false: there are too many.
// The lock is held.
func (b *inbox) park(link zab.LinkID, e event) bool {
	p := b.parked[link]
	if p == nil {
		p = &parked{}
		b.parked[link] = p
	}
	p.events = append(p.events, e)
	p.bytes += e.size()
	b.parks += e.size()
	return p.bytes <= parkBytesMax && b.parks <= parkTotalMax
}

// unpark adds parked requests to events, as many bytes as the disk has room for.
// The lock is held.
func (b *inbox) unpark(events []event) []event {
	room := b.most - b.logging
	for link, p := range b.parked {
		for room > 0 && len(p.events) > 0 {
			size := p.events[0].size()
			events = append(events, p.events[0])
			p.events[0] = event{}
			p.events, p.bytes, room = p.events[1:], p.bytes-size, room-size
			b.parks -= size
		}
		if len(p.events) == 0 {
			delete(b.parked, link)
		}
	}
	if room <= 0 && b.logging < b.most && len(b.parked) > 0 {
		b.ring() // for the rest, if these turn out to need no disk
	}
	return events
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
	b.logging += bytes
	b.full.Store(b.logging >= b.most && !b.open)
	if bytes < 0 {
		b.lower.Broadcast()
		if len(b.parked) > 0 && b.logging < b.most {
			b.ring()
		}
	}
}

// close holds up nobody any more: the loop has ended.
func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = true
	b.full.Store(false)
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
	b.pinged.Pings = 0
	if len(b.parked) > 0 {
		out = b.unpark(out)
	}
	if len(b.links)+len(b.votes) > 0 {
		clear(b.links)
		clear(b.votes)
		b.lower.Broadcast()
	}
	return out
}
