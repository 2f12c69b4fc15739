package peer

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"bellwether/internal/ensemble"
	"bellwether/internal/metrics"
	"bellwether/internal/notice"
	"bellwether/internal/peerwire"
)

const (
	// linksMax bounds the learners that are connected at a time.
	linksMax = 1024
	// learnerEager is for how long refused dials of a leader are repeated without
	// a pause: it begins to listen only when it knows that it leads, which where
	// all goes well is a matter of less than any timer can wait.
	learnerEager = 2 * time.Millisecond
	// learnerEagerTries is how many those are at most: where dials take no time, as in
	// a synctest bubble, whose clock stands while somebody is busy, they would have no end.
	learnerEagerTries = 64
	// learnerRetry is the pause between two further dials.
	learnerRetryMin = time.Millisecond
	learnerRetry    = 10 * time.Millisecond
	// learnerDial bounds each of those dials: another one may do better.
	learnerDial = time.Second
	// resolveRetry is the pause where it is the name that is not known.
	resolveRetry = 100 * time.Millisecond
)

// lastLink is the last peerwire.LinkID given in this process.
var lastLink atomic.Uint64

// Links is the quorum port: the connections between a leader and its learners.
type Links struct {
	o         *Options
	notices   *notice.Log
	greetings *greetings
	figures   Figures
	ctx       context.Context
	cancel    context.CancelFunc
	done      sync.WaitGroup

	mu          sync.Mutex
	closed      bool
	links       map[peerwire.LinkID]*link
	memberships []*ensemble.Membership
	ports       *ports // nil: not listening
	dialling    context.CancelFunc
}

// NewLinks returns links that neither listen nor dial yet.
func NewLinks(o Options) *Links {
	l := &Links{o: o.filled(), links: map[peerwire.LinkID]*link{}, memberships: []*ensemble.Membership{o.Membership}}
	l.notices = notice.New(l.o.Log)
	l.greetings = &greetings{timeout: l.o.HandshakeTimeout}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Figures are counted all the time; reading them is safe.
func (l *Links) Figures() *Figures { return &l.figures }

// SetMembership says where servers are from the next Listen or Dial on;
// proposed may be nil.
func (l *Links) SetMembership(committed, proposed *ensemble.Membership) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.memberships = []*ensemble.Membership{committed, proposed}
}

// addresses are the quorum addresses of a server.
func (l *Links) addresses(id ensemble.ServerID) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return addresses(id, ensemble.Address.Quorum, l.memberships)
}

// quorumPort is what zoo.cfg calls it.
const quorumPort = "quorum"

// quorum is where to listen.
func (l *Links) quorum() []string { return local(l.addresses(l.o.ID), l.o.ListenOnAll) }

// Try reports whether Listen would succeed, which who could lead has to know
// before it is elected. Not while Listen is called.
func (l *Links) Try() error { return tryPorts(l.o, quorumPort, l.quorum()) }

// Listen opens the quorum port, as a leader does. Nothing happens if it is
// open already. Listen and Unlisten are called by one goroutine.
func (l *Links) Listen() error {
	l.mu.Lock()
	open := l.ports != nil || l.closed
	l.mu.Unlock()
	if open {
		return nil
	}
	opened, err := openPorts(l.o, l.notices, quorumPort, l.quorum(), l.accept)
	if err != nil {
		return err
	}
	l.mu.Lock()
	closed := l.closed
	if !closed {
		l.ports = opened
	}
	l.mu.Unlock()
	if closed {
		opened.close()
	}
	return nil
}

// Unlisten closes the quorum port. Links that were opened remain.
func (l *Links) Unlisten() {
	l.mu.Lock()
	opened := l.ports
	l.ports = nil
	l.mu.Unlock()
	if opened != nil {
		opened.close()
	}
}

// accept takes in a learner; it does not block.
func (l *Links) accept(c net.Conn) { l.greetings.add(c, l.welcome) }

// welcome treats an accepted connection until its first byte has arrived:
// learners speak first, and who does not is none.
func (l *Links) welcome(raw net.Conn) bool {
	tune(raw, l.o.WriteTimeout)
	c, err := l.o.Secure.server(raw, ForLearner, peerwire.NoServer)
	if err != nil {
		if !endedThere(err) {
			l.figures.Refused.Add(1)
			l.notices.Say(slog.LevelWarn, "a connection to the quorum port was refused", raw.RemoteAddr().String(), "err", err)
		}
		return false
	}
	in := &input{Conn: c}
	r := bufio.NewReaderSize(in, readChunk)
	if _, err := r.Peek(1); err != nil {
		return false
	}
	c.SetDeadline(time.Time{})
	return l.open(l.ctx, in, r, func(id peerwire.LinkID) Event {
		return Opened{Link: id, Address: raw.RemoteAddr().String()}
	}, false)
}

// Dial tries to reach the leader until Linked says that it was, or until
// Hang or another Dial.
func (l *Links) Dial(leader ensemble.ServerID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	if l.dialling != nil {
		l.dialling()
	}
	var ctx context.Context
	ctx, l.dialling = context.WithCancel(l.ctx)
	l.done.Go(func() { l.dial(ctx, leader) })
}

