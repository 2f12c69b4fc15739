package peer

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"time"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// The times of dialling.
const (
	// retryMin is the first pause between dials when nothing waits to be sent. Each
	// further one is twice as long, up to Options.RetryMax.
	retryMin = 10 * time.Millisecond
	// sendGap is the least time between a refused dial and the next one for a Send.
	sendGap = 2 * time.Millisecond
	// callBackGap is how long a server with a larger id has to dial back. If this server
	// announced itself again before that, the other server would close the connection that
	// it has just made.
	callBackGap = 200 * time.Millisecond
	// settledAfter is how long a connection must have existed if its end is to be followed by
	// a dial at once. A connection on which a message has arrived need not have existed for
	// that long.
	settledAfter = 100 * time.Millisecond
	// callsMax is how often a stranger is dialled back.
	callsMax = 3
	// refusedRetryMin is the first pause before the next dial of a server that has refused this
	// one with a TLS alert. Each further pause is twice as long, up to Options.RetryMax.
	refusedRetryMin = 100 * time.Millisecond
	// electionDead is how long sent data may stay unacknowledged.
	electionDead = 5 * time.Second
)

// remote is another server as the mesh sees it. Its goroutine, run, dials. The mesh's
// lock guards what may change.
type remote struct {
	m      *Mesh
	id     ensemble.ServerID
	ctx    context.Context // ends when the remote is dropped
	cancel context.CancelFunc
	wake   chan struct{} // has capacity one: run must check what there is to do

	stranger         bool     // the server is not in the membership
	keep             bool     // a connection is wanted even if nothing waits to be sent
	addresses        []string // addresses in the membership
	advertised       []string // addresses in its last initial message
	callsLeft        int      // how often this server must still dial the other one, because that one has announced itself
	advertisedFailed bool     // the addresses in advertised could not be reached the last time

	conn *conn
	slot []byte // the one frame that waits to be sent; nil: none
	last []byte // the frame that was sent last; it is resent on a new connection

	dialling      context.CancelFunc // cancels the dial under way; nil: there is none
	dialCancelled bool               // that dial was cancelled because a better address or connection is there
	endedByPeer   bool               // the last connection was ended by the other side
	tried         time.Time          // when the last dial began
	announced     time.Time          // when this server last announced itself to the other
	next          time.Time          // when the next dial may begin
	backoff       time.Duration
	refused       time.Duration // the pause after the last connection that the other server has refused by TLS; zero: it has accepted one
	dialAfter     time.Time     // the end of that pause: no dial begins before it
}

func newRemote(m *Mesh, id ensemble.ServerID) *remote {
	r := &remote{m: m, id: id, wake: make(chan struct{}, 1), backoff: retryMin}
	r.ctx, r.cancel = context.WithCancel(m.ctx)
	return r
}

// wakeRun makes run check again what there is to do.
func (r *remote) wakeRun() {
	select {
	case r.wake <- struct{}{}:
	default: // a wake-up is pending already
	}
}

// dialSoon makes run dial as soon as earliest allows, because something waits to be sent.
// The caller holds the lock.
func (r *remote) dialSoon() {
	if soon := r.earliest(sendGap); soon.Before(r.next) {
		r.next = soon
	}
	r.backoff = retryMin
	r.wakeRun()
}

// earliest returns when the next dial may begin: gap after the last dial, but not before
// the other server has had the time to dial back (callBackGap), and not before dialAfter.
// The caller holds the lock.
func (r *remote) earliest(gap time.Duration) time.Time {
	t := r.tried.Add(gap)
	for _, other := range []time.Time{r.announced.Add(callBackGap), r.dialAfter} {
		if other.After(t) {
			t = other
		}
	}
	return t
}

// refusedBy logs that the other server has refused a connection of this one after the handshake of TLS, as it
// does with a certificate that it does not accept, and makes the next dial wait. Without the pause, a server
// that wants to send its votes would dial at once, again and again.
func (r *remote) refusedBy(address string, err error) {
	r.m.notices.Say(slog.LevelWarn, "a server refused the connection of this server to its election port", address, "sid", r.id, "err", err)
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	r.refused = min(max(2*r.refused, refusedRetryMin), r.m.o.RetryMax)
	r.dialAfter = time.Now().Add(r.refused)
}

