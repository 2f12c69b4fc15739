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

// LockOptions are the settings of a lock or a semaphore. A nil pointer means all defaults.
type LockOptions struct {
	// ID is the name of the holder that other clients see. UTF-8.
	ID string
	// Naming is how the bids are named: OwnNames, the default, or the naming of the library with
	// which the parent is shared.
	//
	//	                  Lock                 ReadWriteLock                  Semaphore
	//	CuratorLockNames  InterProcessMutex    InterProcessReadWriteLock      InterProcessSemaphoreV2
	//	KazooNames        Lock                 ReadLock, WriteLock            Semaphore
	//	GoZKNames         Lock
	Naming Naming
	// ACL is given to each znode that is created. By default everybody may do everything.
	ACL zk.ACLs

	// LeaseDelay, KeepAlive, Margin and CleanUp are described at ElectionOptions.
	LeaseDelay time.Duration
	KeepAlive  time.Duration
	Margin     time.Duration
	CleanUp    time.Duration

	// Logger and Observer receive reports as described at ElectionOptions.
	Logger   *slog.Logger
	Observer func(Observation)
}

// Lock is a lock that one client holds at a time, in the order of arrival. It can also be one side
// of a ReadWriteLock. Its methods may be called from any goroutine; each call makes a
// bid of its own.
type Lock struct{ bidder }

// NewLock prepares the lock at parent, which is created if it is missing. The caller
// still owns the client and may share it.
func NewLock(c *zk.Client, parent string, o *LockOptions) (*Lock, error) {
	opt := optionsOr(o)
	l := newLock(c, lines.Config{Parent: parent, Naming: opt.Naming, Rule: lines.Exclusive}, opt, "lock")
	return l, l.validate(OwnNames, CuratorLockNames, KazooNames, GoZKNames)
}

func newLock(c *zk.Client, cfg lines.Config, o LockOptions, recipe string) *Lock {
	cfg.ID = o.ID
	opt := ElectionOptions{Naming: o.Naming, ACL: o.ACL, LeaseDelay: o.LeaseDelay, KeepAlive: o.KeepAlive,
		Margin: o.Margin, CleanUp: o.CleanUp, Logger: o.Logger, Observer: o.Observer}
	return &Lock{newBidder(c, cfg, opt, recipe, ErrNotHeld)}
}

// validate returns an error unless the naming is one of those given.
func (l *Lock) validate(namings ...Naming) error {
	for _, n := range namings {
		if n == l.opt.Naming {
			return l.bidder.validate()
		}
	}
	return fmt.Errorf("%s %s: the naming %v is not one of this recipe: see LockOptions.Naming", l.recipe, l.cfg.Parent, l.opt.Naming)
}

// Lock waits until it holds the lock. It survives lost connections. When the session
// expires it makes a new bid, at the end of the line. It returns the context's error,
// zk.ErrClosed, or a [*LostError] if the server refuses a request that it needs. If Lock
// returns an error, it removes its bid first. It waits for the removal while the client
// is connected, for LockOptions.CleanUp at most. After that the removal continues in the
// background.
//
// A client that holds the lock and calls Lock again waits for itself; see [Hold.Again].
func (l *Lock) Lock(ctx context.Context) (*Hold, error) { return l.acquire(ctx, false) }

// TryLock takes the lock only if no client holds it or waits for it; otherwise it returns
// ErrHeld. It waits for a connection as Lock does.
func (l *Lock) TryLock(ctx context.Context) (*Hold, error) { return l.acquire(ctx, true) }

// Do waits as Lock does until it holds the lock, runs fn, and releases the lock when fn
// has returned, or has panicked. The context given to fn ends with the hold and with ctx;
// its cause says why. fn must then return, because Do does not release the lock until fn
// has returned.
//
// If Lock fails, Do returns its error and does not call fn. Otherwise Do returns the error of fn. If the lock
// was lost before fn returned, the error is or wraps ErrNotHeld and a [*LostError], whatever fn
// returned, because another client may have held the lock meanwhile. Do does not call fn again. If fn
// returned nil and the server refuses to remove the bid, Do returns the server's error; the bid then stays
// until the session ends. Do waits for the removal for LockOptions.CleanUp at most. After that
// the removal continues in the background.
func (l *Lock) Do(ctx context.Context, fn func(ctx context.Context, h *Hold) error) error {
	h, err := l.Lock(ctx)
	if err != nil {
		return err
	}
	return whileHeld(ctx, &l.bidder, h, func(ctx context.Context) error { return fn(ctx, h) })
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
	return (&sharedHandle{h: h}).hold(), nil
}
