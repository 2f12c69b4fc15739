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
	"bellwether/wire"
)

const (
	// linksMax is how many learners may be connected at a time.
	linksMax = 1024
	// learnerEager is for how long refused dials of a leader are repeated without a
	// pause. A leader begins to listen when it knows that it leads, and usually that
	// takes less time than any timer can wait.
	learnerEager = 2 * time.Millisecond
	// learnerEagerTries is how many such dials there are at most. In a synctest bubble
	// the clock stands while a goroutine runs, so dials take no time and would never end.
	learnerEagerTries = 64
	// learnerRetryMin and learnerRetryMax limit the pause between further dials.
	learnerRetryMin = time.Millisecond
	learnerRetryMax = 10 * time.Millisecond
	// learnerDial is the timeout of each dial of a leader. It is short, because the next dial
	// may succeed.
	learnerDial = time.Second
	// resolveRetry is the pause after a dial that was neither refused nor timed out, for example
	// because the name cannot be resolved.
	resolveRetry = 100 * time.Millisecond
	// refusedRetryMax is the longest pause before the next dial of a leader that has refused this
	// server after the handshake. The first pause is resolveRetry.
	refusedRetryMax = 5 * time.Second
)

// lastLink is the last peerwire.LinkID given in this process.
var lastLink atomic.Uint64

// Links is the quorum port: the connections between a leader and its learners.
type Links struct {
	o          *Options
	notices    *notice.Log
	handshakes *handshakes
	figures    Figures
	ctx        context.Context
	cancel     context.CancelFunc
	done       sync.WaitGroup

	mu          sync.Mutex
	pause       time.Duration // after the last refusal; 0: a leader has answered since, or none has refused
	dialAfter   time.Time     // the end of that pause
	closed      bool
	links       map[peerwire.LinkID]*link
	memberships []*ensemble.Membership
	ports       *ports // the quorum port; nil: it is not open
	observers   *ports // the observer master port; nil: it is not open
	dialling    context.CancelFunc
}

// NewLinks returns links that neither listen nor dial yet.
func NewLinks(o Options) *Links {
	l := &Links{o: o.filled(), links: map[peerwire.LinkID]*link{}, memberships: []*ensemble.Membership{o.Membership}}
	l.notices = notice.New(l.o.Log)
	l.handshakes = &handshakes{timeout: l.o.HandshakeTimeout}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Figures returns the counters. It may be called at any time.
func (l *Links) Figures() *Figures { return &l.figures }

// SetMembership sets the addresses of servers for the next Listen or Dial; proposed may
// be nil.
func (l *Links) SetMembership(committed, proposed *ensemble.Membership) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.memberships = []*ensemble.Membership{committed, proposed}
}

// addresses returns the quorum addresses of a server.
func (l *Links) addresses(id ensemble.ServerID) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return addresses(id, ensemble.Address.Quorum, l.memberships)
}

// quorumPort is the name of the port in zoo.cfg.
const quorumPort = "quorum"

// quorum returns the addresses to listen on.
func (l *Links) quorum() []string { return local(l.addresses(l.o.ID), l.o.ListenOnAll) }

// Try reports whether Listen and ListenObservers would succeed, which a candidate must know
// before it is elected. It must not be called while one of them runs.
func (l *Links) Try() error {
	err := tryPorts(l.o, quorumPort, l.quorum())
	if err == nil && l.o.ObserverPort > 0 {
		err = tryPorts(l.o, observerPort, l.ownObserver())
	}
	return err
}

// Listen opens the quorum port, as a leader does. It does nothing if the port is open.
// One goroutine calls Listen, Unlisten, ListenObservers and UnlistenObservers.
func (l *Links) Listen() error {
	return l.listen(&l.ports, quorumPort, l.quorum, l.accept)
}

// listen opens a port that is not open.
func (l *Links) listen(at **ports, name string, addresses func() []string, accept func(net.Conn)) error {
	l.mu.Lock()
	open := *at != nil || l.closed
	l.mu.Unlock()
	if open {
		return nil
	}
	opened, err := openPorts(l.o, l.notices, name, addresses(), accept)
	if err != nil {
		return err
	}
	l.mu.Lock()
	closed := l.closed
	if !closed {
		*at = opened
	}
	l.mu.Unlock()
	if closed {
		opened.close()
	}
	return nil
}

// Unlisten closes the quorum port. Open links remain.
func (l *Links) Unlisten() { l.unlisten(&l.ports) }

func (l *Links) unlisten(at **ports) {
	l.mu.Lock()
	opened := *at
	*at = nil
	l.mu.Unlock()
	if opened != nil {
		opened.close()
	}
}

// accept handles a learner's connection; it does not block.
func (l *Links) accept(c net.Conn) {
	l.handshakes.add(c, func(c net.Conn) bool { return l.welcome(c, l.o.QueueMax) })
}

// welcome waits for the first byte of an accepted connection: a learner sends first, so a
// silent connection does not come from a learner.
func (l *Links) welcome(raw net.Conn, queueMax int) bool {
	tune(raw, l.o.WriteTimeout)
	c, err := l.o.Secure.server(raw, ForLearner, peerwire.NoServer)
	if err != nil {
		if !endedRemotely(err) {
			l.o.refused(&l.figures)
			l.notices.Say(slog.LevelWarn, refusal("a connection to the quorum port was refused", err), raw.RemoteAddr().String(), "err", err)
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
		return Opened{Link: id, Address: raw.RemoteAddr().String(), Conn: c}
	}, linkKind{queueMax: queueMax})
}

