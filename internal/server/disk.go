package server

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"bellwether/internal/driver"
	"bellwether/internal/metrics"
	"bellwether/internal/replica"
	"bellwether/internal/store"
)

// diskWatch measures how long the disk leaves a call unanswered. It reports a stall, which
// is a call that takes longer than driver.StallBound allows. A hung disk blocks the
// goroutine that called it, so the watch has a goroutine of its own (run).
//
// Calls for the log writer and for the start of the server count at once. Calls that take
// long on a healthy disk count only while a duty waits for them. These are background
// calls: the snapshots of the snapshotter, and reads of old logs.
type diskWatch struct {
	limit func() time.Duration
	clock func() int64          // in ns
	wall  func(int64) time.Time // converts a time of clock
	tell  func(replica.Event)
	log   *slog.Logger
	count *metrics.Counter // number of stalls

	mu    sync.Mutex
	calls []diskCall // calls with began >= 0 are under way
	// waiting is the number of duties that wait for all calls. waitingSince is the clock
	// when the first of them began to wait.
	waiting      int
	waitingSince int64
	stalled      *diskCall // the call that was reported; nil: none
	normal       driver.StallBound
}

// diskCall is a call of the file system.
type diskCall struct {
	op         store.Op
	path       string
	began      int64 // the clock when the call began; negative: no call is under way
	background bool
}

// String names the call and its file, without the directory.
func (c *diskCall) String() string { return c.op.Verb() + " " + filepath.Base(c.path) }

// SlowDisk describes a call that the disk has not answered within the bound.
type SlowDisk struct {
	Dir   string    `json:"dir"`
	Duty  string    `json:"duty"` // such as "fsync of log.100000001"
	Since time.Time `json:"since"`
}

// String returns the text for srvr, mntr and the log.
func (d *SlowDisk) String() string {
	return fmt.Sprintf("%s in %s is unanswered since %s", d.Duty, d.Dir, d.Since.UTC().Format(time.RFC3339Nano))
}

func newDiskWatch(s *Server) *diskWatch {
	w := &diskWatch{
		limit: func() time.Duration { return s.config().Storage.StallLimit }, clock: s.clock, wall: s.wallAt,
		tell: func(e replica.Event) { s.inbox.push(e, nil) }, log: s.log, count: s.stats.registry.Counter("disk_stall_count"),
	}
	r := s.stats.registry
	r.Gauge("disk_duty_age_ms", func() float64 { return float64(w.age() / time.Millisecond) })
	r.Gauge("disk_stall_limit_ms", func() float64 { return float64(w.boundNow() / time.Millisecond) })
	return w
}

// Begin records that a call begins.
func (w *diskWatch) Begin(op store.Op, path string) int {
	c := diskCall{op: op, path: path, began: w.clock(), background: op == store.OpRead || store.IsSnapshot(path)}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.calls {
		if w.calls[i].began < 0 {
			w.calls[i] = c
			return i
		}
	}
	w.calls = append(w.calls, c)
	return len(w.calls) - 1
}

// End records that a call has returned. If that ends a stall, End reports it at once, so that
// the server takes part in its ensemble again without delay.
func (w *diskWatch) End(call int) {
	now := w.clock()
	w.mu.Lock()
	c := w.calls[call]
	if w.counts(&c) {
		w.normal.Note(now, time.Duration(w.ageOf(&c, now)), w.limit())
	}
	w.calls[call] = diskCall{began: -1}
	stalled := w.stalled != nil
	w.mu.Unlock()
	if stalled {
		w.check()
	}
}

// counts reports whether a duty waits for a disk call. The caller holds the lock.
func (w *diskWatch) counts(c *diskCall) bool {
	return c.began >= 0 && (!c.background || w.waiting > 0)
}

// ageOf returns for how long a duty has waited for a call. The caller holds the lock.
func (w *diskWatch) ageOf(c *diskCall, now int64) int64 {
	if c.background {
		return now - max(c.began, w.waitingSince)
	}
	return now - c.began
}