// backOff sets the pause before the next dial if nothing waits to be sent, and doubles the
// pause after that. The caller holds the lock.
func (r *remote) backOff() {
	r.next = r.earliest(time.Since(r.tried) + r.backoff)
	r.backoff = min(2*r.backoff, r.m.o.RetryMax)
}

// cancelDial cancels a dial that is under way. The caller holds the lock.
func (r *remote) cancelDial() {
	if r.dialling != nil {
		r.dialling()
		r.dialCancelled = true
	}
}

// run dials whenever that is due.
func (r *remote) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		wait, wanted := r.due()
		if wanted && wait <= 0 {
			r.dial()
			continue
		}
		if wanted {
			timer.Reset(wait)
		}
		select {
		case <-r.wake:
		case <-timer.C:
		case <-r.ctx.Done():
			return
		}
	}
}

// due returns when to dial, if at all.
func (r *remote) due() (time.Duration, bool) {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	switch {
	case r.ctx.Err() != nil || r.conn != nil:
		return 0, false
	case r.stranger && r.callsLeft <= 0:
		r.m.drop(r)
		return 0, false
	}
	return time.Until(r.next), r.keep || r.slot != nil || r.callsLeft > 0
}

// dial makes one attempt.
func (r *remote) dial() {
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	r.m.mu.Lock()
	r.dialling, r.dialCancelled = cancel, false
	r.tried = time.Now()
	targets := r.targets()
	r.m.mu.Unlock()

	limited, done := context.WithTimeout(ctx, r.m.o.ConnectTimeout)
	c, err := r.m.o.dialAny(limited, targets)
	done()
	if err == nil {
		err = r.greet(ctx, c)
	}
	if r.dialEnded(err) {
		r.m.o.Handle(Down{r.id})
	}
}

// targets returns where to dial: the addresses that the server has just given or, if
// those could not be reached, all known addresses. The caller holds the lock.
func (r *remote) targets() []string {
	if r.callsLeft > 0 && len(r.advertised) > 0 && !r.advertisedFailed {
		return r.advertised
	}
	out := slices.Clone(r.addresses)
	for _, address := range r.advertised {
		if !slices.Contains(out, address) {
			out = append(out, address)
		}
	}
	return out
}

// dialEnded handles the end of a dial, and reports whether the server is down.
func (r *remote) dialEnded(err error) bool {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	given := r.dialCancelled
	r.dialling, r.dialCancelled = nil, false
	if given || r.ctx.Err() != nil {
		return false // the code that cancelled the dial has set next
	}
	r.advertisedFailed = r.advertisedFailed || err != nil && r.callsLeft > 0
	r.callsLeft = max(0, r.callsLeft-1)
	if !r.stranger {
		r.callsLeft = 0
	}
	switch {
	case r.conn != nil:
		return false
	case err == nil && r.id < r.m.o.ID: // the connection was made and has already ended
		return false
	}
	r.backOff()
	if err == nil {
		r.endedByPeer = false
		return false
	}
	r.m.figures.DialFailures.Add(1)
	r.m.o.Log.Debug("a server cannot be reached for elections", "sid", r.id, "err", err)
	down := refused(err) || r.endedByPeer && !timedOut(err)
	r.endedByPeer = r.endedByPeer && !down
	return down
}

// greet sends this server's id on a new connection, and keeps the connection if the other
// id is smaller.
func (r *remote) greet(ctx context.Context, d *dialled) error {
	stop := context.AfterFunc(ctx, func() { d.Close() })
	defer stop()
	tune(d, electionDead)
	r.measured(d)
	d.SetDeadline(time.Now().Add(r.m.o.HandshakeTimeout))
	c, err := r.introduce(d)
	if err != nil {
		d.Close()
		if ctx.Err() == nil {
			r.m.notices.Say(slog.LevelWarn, "the handshake with a server failed", d.address, "sid", r.id, "err", err)
		}
		return err
	}
	if r.id > r.m.o.ID {
		return r.await(c) // the other server answers by dialling back
	}
	c.SetDeadline(time.Time{})
	return r.use(c)
}

// measured reports the round-trip time to the server.
func (r *remote) measured(d *dialled) {
	took, ok := roundTrip(d.Conn)
	if !ok {
		took = d.took
	}
	r.m.o.Handle(RoundTrip{r.id, took})
}

