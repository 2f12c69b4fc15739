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

// Observation is one thing that a recipe has done, for metrics. Every recipe's options take a function
// that is told of each:
//
//	recipe                    event                      took
//	election                  campaign                   until it led, or Err
//	lock, read lock,          acquire                    until it was held, or Err
//	write lock, semaphore
//	all of these              term                       the time led or held; Err is a *LostError
//	queue                     put, take, ack, release    the call
//	                          dead letter                no time; Znode is the item
//	barrier                   close, open, wait          the call
//	                          enter, leave               the call, of a DoubleBarrier
//	registration              absent, stands, doubtful   the time that it was so; Err is why not
//	cache                     load, follow               until all was read; from then to its end, by Err
//	value                     change                     the call, also of Counter and IDs
//	commit                    commit, join               the call, with Recover and Forget
//	election (its leader's)   publish                    PublishConfig
//	config                    news                       no time: WatchConfig has a configuration
//	                          watch                      until WatchConfig ended, by Err
//	work                      submit                     the call
//
// The locks of a MultiLock, the elections of a Partitioner and of Work, and the registrations
// of a Group and of a Discovery are observed as what they are.
type Observation struct {
	Recipe string // as its errors begin
	Path   string // of the recipe; of a semaphore that of its leases
	Znode  string // that it was about: an item, a transaction, or the same as Path
	Event  string
	Took   time.Duration
	Err    error // nil: it was done
}

// reporter tells the Logger and the Observer of a recipe what happens. One that blocks must
// not keep the recipe from its deadlines. A nil reporter tells nobody.
type reporter struct {
	logger  *slog.Logger
	observe func(Observation)
	queue   inorder.Queue
}

// newReporter is nil where nobody is to be told.
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

// log is a record for the Logger, of the present time.
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

// observed tells of what began at start and has ended now. It is a record at Debug too.
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

// observed tells of an event of this recipe that began at start.
func (a *agent) observed(event, znode string, start time.Time, err error) {
	a.report.observed(Observation{Recipe: a.recipe, Path: a.path, Znode: znode, Event: event, Err: err}, start)
}

// tell logs what a machine says, and remembers what it left behind.
func (a *agent) tell(h claim.Happening) {
	level := slog.LevelDebug
	what := h
	if g, ok := h.(lines.AtGate); ok {
		what = g.Happening
	}
	switch what := what.(type) {
	case lines.Leads:
		level = slog.LevelInfo
	case lines.Ended:
		if what.Led {
			level = slog.LevelInfo
		}
	case queues.Buried:
		level = slog.LevelWarn
		a.observed("dead letter", what.Item, time.Time{}, nil)
	case lines.Unpublished, commit.Passed:
		level = slog.LevelWarn
	case lines.Left:
		if what.Err != nil {
			level = slog.LevelWarn
			a.leave(what.Path)
		}
	}
	if a.report == nil {
		return
	}
	a.report.log(level, h.String(), "path", a.path, "id", a.id)
}