// bound returns how long a call may take. The caller holds the lock.
func (w *diskWatch) bound(now int64) time.Duration { return w.normal.Bound(now, w.limit()) }

func (w *diskWatch) boundNow() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bound(w.clock())
}

// oldest returns the call for which a duty has waited longest, and for how long; nil: there
// is none. The caller holds the lock.
func (w *diskWatch) oldest(now int64) (oldest *diskCall, age int64) {
	for i := range w.calls {
		if c := &w.calls[i]; w.counts(c) && (oldest == nil || w.ageOf(c, now) > age) {
			oldest, age = c, w.ageOf(c, now)
		}
	}
	return oldest, age
}

// age returns for how long a duty has waited for its oldest call.
func (w *diskWatch) age() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, age := w.oldest(w.clock())
	return time.Duration(age)
}

// whole records that a duty needs every call under way to return, including background
// calls. That holds until the caller calls done.
func (w *diskWatch) whole() (done func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting++; w.waiting == 1 {
		w.waitingSince = w.clock()
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.waiting--
	}
}

// check reports that a stall has begun or ended.
func (w *diskWatch) check() {
	w.mu.Lock()
	now := w.clock()
	c, age := w.oldest(now)
	bound := w.bound(now)
	before := w.stalled
	switch {
	case c != nil && age > int64(bound):
		same := *c
		same.began = now - age
		w.stalled = &same
		if before == nil {
			w.tell(replica.DiskStalled{Since: same.began / int64(time.Millisecond), Duty: same.String()})
		}
	case before != nil:
		w.stalled = nil
		w.tell(replica.DiskAnswered{})
	}
	after := w.stalled
	w.mu.Unlock()
	switch {
	case before == nil && after != nil:
		w.count.Add(1)
		w.log.Error("the disk does not answer; this server takes no part in elections and acknowledges nothing until it does: check the device and the file system, or restart the server with another disk",
			"dir", filepath.Dir(after.path), "duty", after.String(), "since", w.wall(after.began).UTC(), "limit", bound)
	case before != nil && after == nil:
		w.log.Warn("the disk answers again", "dir", filepath.Dir(before.path), "duty", before.String(), "took", time.Duration(now-before.began))
	}
}

// slow describes the stall; nil: there is none.
func (w *diskWatch) slow() *SlowDisk {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stalled == nil {
		return nil
	}
	return &SlowDisk{Dir: filepath.Dir(w.stalled.path), Duty: w.stalled.String(), Since: w.wall(w.stalled.began)}
}

// slowPart is the part of the limit from which on a call counts as slow.
const slowPart = 4

// slowest returns how long the longest call of the last minutes took if it was slow; 0: none was.
func (w *diskWatch) slowest() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	limit := w.limit()
	if took := w.normal.Slowest(w.clock(), limit); took >= limit/slowPart {
		return took
	}
	return 0
}

// Bounds of the pause between two checks.
const (
	stallPollMin = time.Millisecond
	stallPollMax = 100 * time.Millisecond
)

// run checks the disk, and calls also, until quit is closed.
func (w *diskWatch) run(quit <-chan struct{}, also func()) {
	poll := time.NewTicker(min(max(w.limit()/10, stallPollMin), stallPollMax))
	defer poll.Stop()
	for {
		select {
		case <-poll.C:
			w.check()
			also()
		case <-quit:
			return
		}
	}
}

// endMax is how long the end of a server waits for a disk that does not answer.
const endMax = 2 * time.Second

// await waits until done is closed. It gives up and returns false if the disk does not answer
// and endMax has passed since await was called.
func (w *diskWatch) await(done <-chan struct{}) bool {
	began := w.clock()
	poll := time.NewTicker(stallPollMax)
	defer poll.Stop()
	for {
		select {
		case <-done:
			return true
		case <-poll.C:
			if w.slow() != nil && w.clock()-began > int64(endMax) {
				return false
			}
		}
	}
}