// introduce sends the initial message, between TLS and SASL.
func (r *remote) introduce(d *dialled) (net.Conn, error) {
	secure := r.m.o.Secure
	c, err := secure.client(d.Conn, ForElection, r.id, d.address)
	if err != nil {
		return nil, err
	}
	msg := r.m.initial(d)
	if _, err := c.Write(wire.Append(nil, &msg)); err != nil { // in one piece, because it is read in one
		return nil, err
	}
	return secure.client(c, ForVotes, r.id, d.address)
}

// initial returns the initial message of this server. If its address is a wildcard it
// gives the local address of the connection.
func (m *Mesh) initial(c net.Conn) peerwire.InitialMessage {
	m.mu.Lock()
	own := slices.Clone(m.own)
	m.mu.Unlock()
	for i, address := range own {
		host, port, err := net.SplitHostPort(address)
		from, _, err2 := net.SplitHostPort(c.LocalAddr().String())
		if err == nil && err2 == nil && wildcard(host) {
			own[i] = net.JoinHostPort(from, port)
		}
	}
	msg := peerwire.InitialMessage{Version: peerwire.InitialOne, Server: m.o.ID, Addresses: own[:1]}
	if m.o.ManyAddresses && len(own) > 1 {
		msg.Version, msg.Addresses = peerwire.InitialMany, own
	}
	return msg
}

// await lets the larger id close the connection on which this server has announced
// itself: closing it here at once could lose bytes that are under way. If the connection
// is reset, await returns an error: the announcement was not read, because the other
// server has ended and only its operating system had accepted the connection.
func (r *remote) await(c net.Conn) error {
	r.setAnnounced(time.Now())
	closeWrite(c)
	c.SetReadDeadline(time.Now().Add(callBackGap))
	_, err := io.CopyN(io.Discard, c, peerwire.InitialMax) // what comes has no meaning
	c.Close()
	if refusedByAlert(err) {
		r.refusedBy(c.RemoteAddr().String(), err)
	}
	if !connectionReset(err) {
		return nil
	}
	r.setAnnounced(time.Time{})
	return err
}

// setAnnounced records that this server has announced itself, unless the other server has
// dialled back already, which may be faster than this goroutine.
func (r *remote) setAnnounced(t time.Time) {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	if r.conn == nil {
		r.announced = t
	}
}

// use makes a dialled connection the one to the remote.
func (r *remote) use(c net.Conn) error {
	r.m.mu.Lock()
	if r.dialCancelled || r.ctx.Err() != nil {
		r.m.mu.Unlock()
		c.Close()
		return errClosed
	}
	ended := r.endedByPeer
	start := r.attach(c)
	r.conn.doubtful = ended
	r.m.mu.Unlock()
	start()
	return nil
}

// attach sets the connection of a remote, in place of an older one. The caller holds the
// lock. It then calls start without the lock, which reports the connection and serves it.
func (r *remote) attach(nc net.Conn) (start func()) {
	if r.conn != nil {
		r.conn.Close()
	}
	c := &conn{Conn: nc, m: r.m, to: r, toSend: make(chan struct{}, 1), closing: make(chan struct{}), since: time.Now()}
	r.conn, r.callsLeft, r.endedByPeer, r.advertisedFailed, r.announced = c, 0, false, false, time.Time{}
	return func() {
		r.m.figures.Connections.Add(1)
		r.m.o.Handle(Up{r.id})
		r.m.done.Go(c.write)
		r.m.done.Go(func() { c.read(bufio.NewReader(nc)) })
	}
}

// disconnected handles the end of a connection. A dial follows, at once if the connection was a
// good one. It reports whether the server is down.
func (r *remote) disconnected(c *conn, good bool, err error) (down bool) {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	if r.conn != c { // the connection was replaced, or the remote was dropped
		return false
	}
	r.conn = nil
	r.endedByPeer = endedRemotely(err)
	switch {
	case good:
		r.refused, r.dialAfter = 0, time.Time{}
		r.backoff, r.next = retryMin, r.earliest(sendGap)
	case connectionReset(err) && r.backoff == retryMin:
		// Only the operating system of a server that has ended may have accepted the
		// connection. Check at once whether the server is back, but not again and again.
		r.backOff()
		r.next = r.earliest(sendGap)
	default:
		r.backOff()
	}
	r.wakeRun()
	return c.doubtful && !good && connectionReset(err)
}

// endedRemotely reports whether an error of reading or writing says that the other side has
// closed the connection.
func endedRemotely(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || connectionReset(err)
}
