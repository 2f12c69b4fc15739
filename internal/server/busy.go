package server

import (
	"log/slog"
	"sync/atomic"
	"time"

	"bellwether/internal/metrics"
)

// busyMax is how long a batch of the loop may take before it is reported.
const busyMax = time.Second

// busyWatch reports a batch of the loop that takes long, for example one that carries out a very
// large multi, while it still runs. The loop sends heartbeats in the middle of such a batch, so
// no other server notices it. Nobody else is asked to lead, because the next leader would get the
// same request.
type busyWatch struct {
	clock    func() int64
	log      *slog.Logger
	count    *metrics.Counter
	began    atomic.Int64 // the clock when the running batch began; 0: none runs
	reported int64        // began of the batch that was reported last; only check uses it
}

func newBusyWatch(s *Server) *busyWatch {
	r := s.stats.registry
	w := &busyWatch{clock: s.clock, log: s.log, count: r.Counter("loop_busy_count")}
	r.Gauge("loop_busy_ms", func() float64 { return float64(w.age().Milliseconds()) })
	return w
}

// begin says that a batch begins.
func (w *busyWatch) begin() { w.began.Store(max(w.clock(), 1)) }

// end says that the batch has ended.
func (w *busyWatch) end() { w.began.Store(0) }

// age returns for how long the running batch has run; 0 if none runs.
func (w *busyWatch) age() time.Duration {
	began := w.began.Load()
	if began == 0 {
		return 0
	}
	return time.Duration(w.clock() - began)
}

// busy returns for how long the running batch has run, if that is longer than busyMax; else 0.
func (w *busyWatch) busy() time.Duration {
	if age := w.age(); age > busyMax {
		return age
	}
	return 0
}

// check reports a batch that has just become long. One goroutine calls it again and again.
func (w *busyWatch) check() {
	began := w.began.Load()
	if began == 0 || began == w.reported || w.clock()-began <= int64(busyMax) {
		return
	}
	w.reported = began
	w.count.Add(1)
	w.log.Warn("the main loop has been busy with one batch for a while: until it ends, no request is answered; heartbeats to other servers are sent in between",
		"busy", time.Duration(w.clock()-began))
}
