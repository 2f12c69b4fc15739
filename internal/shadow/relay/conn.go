package relay

import (
	"context"
	"net"
	"sync"
	"time"

	"bellwether/internal/shadow"
)

const (
	// chunk is the size of the buffer of each direction.
	chunk = 32 << 10
	// lingerTime is how long a client may take to close its connection after the old server has closed its own.
	lingerTime = 5 * time.Second
)

// link is one client connection with its connection to an old server.
type link struct {
	relay          *Relay
	client, server net.Conn
	lane           string // key of the lane of this client, if it watches

	mu   sync.Mutex
	tap  *shadow.Tap
	told bool  // that the tap has stopped
	held int64 // bytes of the tap that are counted in Relay.waiting
}

// serve forwards one client until both directions have ended, or ctx ends.
func (r *Relay) serve(ctx context.Context, accepted net.Conn) {
	defer accepted.Close()
	client, subject, err := r.admit(ctx, accepted)
	if err != nil {
		r.opt.Logger.Info("no connection with a client", "err", err)
		return
	}
	server, seen, err := r.dialOld(ctx, subject)
	if err != nil {
		r.opt.Logger.Warn("no old server accepts the connection of a client", "client", client.RemoteAddr().String(), "err", err)
		return
	}
	defer server.Close()
	l := &link{relay: r, client: client, server: server, tap: shadow.NewTap(seen), lane: r.opened()}
	stop := context.AfterFunc(ctx, func() {
		accepted.Close()
		server.Close()
	})
	defer stop()
	var back sync.WaitGroup
	back.Go(func() {
		forward(client, server, nil, l.answered)
		client.SetReadDeadline(time.Now().Add(lingerTime)) // an error means that it is closed
	})
	forward(server, client, l.requested, nil)
	back.Wait()
	r.hold(-l.held)
	r.endWatching(l.lane, l.tap.Unread())
	if l.tap.Stopped() == shadow.StopTLS && !r.tls.Swap(true) {
		r.opt.Logger.Warn("a client has used TLS: shadow forwards its bytes, but cannot compare its replies without --listen-tls")
	}
}

// forward copies bytes until an end or an error, and passes the end on. before is called with bytes that are about to
// be sent, after with those that were sent.
func forward(to, from net.Conn, before, after func([]byte)) {
	buf := make([]byte, chunk)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if before != nil {
				before(buf[:n])
			}
			if _, err := to.Write(buf[:n]); err != nil {
				from.Close() // the other direction would wait for bytes that nobody wants
				return
			}
			if after != nil {
				after(buf[:n])
			}
		}
		if err != nil {
			closeWrite(to)
			return
		}
	}
}

// closeWrite ends one direction of a connection.
func closeWrite(c net.Conn) {
	if t, ok := c.(interface{ CloseWrite() error }); ok {
		t.CloseWrite() // an error means that the connection has ended
	}
}

// requested shows the tap bytes from the client.
func (l *link) requested(p []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tap.FromClient(p)
	l.noteLocked()
}

// answered shows the tap bytes from the server, and passes the replies on.
func (l *link) answered(p []byte) {
	for _, pair := range l.decode(p) {
		l.relay.compare(&pair, l.lane)
	}
}

func (l *link) decode(p []byte) []shadow.Pair {
	l.mu.Lock()
	defer l.mu.Unlock()
	var pairs []shadow.Pair
	l.tap.FromServer(p, func(p shadow.Pair) { pairs = append(pairs, p) })
	l.noteLocked()
	if !l.weighLocked() {
		l.tap.Cut()
		l.weighLocked()
	}
	return pairs
}

// weighLocked counts a reply that has arrived in part. It returns false if there is no room for it.
func (l *link) weighLocked() bool {
	more := l.tap.Assembling() - l.held
	if more == 0 {
		return true
	}
	l.held += more
	return l.relay.hold(more)
}

// noteLocked counts the connection once if the tap has stopped.
func (l *link) noteLocked() {
	if why := l.tap.Stopped(); why != "" && !l.told {
		l.told = true
		l.relay.stopped(why)
	}
}
