package recipe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"bellwether/wire"
	"bellwether/zk"
)

const (
	// registrationRetry is how long a Registration that is refused waits
	// before it tries again, unless something happens first.
	registrationRetry = 5 * time.Second
	// ownSessionsMax is how many older sessions a Registration remembers as its own.
	ownSessionsMax = 16
)

// RegistrationOptions are the settings of a Registration; nil is all defaults.
type RegistrationOptions struct {
	// ACL of the znodes made, open to everybody by default.
	ACL zk.ACLs
	// Predecessors are sessions whose znode at the path is taken over at once,
	// as those of this Registration itself are: that of the process before
	// this one, say, which died and has not expired yet.
	Predecessors []wire.SessionID
	// Wait lets Register wait until a foreign znode at the path is gone,
	// in place of returning an *OwnedError.
	Wait bool
}

// OwnedError: the znode belongs to somebody else.
type OwnedError struct {
	Path  string
	Owner wire.SessionID // 0: it is not ephemeral
}

func (e *OwnedError) Error() string {
	if e.Owner == 0 {
		return e.Path + " is a znode that no session owns"
	}
	return fmt.Sprintf("%s belongs to session %v", e.Path, e.Owner)
}

// Registration keeps an ephemeral znode: it makes it again in each new session
// and when somebody deletes it, until Close. Its methods may be called from
// any goroutine.
type Registration struct {
	c    *zk.Client
	path string
	opt  RegistrationOptions

	wake   chan struct{} // one token: the data is to be another
	cancel context.CancelFunc
	done   chan struct{} // closed when run has returned

	mu     sync.Mutex
	data   []byte
	want   int // counts the data given
	have   int // which of it the znode holds
	status RegistrationStatus

	// Of run, and after it of Close.
	own     []wire.SessionID
	session wire.SessionID // in which the znode may stand
	stat    wire.Stat
	watch   *zk.Watch // on the znode, nil: look first
}

// Register makes an ephemeral znode with this data, and its parents where they are missing,
// and keeps it. It returns when the znode stands. A znode that
// is there already is taken over when it is of this session or of an older one
// of its own, see RegistrationOptions; a foreign one gives an *OwnedError. The
// client stays the caller's. The data is not kept after the return.
func Register(ctx context.Context, c *zk.Client, path string, data []byte, o *RegistrationOptions) (*Registration, error) {
	r := &Registration{c: c, path: path, data: slices.Clone(data), want: 1, wake: make(chan struct{}, 1), done: make(chan struct{})}
	if o != nil {
		r.opt = *o
	}
	r.own = slices.Clone(r.opt.Predecessors)
	r.status = RegistrationStatus{link: newStandingLink()}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.cancel = cancel
	go r.run(run)
	if err := r.first(ctx); err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpDefault)
		defer cancel()
		_ = r.Close(ctx) // what is left goes on in the background
		return nil, err
	}
	return r, nil
}

// first waits until it stands, or is refused.
func (r *Registration) first(ctx context.Context) error {
	for s := r.Status(); ; {
		var owned *OwnedError
		switch {
		case s.Standing == Stands:
			return nil
		case errors.As(s.Err, &owned) && r.opt.Wait, errors.Is(s.Err, zk.ErrSessionExpired) && !s.Final():
		case s.Err != nil:
			return s.Err
		}
		var err error
		if s, err = s.Next(ctx); err != nil {
			return err
		}
	}
}

// ErrNoParent: the parent of a registration cannot be made, or was deleted as soon
// as it was.
var ErrNoParent = errors.New("there is no parent")

// Path is where it stands.
func (r *Registration) Path() string { return r.path }

// Set replaces the data, and returns when the znode holds it, or what was
// given to a later Set. After an error, the context's or that of an ended
// client, the data may come to stand yet.
func (r *Registration) Set(ctx context.Context, data []byte) error {
	r.mu.Lock()
	r.want++
	n := r.want
	r.data = slices.Clone(data)
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
	for s := r.Status(); ; {
		if r.holds(n) {
			return nil
		}
		if s.Final() {
			return s.Err
		}
		var err error
		if s, err = s.Next(ctx); err != nil {
			return err
		}
	}
}