// Hang ends what Dial began. A link that was made remains.
func (l *Links) Hang() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dialling != nil {
		l.dialling()
		l.dialling = nil
	}
}

func (l *Links) dial(ctx context.Context, leader ensemble.ServerID) {
	began, again := time.Now(), learnerRetryMin
	for tries := 1; ctx.Err() == nil; tries++ {
		err := l.try(ctx, leader)
		if err == nil || ctx.Err() != nil {
			return
		}
		l.figures.DialFailures.Add(1)
		wait := again
		switch {
		case refused(err) && tries < learnerEagerTries && time.Since(began) < learnerEager:
			continue
		case !refused(err) && !timedOut(err):
			wait = resolveRetry
			l.o.Log.Debug("the leader cannot be reached", "sid", leader, "err", err)
		}
		if !pause(ctx, wait) {
			return
		}
		again = min(2*again, learnerRetry)
	}
}

// try makes one attempt to reach the leader at all its addresses.
func (l *Links) try(ctx context.Context, leader ensemble.ServerID) error {
	limited, cancel := context.WithTimeout(ctx, min(learnerDial, l.o.ConnectTimeout))
	d, err := l.o.dialAny(limited, l.addresses(leader))
	cancel()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { d.Close() })
	tune(d, l.o.WriteTimeout)
	d.SetDeadline(time.Now().Add(l.o.HandshakeTimeout))
	c, err := l.o.Secure.client(d.Conn, ForLearner, leader, d.address)
	if err != nil {
		stop()
		d.Close()
		l.notices.Say(slog.LevelWarn, "the leader was reached but is not trusted, or does not trust this server", d.address, "sid", leader, "err", err)
		return err
	}
	if !stop() { // ctx has ended
		return errClosed
	}
	c.SetDeadline(time.Time{})
	in := &input{Conn: c}
	if !l.open(ctx, in, bufio.NewReaderSize(in, readChunk), func(id peerwire.LinkID) Event { return Linked{leader, id, c.RemoteAddr().String()} }, true) {
		d.Close()
	}
	return nil
}

// open makes a link of a connection, unless ctx has ended by now, and starts
// its goroutines. Its first event is the one that first returns.
func (l *Links) open(ctx context.Context, in *input, r *bufio.Reader, first func(peerwire.LinkID) Event, learner bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed || ctx.Err() != nil:
		return false
	case len(l.links) >= linksMax:
		l.figures.Refused.Add(1)
		l.notices.Say(slog.LevelWarn, "too many learners", in.RemoteAddr().String(), "max", linksMax)
		return false
	}
	k := newLink(l, peerwire.LinkID(lastLink.Add(1)), in, r, learner)
	l.links[k.id] = k
	l.figures.Connections.Add(1)
	l.done.Go(func() { k.run(first(k.id)) })
	return true
}

// link returns an open link; nil if it has ended.
func (l *Links) link(id peerwire.LinkID) *link {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.links[id]
}

// forget is called by a link that has ended.
func (l *Links) forget(k *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.links, k.id)
}

// Send queues a packet, which must not be changed afterwards. It never
// blocks; a link that takes too little of what is queued ends.
func (l *Links) Send(id peerwire.LinkID, p *peerwire.QuorumPacket) { l.push(id, outgoing{packet: p}) }

// SendSnapshot queues a packet and behind it what snapshot writes, on the
// goroutine of that link. What is queued later follows. An error of snapshot
// ends the link.
func (l *Links) SendSnapshot(id peerwire.LinkID, p *peerwire.QuorumPacket, snapshot func(w io.Writer) error) {
	l.push(id, outgoing{packet: p, snapshot: snapshot})
}

// Measure has the queue of a link measured from now on: the packets that wait
// whenever some are sent, and how long the first of them has waited, in ms.
func (l *Links) Measure(id peerwire.LinkID, packets, wait *metrics.Summary) {
	if k := l.link(id); k != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.gauge = gauge{packets: packets, wait: wait}
	}
}

func (l *Links) push(id peerwire.LinkID, o outgoing) {
	if k := l.link(id); k == nil || !k.push(o) {
		l.figures.Dropped.Add(1)
	}
}

// Close ends a link behind what was queued, for which there is FlushTimeout.
// Nothing of it is received any more, except Closed.
func (l *Links) Close(id peerwire.LinkID) {
	if k := l.link(id); k != nil {
		k.finish()
	}
}

// CloseAll ends everything as Close does, and waits for all goroutines.
func (l *Links) CloseAll() {
	l.mu.Lock()
	l.closed = true
	var open []*link
	for _, k := range l.links {
		open = append(open, k)
	}
	l.mu.Unlock()
	l.Unlisten()
	l.cancel()
	l.greetings.close()
	for _, k := range slices.Clip(open) {
		k.finish()
	}
	l.done.Wait()
	l.notices.Close()
}
