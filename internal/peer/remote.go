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

// The pace of dialling.
const (
	// retryMin is the first pause between dials that nobody waits for; each
	// further one is twice as long, up to Options.RetryMax.
	retryMin = 10 * time.Millisecond
	// sendGap is how soon after a dial that was refused a Send brings the next.
	sendGap = 2 * time.Millisecond
	// knockGap is how long a larger id has to dial back. To knock again would
	// end the connection that it has just made.
	knockGap = 200 * time.Millisecond
	// settled is how long a connection must have lived, or have brought
	// something, for its end to be answered by a dial at once.
	settled = 100 * time.Millisecond
	// callsMax is how often a stranger is dialled back.
	callsMax = 3
	// electionDead is how long what was sent may stay unacknowledged.
	electionDead = 5 * time.Second
)

// remote is another server as the mesh sees it. Its goroutine, run, dials;
// the mesh's lock guards what may change.
type remote struct {
	m      *Mesh
	id     ensemble.ServerID
	ctx    context.Context // ends when the remote is dropped
	cancel context.CancelFunc
	wake   chan struct{} // one: look again at what is to be done

	stranger   bool     // not in the membership
	keep       bool     // a connection is wanted for its own sake
	addresses  []string // by the membership
	advertised []string // by its last initial message
	called     int      // how often it is to be dialled because it knocked
	vain       bool     // where it says it is it was not reached the last time

	conn *conn
	slot []byte // the one frame that waits; nil: none
	last []byte // sent last; sent again on a new connection

	dialling context.CancelFunc // of the dial under way, or nil
	given    bool               // that dial was given up for something better
	ended    bool               // the last connection was ended by the other side
	tried    time.Time          // when the last dial began
	knocked  time.Time          // when the last knock was delivered
	next     time.Time          // when the next may
	backoff  time.Duration
}

func newRemote(m *Mesh, id ensemble.ServerID) *remote {
	r := &remote{m: m, id: id, wake: make(chan struct{}, 1), backoff: retryMin}
	r.ctx, r.cancel = context.WithCancel(m.ctx)
	return r
}

// rouse lets run look again.
func (r *remote) rouse() {
	select {
	case r.wake <- struct{}{}:
	default: // it will
	}
}

// hurry dials as soon as that makes sense: somebody wants to send. The lock is held.
func (r *remote) hurry() {
	if soon := r.earliest(sendGap); soon.Before(r.next) {
		r.next = soon
	}
	r.backoff = retryMin
	r.rouse()
}

// earliest is when the next dial may be, gap after the last one; an answer to
// a knock is waited for. The lock is held.
func (r *remote) earliest(gap time.Duration) time.Time {
	t := r.tried.Add(gap)
	if answered := r.knocked.Add(knockGap); answered.After(t) {
		return answered
	}
	return t
}

// later makes the pause before the next dial that nobody waits for, and
// doubles the one after it. The lock is held.
func (r *remote) later() {
	r.next = r.earliest(time.Since(r.tried) + r.backoff)
	r.backoff = min(2*r.backoff, r.m.o.RetryMax)
}

// giveUpDial ends a dial that is under way. The lock is held.
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

// due is when to dial, if at all.
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

// targets is where to dial: where the server has just said it is, or, where
// that was in vain, all that is known. The lock is held.
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

// conclude takes in how a dial ended, and reports whether the server is down.
func (r *remote) conclude(err error) bool {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	given := r.given
	r.dialling, r.given = nil, false
	if given || r.ctx.Err() != nil {
		return false // next was set by who gave it up
	}
	r.vain = r.vain || err != nil && r.called > 0
	r.called = max(0, r.called-1)
	if !r.stranger {
		r.called = 0
	}
	switch {
	case r.conn != nil:
		return false
	case err == nil && r.id < r.m.o.ID: // connected, and parted already
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

// greet says who we are on a fresh connection, and keeps it if the other id is
// smaller.
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
		return r.await(c) // whether it is answered shows when it dials back
	}
	c.SetDeadline(time.Time{})
	return r.use(c)
}

// measured tells how long the way to the server and back takes.
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
	if _, err := c.Write(wire.Append(nil, &msg)); err != nil { // in one piece, as it is read in one
		return nil, err
	}
	return secure.client(c, ForVotes, r.id, d.address)
}

// initial is what this server says of itself. Where its address is a wildcard
// it names the one it dials from.
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

// await lets the larger id close the connection that was only a knock: to
// close it here at once could cost the bytes that are under way. One that is
// reset was not heard: the system had accepted it for a server that ended.
func (r *remote) await(c net.Conn) error {
	r.knockedAt(time.Now())
	closeWrite(c)
	c.SetReadDeadline(time.Now().Add(knockGap))
	_, err := io.CopyN(io.Discard, c, peerwire.InitialMax) // whatever comes means nothing
	c.Close()
	if !connectionReset(err) {
		return nil
	}
	r.knockedAt(time.Time{})
	return err
}

// knockedAt notes a knock, unless it is answered already: the other server may
// be faster than this goroutine.
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

// attach gives a remote its connection, in place of an older one. The lock is
// held; start, to be called without it, tells of the connection and serves it.
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

// parted is called when a connection has ended. A dial follows, at once if
// the connection was a good one. It reports whether the server is down.
func (r *remote) parted(c *conn, good bool, err error) (down bool) {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	if r.conn != c { // it was replaced, or the remote dropped
		return false
	}
	r.conn = nil
	r.ended = endedThere(err)
	switch {
	case good:
		r.backoff, r.next = retryMin, r.earliest(sendGap)
	case connectionReset(err) && r.backoff == retryMin:
		// As the system does that had accepted it for a server that ended: what
		// became of that one is worth a look at once, but not again and again.
		r.later()
		r.next = r.earliest(sendGap)
	default:
		r.later()
	}
	r.rouse()
	return c.doubtful && !good && connectionReset(err)
}

// endedThere reports whether an error of reading or writing says that the
// other side has closed the connection.
func endedThere(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || connectionReset(err)
}
