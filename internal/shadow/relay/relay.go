package relay

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"bellwether/internal/notice"
	"bellwether/internal/secure"
	"bellwether/internal/shadow"
	"bellwether/wire"
)

// Options configure a Relay.
type Options struct {
	Listen   net.Listener // where the clients connect; Run closes it
	Old      []string     // client addresses of the old servers; each connection gets the next one that answers
	Observer string       // client address of the observer
	Logger   *slog.Logger

	ListenTLS   *secure.Store      // the clients use TLS; nil: they do not
	OldTLS      []*secure.Store    // for connections to the old servers, one for each certificate; empty: without TLS
	ObserverTLS []*secure.Store    // likewise for the observer
	Super       *shadow.Credential // of the observer's super user; nil: unknown

	// Found is called for each difference, by several goroutines, but never by two at the same time.
	Found func(shadow.Found)
}

const (
	dialTimeout = 5 * time.Second
	// lanesMax is how many identities are compared at the same time, and watchingMax how many clients that watch.
	lanesMax    = 32
	watchingMax = 512
	// waitingMax is how many replies wait in a lane, and waitingBytesMax how many bytes in all lanes and in replies that have arrived in part.
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
	clients  *tls.Config // of their connections; nil: without TLS
	notices  *notice.Log // failed accepts, which would fill the log

	mu      sync.Mutex
	next    int              // the old server of the next connection
	down    map[route]bool   // the last attempt to connect has failed
	lanes   map[string]*lane // by identity, or by connection
	watch   int              // lanes of connections
	waiting int64            // bytes in all lanes, and of replies that have arrived in part
	report  *shadow.Report
}

// New returns a relay. It is an error if the clients use TLS and there is no certificate for that.
func New(opt Options) (r *Relay, err error) {
	r = &Relay{opt: opt, notices: notice.New(opt.Logger), down: map[route]bool{}, lanes: map[string]*lane{}, report: shadow.NewReport()}
	if opt.ListenTLS != nil {
		r.clients, err = opt.ListenTLS.Server()
	}
	return r, err
}

// Run forwards clients until ctx ends. Then it closes their connections, compares the replies that still wait, and
// closes its sessions at the observer.
func (r *Relay) Run(ctx context.Context) error {
	work, stopped := context.WithCancel(context.Background())
	defer stopped()
	r.work = work
	defer r.notices.Close()
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
			r.notices.Say(slog.LevelError, "cannot accept clients: check the limit of open files", "", "err", err)
			select {
			case <-time.After(acceptPause):
			case <-ctx.Done():
			}
			continue
		}
		r.conns.Go(func() { r.serve(ctx, client) })
	}
}

// Report returns a copy of the report as it is now.
func (r *Relay) Report() *shadow.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.report.Clone()
}

// compare passes a reply to the lane of its connection, if the client watches, or else of its identity.
func (r *Relay) compare(p *shadow.Pair, connection string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if why := r.enqueueLocked(p, connection); why != "" {
		r.countLocked(p, why, nil, unsure(p, why))
	}
}

// hold counts so many bytes more of replies that have arrived in part. It returns false if there is no room for them.
func (r *Relay) hold(more int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting += more
	return more <= 0 || r.waiting <= waitingBytesMax
}

// enqueueLocked returns why the reply will not be compared, or "".
func (r *Relay) enqueueLocked(p *shadow.Pair, connection string) shadow.Reason {
	if r.waiting+p.Bytes() > waitingBytesMax {
		return shadow.UnsureDropped
	}
	l, why := r.laneLocked(p, connection)
	if l == nil {
		return why
	}
	select {
	case l.queue <- p:
		r.waiting += p.Bytes()
		return ""
	default:
		return shadow.UnsureDropped
	}
}

// laneLocked returns the lane for a reply, or why there is none. If too many clients watch, the replies to a further one go
// to the lane of its identity, and its events are not compared.
func (r *Relay) laneLocked(p *shadow.Pair, connection string) (*lane, shadow.Reason) {
	if l := r.lanes[connection]; l != nil {
		return l, ""
	}
	if p.Watched > 0 && r.watch < watchingMax {
		r.watch++
		l := r.startLocked(p, connection)
		return l, ""
	}
	key := p.Identity.Key()
	if l := r.lanes[key]; l != nil {
		return l, ""
	}
	if len(r.lanes)-r.watch >= lanesMax {
		return nil, shadow.UnsureLanes
	}
	return r.startLocked(p, key), ""
}

func (r *Relay) startLocked(p *shadow.Pair, key string) *lane {
	l := &lane{relay: r, key: key, own: seat{relay: r, identity: p.Identity}, queue: make(chan *shadow.Pair, waitingMax)}
	if key != p.Identity.Key() {
		l.watching = newWatching()
	}
	if r.opt.Super != nil {
		who := shadow.Identity{Subject: p.Identity.Subject, Credentials: []shadow.Credential{*r.opt.Super}}
		l.super = &seat{relay: r, identity: who}
	}
	r.lanes[key] = l
	r.all.Go(l.run)
	return l
}

// endWatching ends the lane of a connection that has ended. unread is the number of events that no reply has followed.
func (r *Relay) endWatching(connection string, unread int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for range unread {
		r.report.CountEvent(shadow.UnsureEnded)
	}
	if l := r.lanes[connection]; l != nil {
		r.watch--
		delete(r.lanes, connection)
		close(l.queue)
	}
}

// done counts a reply that a lane has finished, with the events before it, and passes the differences on.
func (r *Relay) done(p *shadow.Pair, why shadow.Reason, found []shadow.Found, events []shadow.EventResult) {
	r.count(p, why, found, events)
	for i := range events {
		if events[i].Difference != nil {
			found = append(found, shadow.NewFoundEvent(&events[i], p.Header.Zxid))
		}
	}
	r.printing.Lock()
	defer r.printing.Unlock()
	for _, f := range found {
		r.opt.Found(f)
	}
}

func (r *Relay) count(p *shadow.Pair, why shadow.Reason, found []shadow.Found, events []shadow.EventResult) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting -= p.Bytes()
	r.countLocked(p, why, found, events)
}

func (r *Relay) countLocked(p *shadow.Pair, why shadow.Reason, found []shadow.Found, events []shadow.EventResult) {
	if p.Op != wire.OpPing {
		r.report.Count(p.Op, why, found)
	}
	for i := range events {
		if e := &events[i]; e.Difference != nil {
			r.report.CountEvent("", shadow.NewFoundEvent(e, p.Header.Zxid))
		} else {
			r.report.CountEvent(e.Why)
		}
	}
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

// opened counts a connection, and returns the key of its lane.
func (r *Relay) opened() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Connections++
	return fmt.Sprint("connection ", r.report.Connections)
}

// stopped counts a connection that is not decoded any more.
func (r *Relay) stopped(why shadow.Stop) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.NotDecoded[why]++
}
