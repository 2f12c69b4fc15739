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
	// knockGap is how long a larger id has to dial back. Another connection from this
	// server before that would end the one that it has just made.
	knockGap = 200 * time.Millisecond
	// settled is how long a connection must have existed, or have received something, so
	// that a dial follows its end at once.
	settled = 100 * time.Millisecond
	// callsMax is how often a stranger is dialled back.
	callsMax = 3
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
	wake   chan struct{} // of capacity one: look again what is to be done

	stranger   bool     // not in the membership
	keep       bool     // a connection is wanted even if nothing waits to be sent
	addresses  []string // addresses in the membership
	advertised []string // addresses in its last initial message
	called     int      // how often it is to be dialled because it connected to announce itself
	vain       bool     // the addresses that it gives could not be reached the last time

	conn *conn
	slot []byte // the one frame that waits to be sent; nil: none
	last []byte // sent last; resent on a new connection

	dialling context.CancelFunc // of the dial under way, or nil
	given    bool               // that dial was cancelled for something better
	ended    bool               // the last connection was ended by the other side
	tried    time.Time          // when the last dial began
	knocked  time.Time          // when this server last announced itself to the other
	next     time.Time          // when the next dial may begin
	backoff  time.Duration
}

func newRemote(m *Mesh, id ensemble.ServerID) *remote {
	r := &remote{m: m, id: id, wake: make(chan struct{}, 1), backoff: retryMin}
	r.ctx, r.cancel = context.WithCancel(m.ctx)
	return r
}

// rouse makes run look again.
func (r *remote) rouse() {
	select {
	case r.wake <- struct{}{}:
	default: // it will
	}
}

// hurry makes run dial as soon as is sensible, because something waits to be sent. The
// caller holds the lock.
func (r *remote) hurry() {
	if soon := r.earliest(sendGap); soon.Before(r.next) {
		r.next = soon
	}
	r.backoff = retryMin
	r.rouse()
}

// earliest returns when the next dial may be, gap after the last one. After this server
// has announced itself it waits for the other to dial back. The caller holds the lock.
func (r *remote) earliest(gap time.Duration) time.Time {
	t := r.tried.Add(gap)
	if answered := r.knocked.Add(knockGap); answered.After(t) {
		return answered
	}
	return t
}

// later sets the pause before the next dial if nothing waits to be sent, and doubles the
// pause after that. The caller holds the lock.
func (r *remote) later() {
	r.next = r.earliest(time.Since(r.tried) + r.backoff)
	r.backoff = min(2*r.backoff, r.m.o.RetryMax)
}

// giveUpDial cancels a dial that is under way. The caller holds the lock.
func (r *remote) giveUpDial() {
	if r.dialling != nil {
		r.dialling()
		r.given = true
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
	case r.stranger && r.called <= 0:
		r.m.drop(r)
		return 0, false
	}
	return time.Until(r.next), r.keep || r.slot != nil || r.called > 0
}

// dial makes one attempt.
func (r *remote) dial() {
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	r.m.mu.Lock()
	r.dialling, r.given = cancel, false
	r.tried = time.Now()
	targets := r.targets()
	r.m.mu.Unlock()

	limited, done := context.WithTimeout(ctx, r.m.o.ConnectTimeout)
	c, err := r.m.o.dialAny(limited, targets)
	done()
	if err == nil {
		err = r.greet(ctx, c)
	}
	if r.conclude(err) {
		r.m.o.Handle(Down{r.id})
	}
}

// targets returns where to dial: the addresses that the server has just given or, if
// those could not be reached, all known addresses. The caller holds the lock.
func (r *remote) targets() []string {
	if r.called > 0 && len(r.advertised) > 0 && !r.vain {
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

// conclude handles the end of a dial, and reports whether the server is down.
func (r *remote) conclude(err error) bool {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	given := r.given
	r.dialling, r.given = nil, false
	if given || r.ctx.Err() != nil {
		return false // whoever cancelled the dial has set next
	}
	r.vain = r.vain || err != nil && r.called > 0
	r.called = max(0, r.called-1)
	if !r.stranger {
		r.called = 0
	}
	switch {
	case r.conn != nil:
		return false
	case err == nil && r.id < r.m.o.ID: // connected, and already ended
		return false
	}
	r.later()
	if err == nil {
		r.ended = false
		return false
	}
	r.m.figures.DialFailures.Add(1)
	r.m.o.Log.Debug("no election connection", "sid", r.id, "err", err)
	down := refused(err) || r.ended && !timedOut(err)
	r.ended = r.ended && !down
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
			r.m.notices.Say(slog.LevelWarn, "a server was reached but not greeted", d.address, "sid", r.id, "err", err)
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
// itself: closing it here at once could lose bytes that are under way. If it is reset the
// message was not read, because only the operating system of a server that has ended had
// accepted it.
func (r *remote) await(c net.Conn) error {
	r.knockedAt(time.Now())
	closeWrite(c)
	c.SetReadDeadline(time.Now().Add(knockGap))
	_, err := io.CopyN(io.Discard, c, peerwire.InitialMax) // what comes has no meaning
	c.Close()
	if !connectionReset(err) {
		return nil
	}
	r.knockedAt(time.Time{})
	return err
}

// knockedAt records that this server has announced itself, unless the other server has
// dialled back already, which may be faster than this goroutine.
func (r *remote) knockedAt(t time.Time) {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	if r.conn == nil {
		r.knocked = t
	}
}

// use makes a dialled connection the one to this server.
func (r *remote) use(c net.Conn) error {
	r.m.mu.Lock()
	if r.given || r.ctx.Err() != nil {
		r.m.mu.Unlock()
		c.Close()
		return errClosed
	}
	ended := r.ended
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
	c := &conn{Conn: nc, m: r.m, to: r, more: make(chan struct{}, 1), gone: make(chan struct{}), made: time.Now()}
	r.conn, r.called, r.ended, r.vain, r.knocked = c, 0, false, false, time.Time{}
	return func() {
		r.m.figures.Connections.Add(1)
		r.m.o.Handle(Up{r.id})
		r.m.done.Go(c.write)
		r.m.done.Go(func() { c.read(bufio.NewReader(nc)) })
	}
}

// parted handles the end of a connection. A dial follows, at once if the connection was a
// good one. It reports whether the server is down.
func (r *remote) parted(c *conn, good bool, err error) (down bool) {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	if r.conn != c { // it was replaced, or the remote was dropped
		return false
	}
	r.conn = nil
	r.ended = endedThere(err)
	switch {
	case good:
		r.backoff, r.next = retryMin, r.earliest(sendGap)
	case connectionReset(err) && r.backoff == retryMin:
		// Only the operating system of a server that has ended may have accepted the
		// connection. Check at once whether the server is back, but not again and again.
		r.later()
		r.next = r.earliest(sendGap)
	default:
		r.later()
	}
	r.rouse()
	return c.doubtful && !good && connectionReset(err)
}

// endedThere reports whether an error of reading or writing says that the other side has
// closed the connection.
func endedThere(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || connectionReset(err)
}
