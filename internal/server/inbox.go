package server

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"bellwether/internal/election"
	"bellwether/internal/ensemble"
	"bellwether/internal/fifo"
	"bellwether/internal/peerwire"
	"bellwether/internal/replica"
	"bellwether/internal/zab"
)

// inbox holds the events for the loop, which all other goroutines leave here. Connections
// of clients stop reading while too many of their requests are in process
// (globalOutstandingLimit, inProcessBytesMax), or while too much waits for the disk
// (full).
//
// A full disk queue never stops the reader of a link between servers, because control
// packets (ACK, PING, the handshake, COMMIT) arrive on the same stream as data. Only data
// is held back (decision 0016):
//
//   - A leader parks the REQUESTs of a learner and reads on. A learner that sends more
//     than parkBytesMax loses its link, and so does one whose requests would exceed
//     parkTotalMax for all learners.
//   - A follower that serves cannot refuse the proposals of its leader. It closes its
//     link and reconnects.
//   - A learner that is being synchronised is an exception: its history comes before
//     everything else on the stream, so its reader waits for the disk. It waits at half
//     the limit, because proposals follow the history at once, and at the full limit they
//     would close the link again.
//
// Invariants: logging >= 0; parks is the sum of the bytes of parked; a link has an entry
// in parked only while requests of it wait.
type inbox struct {
	mu     sync.Mutex
	events []event
	wake   chan struct{} // capacity 1; signalled when an event arrives

	lower   sync.Cond // on mu: links, votes or logging went down, or a reader need not wait any more
	links   map[zab.LinkID]int
	votes   map[ensemble.ServerID]int
	logging int                 // bytes that wait for the disk
	most    int                 // limit of logging, above which data is held back
	full    atomic.Bool         // logging has reached the limit: no further client request is read
	held    map[zab.LinkID]bool // links whose readers wait; false: they must stop waiting
	open    bool                // the loop has ended: nothing waits any more

	leaders map[zab.LinkID]leaderLink
	pinged  zab.Arrived // pings of the newest link to a leader that wait for the loop
	parked  map[zab.LinkID]*parked
	parks   int // bytes of all parked requests
}

// leaderLink holds what the inbox knows about a link to a leader.
type leaderLink struct{ serves bool } // UPTODATE has arrived

// parked holds the REQUESTs of a learner that wait until the disk has caught up, in their
// order.
type parked struct {
	events fifo.Queue[event]
	bytes  int
}

// Limits of what may wait. They are checked before adding, so one packet or batch may
// exceed them and no packet is too large.
const (
	linkBytesMax = 16 << 20  // bytes from one link that wait for the loop
	diskQueueMax = 128 << 20 // bytes from all sources that wait for the disk, unless configured otherwise
	// parkBytesMax bounds the parked requests of one learner. It exceeds what a native follower forwards
	// before it stops reading from its clients, so only other learners can reach it.
	parkBytesMax = inProcessBytesMax + linkBytesMax
	// parkTotalMax bounds the parked requests of all learners together.
	parkTotalMax = 4 * parkBytesMax
	votesMax     = 1 << 10 // notifications from one server
	packetCost   = 256     // cost of a packet in addition to its data
)

// event is an event for the replica, or a function for the loop to call. conn is set if
// the event introduces a new connection.
type event struct {
	event replica.Event
	conn  *conn
	ask   func(*loop)
}

// size returns about how many bytes an event adds to the log.
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

// push adds one event.
func (b *inbox) push(e replica.Event, c *conn) { b.add(event{event: e, conn: c}) }

// ask adds a function that the loop calls.
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

// pushRequests adds requests in order. It does not keep the slice.
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

// follows records that a link goes to a leader.
func (b *inbox) follows(link zab.LinkID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leaders[link] = leaderLink{}
	b.pinged = zab.Arrived{Link: link}
}

// pings returns how many pings of the leader wait for the loop.
func (b *inbox) pings() zab.Arrived {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pinged
}

// closed drops what the inbox holds about a link that has ended, including parked
// requests: their server sends them again to its next leader.
func (b *inbox) closed(link zab.LinkID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.leaders, link)
	if p := b.parked[link]; p != nil {
		b.parks -= p.bytes
		delete(b.parked, link)
	}
}

// Reasons to close a link because of the disk.
var (
	errBehind = errors.New("too many bytes wait for the disk of this server")
	errParked = fmt.Errorf("more than %d MiB of requests of one server, or %d MiB of all servers, wait for the disk of this server",
		parkBytesMax>>20, parkTotalMax>>20)
)

// pushPackets waits until packets of a link may be added, and adds them in order. If it
// returns an error, the link must be closed; some of the packets may have been added.
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

// park keeps a request until the disk has caught up. It returns false if too many are
// parked. The lock must be held.
func (b *inbox) park(link zab.LinkID, e event) bool {
	p := b.parked[link]
	if p == nil {
		p = &parked{}
		b.parked[link] = p
	}
	p.events.Push(e)
	p.bytes += e.size()
	b.parks += e.size()
	return p.bytes <= parkBytesMax && b.parks <= parkTotalMax
}

// unpark moves parked requests to events, up to as many bytes as the disk limit allows.
// The lock must be held.
func (b *inbox) unpark(events []event) []event {
	room := b.most - b.logging
	for link, p := range b.parked {
		for room > 0 && p.events.Len() > 0 {
			e := p.events.Pop()
			events = append(events, e)
			p.bytes, room, b.parks = p.bytes-e.size(), room-e.size(), b.parks-e.size()
		}
		if p.events.Len() == 0 {
			delete(b.parked, link)
		}
	}
	if room <= 0 && b.logging < b.most && len(b.parked) > 0 {
		b.ring() // the loop must take the remaining requests even if the moved ones write nothing
	}
	return events
}

// pushHeard adds a notification, and waits while the server has too many in the inbox.
func (b *inbox) pushHeard(e election.Heard) {
	b.mu.Lock()
	for !b.open && b.votes[e.From] >= votesMax {
		b.lower.Wait()
	}
	b.votes[e.From]++
	b.mu.Unlock()
	b.push(replica.Vote{Event: e}, nil)
}

// release stops the wait of a link's reader, so that the link can end.
func (b *inbox) release(link zab.LinkID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held[link] {
		b.held[link] = false
		b.lower.Broadcast()
	}
}

// log counts bytes that wait for the disk; bytes is negative when they are written.
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

// close ends all waits: the loop has ended.
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

// take returns all events since the last call. The memory of room is reused for new ones.
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