// Dial dials the leader again and again until it is connected, which Linked reports, or until
// StopDialling, DialMaster or another Dial is called.
func (l *Links) Dial(leader ensemble.ServerID) {
	l.dialLater(target{leader, func() []string { return l.addresses(leader) }})
}

// target is a server that is dialled, and its addresses.
type target struct {
	server    ensemble.ServerID
	addresses func() []string
}

func (l *Links) dialLater(t target) {
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
	l.done.Go(func() { l.dial(ctx, t) })
}

// StopDialling ends what Dial began. An open link remains.
func (l *Links) StopDialling() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dialling != nil {
		l.dialling()
		l.dialling = nil
	}
}

// leaderRefused makes the next dial wait, because a leader has refused a link after the handshake.
func (l *Links) leaderRefused() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pause = min(max(2*l.pause, resolveRetry), refusedRetryMax)
	l.dialAfter = time.Now().Add(l.pause)
}

// leaderAnswered records that a leader has sent something. So the leader does not refuse this server,
// and the next dial need not wait.
func (l *Links) leaderAnswered() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pause, l.dialAfter = 0, time.Time{}
}

// refusedPause returns how long a dial has to wait because of a refusal.
func (l *Links) refusedPause() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Until(l.dialAfter)
}

func (l *Links) dial(ctx context.Context, t target) {
	if wait := l.refusedPause(); wait > 0 && !pause(ctx, wait) {
		return
	}
	began, again := time.Now(), learnerRetryMin
	for tries := 1; ctx.Err() == nil; tries++ {
		err := l.try(ctx, t)
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
			l.o.Log.Debug("the leader cannot be reached", "sid", t.server, "err", err)
		}
		if !pause(ctx, wait) {
			return
		}
		again = min(2*again, learnerRetryMax)
	}
}

// try dials all addresses of the leader once.
func (l *Links) try(ctx context.Context, t target) error {
	limited, cancel := context.WithTimeout(ctx, min(learnerDial, l.o.ConnectTimeout))
	d, err := l.o.dialAny(limited, t.addresses())
	cancel()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { d.Close() })
	tune(d, l.o.WriteTimeout)
	d.SetDeadline(time.Now().Add(l.o.HandshakeTimeout))
	c, err := l.o.Secure.client(d.Conn, ForLearner, t.server, d.address)
	if err != nil {
		stop()
		d.Close()
		l.notices.Say(slog.LevelWarn, "the leader was reached but is not trusted, or does not trust this server", d.address, "sid", t.server, "err", err)
		return err
	}
	if !stop() { // ctx has ended
		return errClosed
	}
	c.SetDeadline(time.Time{})
	in := &input{Conn: c}
	if !l.open(ctx, in, bufio.NewReaderSize(in, readChunk), func(id peerwire.LinkID) Event { return Linked{t.server, id, c.RemoteAddr().String()} }, linkKind{learner: true, queueMax: l.o.QueueMax}) {
		d.Close()
	}
	return nil
}

// open makes a link of a connection, unless ctx has ended, and starts its goroutines. Its
// first event is the one that first returns.
func (l *Links) open(ctx context.Context, in *input, r *bufio.Reader, first func(peerwire.LinkID) Event, kind linkKind) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed || ctx.Err() != nil:
		return false
	case len(l.links) >= linksMax:
		l.o.refused(&l.figures)
		l.notices.Say(slog.LevelWarn, "a learner was refused, because too many are connected", in.RemoteAddr().String(), "max", linksMax)
		return false
	}
	k := newLink(l, peerwire.LinkID(lastLink.Add(1)), in, r, kind)
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

// forget removes a link that has ended; the link calls it.
func (l *Links) forget(k *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.links, k.id)
}

// Send queues a packet, which must not be changed afterwards. It never blocks. A link
// whose queue grows too long is ended.
func (l *Links) Send(id peerwire.LinkID, p *peerwire.QuorumPacket) { l.push(id, outgoing{packet: p}) }

// SendSnapshot queues a packet and, directly after it, the bytes that the function snapshot
// writes. The function runs on the goroutine of that link. Packets that are queued later
// follow. An error of snapshot ends the link.
//
// A tree changes while it is sent, so the snapshot may already contain transactions that follow behind it. The
// function returns the last one of them. Up to that one, packets go through Options.WithoutDigest.
func (l *Links) SendSnapshot(id peerwire.LinkID, p *peerwire.QuorumPacket, snapshot func(w io.Writer) (through wire.Zxid, err error)) {
	l.push(id, outgoing{packet: p, snapshot: snapshot})
}

// Measure starts measuring the queue of a link: how many packets wait whenever some are
// sent, and how long the first of them has waited, in ms.
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

// Close ends a link after everything queued is sent, within FlushTimeout. After that call
// Closed is the only event of the link.
func (l *Links) Close(id peerwire.LinkID) {
	if k := l.link(id); k != nil {
		k.finish()
	}
}

// CloseAll ends all links as Close does, and waits for all goroutines.
func (l *Links) CloseAll() {
	l.mu.Lock()
	l.closed = true
	var open []*link
	for _, k := range l.links {
		open = append(open, k)
	}
	l.mu.Unlock()
	l.Unlisten()
	l.UnlistenObservers()
	l.cancel()
	l.handshakes.close()
	for _, k := range slices.Clip(open) {
		k.finish()
	}
	l.done.Wait()
	l.notices.Close()
}
