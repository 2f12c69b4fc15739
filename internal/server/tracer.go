package server

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"bellwether/internal/config"
)

// tracer keeps the last traced requests, and logs slow ones. All goroutines may use it.
type tracer struct {
	srv *Server
	// above is the time, in ns, from which a request is described: 0 while every request is
	// traced, MaxInt64 if slow ones are not logged either. Code that carries out requests reads
	// only this field.
	above atomic.Int64

	mu       sync.Mutex
	on       bool
	slow     time.Duration // 0: slow requests are not logged
	kept     []Trace       // a ring: the trace with number n is at n % len
	last     uint64        // number of the last trace
	period   time.Time     // when the present slowPeriod began
	logged   int           // number of slow requests logged in it
	unlogged int           // number of slow requests in it that were only counted
}

func newTracer(s *Server) *tracer { return &tracer{srv: s} }

// configure applies a configuration. The kept traces stay unless the configured number of kept
// traces changes.
func (t *tracer) configure(c *config.Config) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.on, t.slow = c.Tracing.Enabled, c.Tracing.SlowAfter
	if t.on && len(t.kept) != c.Tracing.Kept {
		t.kept = make([]Trace, c.Tracing.Kept)
	}
	t.setAbove()
}

// setAbove stores in above how long a request must take to be described: any time if tracing is
// on, else the limit of slow operations. The caller holds the lock.
func (t *tracer) setAbove() {
	switch {
	case t.on:
		t.above.Store(0)
	case t.slow > 0:
		t.above.Store(int64(t.slow))
	default:
		t.above.Store(math.MaxInt64)
	}
}

// all reports whether every request is traced.
func (t *tracer) all() bool { return t.above.Load() == 0 }

// add keeps traces, and logs those of slow requests. The caller holds no lock, because the log
// may block.
func (t *tracer) add(all ...*Trace) {
	for _, x := range all {
		if slow, unlogged := t.keep(x); slow {
			t.log(x, unlogged)
		}
	}
}

// keep keeps a trace, and reports whether the request must be logged, and how many slow requests
// the period before has only counted.
func (t *tracer) keep(x *Trace) (slow bool, unlogged int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.on {
		t.last++
		x.Number = t.last
		t.kept[t.last%uint64(len(t.kept))] = *x
	}
	if t.slow == 0 || x.Took <= t.slow {
		return false, 0
	}
	t.srv.stats.slow.Add(1)
	return t.admit()
}

const (
	// slowPeriod is the period in which at most slowMax slow requests are logged.
	slowPeriod = 10 * time.Second
	slowMax    = 10
)

// admit decides whether a slow request is logged, or only counted. The caller holds the lock.
func (t *tracer) admit() (logged bool, unlogged int) {
	if now := time.Now(); now.Sub(t.period) > slowPeriod {
		unlogged = t.unlogged
		t.period, t.logged, t.unlogged = now, 0, 0
	}
	if t.logged == slowMax {
		t.unlogged++
		return false, 0
	}
	t.logged++
	return true, unlogged
}

// log logs a slow request.
func (t *tracer) log(x *Trace, unlogged int) {
	if unlogged > 0 {
		t.srv.log.Warn("further slow operations were not logged", "number", unlogged)
	}
	args := []any{"op", x.Operation}
	if x.Path != "" {
		args = append(args, "path", x.Path)
	}
	args = append(args, "session", fmt.Sprintf("0x%x", int64(x.Session)), "cxid", x.Cxid, "zxid", x.Zxid, "slowest", x.Slowest)
	if x.Peer != 0 {
		args = append(args, "peer", x.Peer)
	}
	if x.Forwarded {
		args = append(args, "forwarded", true)
	}
	if x.Requests > 1 {
		args = append(args, "requests", x.Requests)
	}
	t.srv.log.Warn("slow operation: "+rounded(x.Took).String()+": "+x.String(), args...)
}

// Tracing reports whether every request is traced.
func (s *Server) Tracing() bool { return s.tracer.all() }

// SetTracing switches the tracing of every request on or off until the next Reload. The kept traces stay.
func (s *Server) SetTracing(on bool) {
	t := s.tracer
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.on = on; on && len(t.kept) == 0 {
		t.kept = make([]Trace, s.config().Tracing.Kept)
	}
	t.setAbove()
}

// Traces returns the kept traces whose number is above after, oldest first, at most limit of them.
func (s *Server) Traces(after uint64, limit int) []Trace {
	t := s.tracer
	t.mu.Lock()
	defer t.mu.Unlock()
	n := uint64(len(t.kept))
	if after > t.last { // these numbers are of an earlier process
		after = 0
	}
	first := after + 1
	if t.last >= n {
		first = max(first, t.last-n+1)
	}
	var out []Trace
	for i := first; i <= t.last && len(out) < limit; i++ {
		if x := &t.kept[i%n]; x.Number == i {
			out = append(out, *x)
		}
	}
	return out
}