func (r *Registration) holds(n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.have >= n && r.status.Standing == Stands
}

// Close ends the Registration and deletes its znode. The error is the context's:
// the deletion then goes on in the background, until it is done or the session
// ends; or it is what the server refuses.
func (r *Registration) Close(ctx context.Context) error {
	r.cancel()
	removed := make(chan error, 1)
	go func() { removed <- r.remove(context.WithoutCancel(ctx)) }()
	select {
	case err := <-removed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// remove deletes the znode that run has left, if it is its session's. The sync
// comes after everything that a create with a lost answer can have done.
func (r *Registration) remove(ctx context.Context) error {
	<-r.done
	if r.session == 0 {
		return nil
	}
	ctx = zk.InSession(ctx, r.session)
	for {
		var stat wire.Stat
		var ok bool
		err := r.c.Sync(ctx, r.path)
		if err == nil {
			stat, ok, err = r.c.Exists(ctx, r.path)
		}
		if err == nil && ok && stat.EphemeralOwner == r.session {
			err = r.c.Delete(ctx, r.path, stat.Version)
		}
		switch {
		case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrConnectionLoss):
			continue // look again
		case err == nil, errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrSessionExpired):
			return nil
		}
		return err
	}
}

// run keeps the znode until the context ends or the client is over.
func (r *Registration) run(ctx context.Context) {
	defer close(r.done)
	end := error(zk.ErrClosed)
	defer func() { r.follow(Absent, end, true) }()
	for s := r.c.State(); ctx.Err() == nil; {
		pause := time.Duration(0)
		switch s.State {
		case zk.Connected:
			if !hasChanged(s) {
				pause = r.attached(ctx, s)
			}
		case zk.Expired:
			r.becomes(Absent, zk.ErrSessionExpired)
		case zk.AuthFailed, zk.Closed:
		default:
			if r.Status().Standing == Stands {
				r.becomes(Doubtful, s.Err)
			}
		}
		if err := r.c.Err(); err != nil && s.State >= zk.Expired {
			end = err
			return
		}
		s = r.rest(ctx, s, pause)
	}
}

// hasChanged: another status has followed, of which it is to be told in its turn.
func hasChanged(s zk.Status) bool {
	select {
	case <-s.Changed():
		return true
	default:
		return false
	}
}

// attached sees that the znode stands in the session. It returns after what
// time to try again, 0 for not before something happens.
func (r *Registration) attached(ctx context.Context, s zk.Status) time.Duration {
	if s.Session != r.session {
		r.adopt(s.Session)
	}
	err := r.stand(zk.InSession(ctx, s.Session))
	var owned *OwnedError
	switch {
	case err == nil:
		r.becomes(Stands, nil)
	case errors.As(err, &owned):
		r.becomes(Absent, err)
	case errors.Is(err, zk.ErrConnectionLoss), errors.Is(err, zk.ErrSessionExpired), ctx.Err() != nil:
		return time.Millisecond // the next status is about to tell
	default:
		r.becomes(Absent, err)
		return registrationRetry
	}
	return 0
}

// adopt begins with a session of which nothing is known.
func (r *Registration) adopt(id wire.SessionID) {
	if r.session != 0 {
		r.own = append(r.own, r.session)
		r.own = r.own[max(len(r.own)-ownSessionsMax, 0):]
	}
	r.session, r.watch = id, nil
	r.mu.Lock()
	r.have = 0
	r.mu.Unlock()
}

// rest waits until there is something to look at, and returns the status of
// the client with which to go on.
func (r *Registration) rest(ctx context.Context, s zk.Status, pause time.Duration) zk.Status {
	var again <-chan time.Time
	if pause > 0 {
		t := time.NewTimer(pause)
		defer t.Stop()
		again = t.C
	}
	var fired <-chan struct{}
	if r.watch != nil {
		fired = r.watch.Done()
	}
	select {
	case <-ctx.Done():
	case <-s.Changed():
		s, _ = s.Next(ctx)
	case <-fired:
		r.watch = nil
	case <-r.wake:
	case <-again:
	}
	return s
}
