package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"bellwether/internal/shadow"
)

// Options configure a Relay.
type Options struct {
	Listen   net.Listener // where the clients connect; Run closes it
	Old      []string     // client addresses of the old servers; each connection gets the next one that answers
	Observer string       // client address of the observer
	Logger   *slog.Logger

	// Found is called for each difference, by several goroutines, but never by two at the same time.
	Found func(shadow.Found)
}

const (
	dialTimeout = 5 * time.Second
	// lanesMax is how many identities are compared at the same time.
	lanesMax = 32
	// waitingMax is how many replies wait in a lane, and waitingBytesMax how many bytes in all lanes.
	waitingMax      = 4096
	waitingBytesMax = 64 << 20
	// stopTime is how long the replies that wait when Run is told to stop may still be compared.
	stopTime = 5 * time.Second
)

// Relay forwards clients to old servers and compares replies with an observer.
type Relay struct {
	opt   Options
	work  context.Context // ends stopTime after the clients' connections
	conns sync.WaitGroup
	all   sync.WaitGroup // lanes

	printing sync.Mutex  // held while Found runs; clients never wait for it
	tls      atomic.Bool // the warning about TLS was given

	mu      sync.Mutex
	next    int              // the old server of the next connection
	lanes   map[string]*lane // by identity
	waiting int64            // bytes in all lanes
	report  *shadow.Report
}

// New returns a relay.
func New(opt Options) *Relay {
	return &Relay{opt: opt, lanes: map[string]*lane{}, report: shadow.NewReport()}
}

// Check connects to an old server and to the observer, so that a wrong address is noticed at the start.
func (r *Relay) Check(ctx context.Context) error {
	conn, err := r.dialOld(ctx)
	if err != nil {
		return err
	}
	conn.Close()
	o, err := openObserver(ctx, r.opt.Observer, nil)
	if err != nil {
		return fmt.Errorf("observer %s: %w", r.opt.Observer, err)
	}
	o.close()
	return nil
}

// Run forwards clients until ctx ends. Then it closes their connections, compares the replies that still wait, and
// closes its sessions at the observer.
func (r *Relay) Run(ctx context.Context) error {
	work, stopped := context.WithCancel(context.Background())
	defer stopped()
	r.work = work
	ctx, stop := context.WithCancel(ctx)
	context.AfterFunc(ctx, func() { r.opt.Listen.Close() })
	err := r.accept(ctx)
	stop()
	r.conns.Wait()
	r.endLanes()
	timer := time.AfterFunc(stopTime, stopped)
	defer timer.Stop()
	r.all.Wait()
	return err
}

// acceptPause is the pause after a failed accept, such as for lack of descriptors.
const acceptPause = 50 * time.Millisecond

func (r *Relay) accept(ctx context.Context) error {
	for {
		client, err := r.opt.Listen.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				client.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil:
			r.opt.Logger.Warn("cannot accept a client", "err", err)
			select {
			case <-time.After(acceptPause):
			case <-ctx.Done():
			}
			continue
		}
		r.conns.Go(func() { r.serve(ctx, client) })
	}
}

// dialOld connects to the next old server that answers.
func (r *Relay) dialOld(ctx context.Context) (net.Conn, error) {
	r.mu.Lock()
	first := r.next
	r.next++
	r.mu.Unlock()
	var errs []error
	for i := range r.opt.Old {
		d := net.Dialer{Timeout: dialTimeout}
		conn, err := d.DialContext(ctx, "tcp", r.opt.Old[(first+i)%len(r.opt.Old)])
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// Report returns a copy of the report as it is now.
func (r *Relay) Report() *shadow.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.report.Clone()
}

// compare passes a reply to the lane of its identity.
func (r *Relay) compare(p *shadow.Pair) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if why := r.enqueueLocked(p); why != "" {
		r.report.Count(p.Op, why, nil)
	}
}

// enqueueLocked returns why the reply will not be compared, or "".
func (r *Relay) enqueueLocked(p *shadow.Pair) shadow.Reason {
	if r.waiting+p.Bytes() > waitingBytesMax {
		return shadow.UnsureDropped
	}
	key := p.Identity.Key()
	l := r.lanes[key]
	if l == nil {
		if len(r.lanes) >= lanesMax {
			return shadow.UnsureLanes
		}
		l = &lane{relay: r, key: key, credentials: p.Identity.Credentials, queue: make(chan *shadow.Pair, waitingMax)}
		r.lanes[key] = l
		r.all.Go(l.run)
	}
	select {
	case l.queue <- p:
		r.waiting += p.Bytes()
		return ""
	default:
		return shadow.UnsureDropped
	}
}

// done counts a reply that a lane has finished, and passes the differences on.
func (r *Relay) done(p *shadow.Pair, why shadow.Reason, found []shadow.Found) {
	r.count(p, why, found)
	r.printing.Lock()
	defer r.printing.Unlock()
	for _, f := range found {
		r.opt.Found(f)
	}
}

func (r *Relay) count(p *shadow.Pair, why shadow.Reason, found []shadow.Found) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting -= p.Bytes()
	r.report.Count(p.Op, why, found)
}

// retire removes an idle lane. It returns false if a reply has arrived meanwhile.
func (r *Relay) retire(l *lane) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(l.queue) > 0 {
		return false
	}
	delete(r.lanes, l.key)
	return true
}

// endLanes makes the lanes end when their queues are empty. No connection is left that could use them.
func (r *Relay) endLanes() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.lanes {
		close(l.queue)
	}
}

// opened and stopped count connections.
func (r *Relay) opened() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Connections++
}

func (r *Relay) stopped(why shadow.Stop) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.NotDecoded[why]++
}
