package blackbox

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"bellwether/interop/target"
)

// relay forwards connections and delivers every byte after a delay.
type relay struct {
	listener net.Listener
	from     *host
	to       string
	delay    time.Duration
	group    sync.WaitGroup

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]struct{}
}

// chunk is the data of one read and the time of its delivery.
type chunk struct {
	data []byte
	due  time.Time
}

// chunksMax bounds the chunks that a relay holds for one direction. When it is reached, the relay
// stops reading, as if its buffer were full.
const chunksMax = 1024

// connectMax bounds how long a relay tries to reach a server.
const connectMax = time.Second

// relayBetween makes the servers connect to each other through a relay on host r.
func (w *network) relayBetween(places []target.Place, r *host, delay time.Duration) {
	w.t.Helper()
	calls := map[int][2]string{}
	for i, p := range places {
		quorum, err := w.relay(r, p.Host+":2888", delay)
		w.must(err)
		election, err := w.relay(r, p.Host+":3888", delay)
		w.must(err)
		calls[i+1] = [2]string{quorum, election}
	}
	for i := range places {
		places[i].Calls = map[int][2]string{}
		for id, addr := range calls {
			if id != i+1 {
				places[i].Calls[id] = addr
			}
		}
	}
}

// relay starts a relay on a host and returns its address. It ends with the test.
func (w *network) relay(on *host, to string, delay time.Duration) (string, error) {
	l, err := on.listen("0")
	if err != nil {
		return "", err
	}
	r := &relay{listener: l, from: on, to: to, delay: delay, conns: map[net.Conn]struct{}{}}
	r.group.Go(r.accept)
	w.t.Cleanup(r.close)
	return l.Addr().String(), nil
}

func (r *relay) close() {
	_ = r.listener.Close()
	r.mu.Lock()
	r.closed = true
	for c := range r.conns {
		_ = c.Close()
	}
	r.mu.Unlock()
	r.group.Wait()
}

func (r *relay) accept() {
	for {
		in, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.group.Go(func() { r.serve(in) })
	}
}

func (r *relay) serve(in net.Conn) {
	defer in.Close()
	out, err := r.connect()
	if err != nil {
		return
	}
	defer out.Close()
	if !r.hold(in, out) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { r.pass(in, out) })
	both.Go(func() { r.pass(out, in) })
	both.Wait()
	r.mu.Lock()
	delete(r.conns, in)
	delete(r.conns, out)
	r.mu.Unlock()
}

// connect retries for a while: the relay has already accepted the connection, so a server that
// does not listen yet looks like a slow network.
func (r *relay) connect() (conn net.Conn, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), connectMax)
	defer cancel()
	for {
		if conn, err = r.from.dial(ctx, "tcp", r.to); err == nil || r.over() {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(r.delay):
		}
	}
}

func (r *relay) over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

func (r *relay) hold(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	for _, c := range conns {
		r.conns[c] = struct{}{}
	}
	return true
}

// pass copies one direction until either end closes, and then closes both.
func (r *relay) pass(from, to net.Conn) {
	chunks := make(chan chunk, chunksMax)
	var writer sync.WaitGroup
	writer.Go(func() {
		var err error
		for c := range chunks {
			if err == nil {
				<-time.After(time.Until(c.due))
				_, err = to.Write(c.data)
			}
		}
		if !errors.Is(err, net.ErrClosed) {
			_ = to.Close()
		}
		_ = from.Close()
	})
	for {
		b := make([]byte, 16<<10)
		n, err := from.Read(b)
		if n > 0 {
			chunks <- chunk{b[:n], time.Now().Add(r.delay)}
		}
		if err != nil {
			break
		}
	}
	close(chunks)
	writer.Wait()
}
