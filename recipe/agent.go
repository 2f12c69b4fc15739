package recipe

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"bellwether/internal/claim"
	"bellwether/wire"
	"bellwether/zk"
)

// agent holds what all recipes have in common: a client, the recipe's name and path, the
// ACL of the znodes that it creates, and its reporter. Its fields do not change once it
// is in use.
type agent struct {
	c      *zk.Client
	recipe string // name of the recipe in errors
	path   string // path of the recipe
	id     string // id of the candidate or holder, for the log; may be empty
	acl    zk.ACLs
	report *reporter
	clock  clock

	leaseDelay time.Duration // 0: the delay that the client knows
	keepAlive  time.Duration // between two frequent pings; 0: see pace
	cleanUp    time.Duration // how long a call whose context has ended waits for the removal of what it created

	over error   // wrapped by the error of an operation whose handle is over
	more []zk.Op // the operations that claim.OpMore stands for
	// itemACL, unless it is nil, receives the ACL of the item that Queue.TakeTo read last.
	itemACL *zk.ACLs
}

func newAgent(c *zk.Client, recipe, path string, acl zk.ACLs, logger *slog.Logger, observe func(Observation)) agent {
	return agent{c: c, recipe: recipe, path: path, acl: acl, report: newReporter(logger, observe), clock: newClock(), cleanUp: cleanUpDefault}
}

// optionsOr returns the options of a recipe; nil means all defaults.
func optionsOr[T any](o *T) (opt T) {
	if o != nil {
		opt = *o
	}
	return opt
}

// validate checks the client and the path.
func (a *agent) validate() error { return checkClient(a.recipe, a.c, a.path) }

// checkClient returns an error if c is nil or path is not a valid path of a znode. Constructors call it, because a nil
// client would later panic on a goroutine of the recipe, where the caller cannot recover.
func checkClient(recipe string, c *zk.Client, path string) error {
	if c == nil {
		return errNil(recipe, path, "client")
	}
	return checkPath(recipe, path)
}

// errNil returns the error for an argument that must not be nil.
func errNil(recipe, path, what string) error {
	return fmt.Errorf("%s %s: the %s is nil: %w", recipe, path, what, zk.ErrBadArguments)
}

// checkPath returns an error if path is not a valid path of a znode.
func checkPath(recipe, path string) error {
	if !wire.ValidPath(path) {
		return fmt.Errorf("%s: %q is not the path of a znode; want a path such as /app/x, in which no part is empty, . or ..: %w", recipe, path, zk.ErrBadArguments)
	}
	return nil
}

// checkName returns an error if name cannot be the name of a znode.
func checkName(recipe, name string) error {
	if name == "" || strings.Contains(name, "/") || !wire.ValidPath("/"+name) {
		return fmt.Errorf("%s: %q cannot be the name of a znode; want a name without a slash that is not empty, . or ..: %w", recipe, name, zk.ErrBadArguments)
	}
	return nil
}

// workWhile returns the context of a function that runs while something is held. The context ends with ctx and with
// held. It also ends when the client is closed or detached, before a server learns of that. stop ends it without waiting.
func (a *agent) workWhile(ctx, held context.Context) (work context.Context, stop func()) {
	work, cancel := context.WithCancelCause(ctx)
	unlink := context.AfterFunc(held, func() { cancel(context.Cause(held)) })
	// The function of AfterFunc runs on another goroutine, for which Close of the client
	// does not wait. The function of OnClose runs before Close tells a server.
	unhook := a.c.OnClose(func() { cancel(a.lost(SessionClosed, nil)) })
	return work, func() {
		unhook()
		unlink()
		cancel(nil)
	}
}

// lost returns the error with which a term or a campaign ended.
func (a *agent) lost(r Reason, err error) *LostError {
	return &LostError{Parent: a.path, Reason: r, Err: err, recipe: a.recipe}
}

// isOver returns the error of an operation that was not carried out because its handle is over.
func (a *agent) isOver(lost error) error { return fmt.Errorf("%w: %w", a.over, lost) }

// never is a time so long ago that a ping sent then proves nothing.
var never = claim.Moment{Mono: -1 << 62, Wall: -1 << 62}

// lease returns the client's lease, or false if it does not belong to this session.
func (a *agent) lease(id zk.SessionID) (claim.Lease, bool) {
	l := a.c.Lease()
	if l.Session != id || id == 0 {
		return claim.Lease{}, false
	}
	if a.leaseDelay > 0 {
		l.Delay = a.leaseDelay
	}
	return claim.Lease{Sent: a.clock.moment(l.Confirmed), Timeout: l.Timeout, Delay: l.Delay}, true
}

// pace returns the time between two frequent pings. An interval of the caller counts only as far as the lease lasts
// long enough for it.
func (a *agent) pace(l claim.Lease) time.Duration {
	if a.keepAlive > 0 {
		return min(a.keepAlive, l.Window()/4)
	}
	return l.Pace()
}

// pause waits before the next try. claim.Backoff says how the pauses grow.
func (a *agent) pause(ctx context.Context, pause *claim.Backoff) error {
	now := a.clock.read()
	pause.Fail(now)
	timer := time.NewTimer(pause.Left(now))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
