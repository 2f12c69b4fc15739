package recipe

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/claim/lines"
	"bellwether/zk"
)

// LockOptions are the settings of a lock; nil is all defaults.
type LockOptions struct {
	// ID of the holder, for others to read. UTF-8.
	ID string
	// Naming of the bids: OwnNames, the default, or that of the library with
	// which the parent is shared.
	//
	//	                  Lock                 ReadWriteLock                  Semaphore
	//	CuratorLockNames  InterProcessMutex    InterProcessReadWriteLock      InterProcessSemaphoreV2
	//	KazooNames        Lock                 ReadLock, WriteLock            Semaphore
	//	GoZKNames         Lock
	Naming Naming
	// ACL of the znodes made, open to everybody by default.
	ACL zk.ACLs

	// LeaseDelay, KeepAlive, Margin and CleanUp are as in ElectionOptions.
	LeaseDelay time.Duration
	KeepAlive  time.Duration
	Margin     time.Duration
	CleanUp    time.Duration

	// Logger and Observer are those of ElectionOptions.
	Logger   *slog.Logger
	Observer func(Observation)
}

// Lock is a lock that one client holds at a time, in the order of arrival; or one side
// of a ReadWriteLock. Its methods may be called from any goroutine; each call makes a
// bid of its own.
type Lock struct{ bidder }

// NewLock prepares the lock at parent, which is created if it is missing. The caller
// still owns the client and may share it.
func NewLock(c *zk.Client, parent string, o *LockOptions) (*Lock, error) {
	o = o.orDefault()
	l := newLock(c, lines.Config{Parent: parent, Naming: o.Naming, Rule: lines.Exclusive}, o, "lock")
	return l, l.validate(OwnNames, CuratorLockNames, KazooNames, GoZKNames)
}

func (o *LockOptions) orDefault() *LockOptions {
	if o == nil {
		return &LockOptions{}
	}
	return o
}

func newLock(c *zk.Client, cfg lines.Config, o *LockOptions, recipe string) *Lock {
	cfg.ID = o.ID
	opt := ElectionOptions{Naming: o.Naming, ACL: o.ACL, LeaseDelay: o.LeaseDelay, KeepAlive: o.KeepAlive,
		Margin: o.Margin, CleanUp: o.CleanUp, Logger: o.Logger, Observer: o.Observer}
	return &Lock{newBidder(c, cfg, opt, recipe, ErrNotHeld)}
}

// validate refuses namings besides those given.
func (l *Lock) validate(namings ...Naming) error {
	for _, n := range namings {
		if n == l.opt.Naming {
			return l.bidder.validate()
		}
	}
	return fmt.Errorf("%s %s: no naming %v", l.recipe, l.cfg.Parent, l.opt.Naming)
}

// Lock waits until it holds the lock. It survives lost connections, and
// stands at the end of the line again when the session expires. It returns
// the context's error, zk.ErrClosed, or a [*LostError] when the server refuses
// what it needs. An error leaves no bid behind: Lock waits for its removal while the client is
// connected, for LockOptions.CleanUp at most; after that the removal goes on in the background.
//
// Who holds a lock and calls Lock again waits for itself; see [Hold.Again].
func (l *Lock) Lock(ctx context.Context) (*Hold, error) { return l.acquire(ctx, false) }

// TryLock takes the lock only if nobody holds it or waits for it; otherwise it returns
// ErrHeld. It waits for a connection as Lock does.
func (l *Lock) TryLock(ctx context.Context) (*Hold, error) { return l.acquire(ctx, true) }

// Do waits as Lock does until it holds the lock, runs fn, and releases the lock when
// fn has returned, also when it panics. The context given to fn ends with the hold and with
// ctx; its cause says why. fn must return then: the lock is not released before.
//
// Do returns the error of Lock, without calling fn; or what fn returns. If the lock was lost
// before fn returned, the error is or wraps ErrNotHeld and a [*LostError], whatever fn
// returns: somebody else may have held the lock meanwhile. Do does not call fn again. If the server
// refuses to remove the bid, which then stands until the session ends, and fn has
// returned nil, Do returns what the server says. The removal is waited for within
// LockOptions.CleanUp and goes on in the background after that.
func (l *Lock) Do(ctx context.Context, fn func(ctx context.Context, h *Hold) error) error {
	h, err := l.Lock(ctx)
	if err != nil {
		return err
	}
	return during(ctx, &l.bidder, h, func(ctx context.Context) error { return fn(ctx, h) })
}

func (l *Lock) acquire(ctx context.Context, try bool) (*Hold, error) {
	h, err := l.campaign(ctx, &claim.Backoff{}, func(ctx context.Context) *term {
		t, run := l.prepare(ctx, try)
		go t.run(run)
		return t
	})
	if err != nil {
		return nil, err
	}
	return (&grip{h: h}).hold(), nil
}
