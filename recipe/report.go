package recipe

import (
	"context"
	"log/slog"
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/claim/commit"
	"bellwether/internal/claim/lines"
	"bellwether/internal/claim/queues"
	"bellwether/internal/inorder"
)

// Observation is one thing that a recipe has done, for metrics. The Observer in the options of every recipe
// receives each Observation:
//
//	recipe                    event                      Took
//	election                  campaign                   until it led, or Err
//	lock, read lock,          acquire                    until it was held, or Err
//	write lock, semaphore
//	all of these              term                       how long it led or held; Err is a *LostError
//	queue                     put, take, ack, release    duration of the call
//	                          dead letter                0; Znode is the item
//	barrier                   close, open, wait          duration of the call
//	                          enter, leave               duration of the call, of a DoubleBarrier
//	registration              absent, stands, doubtful   how long this status lasted; Err is its error
//	cache                     load, follow               until all was read; from then to its end, with Err
//	value                     change                     duration of the call, also for Counter and IDs
//	commit                    commit, join               duration of the call, also for Recover and Forget
//	election (its leader's)   publish                    duration of PublishConfig
//	config                    news                       0; WatchConfig has read a configuration
//	                          watch                      until WatchConfig ended, with Err
//	work                      submit                     duration of the call
//
// The locks of a MultiLock, the elections of a Partitioner and of Work, and the registrations
// of a Group and of a Discovery are reported under their own recipe names.
type Observation struct {
	Recipe string // the name with which its errors begin
	Path   string // path of the recipe; for a semaphore the path of its leases
	Znode  string // the znode that the event is about: an item, a transaction, or the same as Path
	Event  string
	Took   time.Duration
	Err    error // nil: it succeeded
}

// reporter gives reports to the Logger and the Observer of a recipe, on a goroutine of their own. So a call that
// blocks does not delay the recipe. A nil reporter reports nothing.
type reporter struct {
	logger  *slog.Logger
	observe func(Observation)
	queue   inorder.Queue
}

// newReporter returns nil if there is neither a Logger nor an Observer.
func newReporter(logger *slog.Logger, observe func(Observation)) *reporter {
	if logger == nil && observe == nil {
		return nil
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	r := &reporter{logger: logger, observe: observe}
	r.queue.Missed = func(n int) {
		r.record(time.Now(), slog.LevelWarn, "reports were left out: the Logger or the Observer takes too long", []any{"reports", n})
	}
	return r
}

// log adds a record for the Logger, with the current time.
func (r *reporter) log(level slog.Level, msg string, args ...any) {
	if r == nil {
		return
	}
	now := time.Now()
	r.queue.Add(func() { r.record(now, level, msg, args) })
}

func (r *reporter) record(now time.Time, level slog.Level, msg string, args []any) {
	ctx := context.Background()
	if !r.logger.Enabled(ctx, level) {
		return
	}
	rec := slog.NewRecord(now, level, msg, 0)
	rec.Add(args...)
	_ = r.logger.Handler().Handle(ctx, rec) // as slog.Logger does
}

// observed reports an event that began at start and ends now. It also logs the event at Debug.
func (r *reporter) observed(o Observation, start time.Time) {
	if r == nil {
		return
	}
	now := time.Now()
	if !start.IsZero() {
		o.Took = now.Sub(start)
	}
	r.queue.Add(func() {
		args := []any{"path", o.Znode, "took", o.Took}
		if o.Err != nil {
			args = append(args, "err", o.Err)
		}
		r.record(now, slog.LevelDebug, o.Recipe+": "+o.Event, args)
		if r.observe != nil {
			r.observe(o)
		}
	})
}

// observed reports an event of this recipe that began at start and ends now. A zero start means that Took is 0.
func (a *agent) observed(event, znode string, start time.Time, err error) {
	a.report.observed(Observation{Recipe: a.recipe, Path: a.path, Znode: znode, Event: event, Err: err}, start)
}

// tell logs an observation of a machine. If the machine could not remove its bid, tell also records the leftover.
func (a *agent) tell(h claim.Observation) {
	level := slog.LevelDebug
	what := h
	if g, ok := h.(lines.AtGate); ok {
		what = g.Observation
	}
	switch what := what.(type) {
	case lines.Leads:
		level = slog.LevelInfo
	case lines.Ended:
		if what.Led {
			level = slog.LevelInfo
		}
	case queues.DeadLetter:
		level = slog.LevelWarn
		a.observed("dead letter", what.Item, time.Time{}, nil)
	case lines.Unpublished, commit.NotTransaction:
		level = slog.LevelWarn
	case lines.Left:
		if what.Err != nil {
			level = slog.LevelWarn
			a.recordLeftover(what.Path)
		}
	}
	if a.report == nil {
		return
	}
	a.report.log(level, h.String(), "path", a.path, "id", a.id)
}
