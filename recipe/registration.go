package recipe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/claim/registry"
	"bellwether/zk"
)

// RegistrationOptions are the settings of a Registration; nil is all defaults.
type RegistrationOptions struct {
	// ACL of the znodes made, open to everybody by default.
	ACL zk.ACLs
	// Predecessors are sessions whose znode at the path is taken over at once,
	// as those of this Registration itself are: that of the process before
	// this one, say, which died and has not expired yet.
	Predecessors []zk.SessionID
	// Wait lets Register wait until a foreign znode at the path is gone,
	// in place of returning an *OwnedError.
	Wait bool

	// Logger and Observer are those of ElectionOptions.
	Logger   *slog.Logger
	Observer func(Observation)
}

// OwnedError says that the znode belongs to somebody else.
type OwnedError struct {
	Path  string
	Owner zk.SessionID // 0: it is not ephemeral
}

func (e *OwnedError) Error() string {
	if e.Owner == 0 {
		return e.Path + " is a znode that no session owns"
	}
	return fmt.Sprintf("%s belongs to session %v", e.Path, e.Owner)
}

// ErrNoParent says that the parent of a registration cannot be created, or was deleted
// as soon as it was created.
var ErrNoParent = registry.ErrNoParent

// Registration keeps an ephemeral znode until Close: it creates the znode again in each
// new session, and when somebody deletes it. Its methods may be called from any
// goroutine.
type Registration struct {
	b    *agent
	path string
	opt  RegistrationOptions

	m      *registry.Registrant // of the driver, and after it of Close
	driver *driver
	cancel context.CancelFunc // has it resign
	done   chan struct{}      // closed when the driver is done
	known  registry.RegistrantState

	mu     sync.Mutex
	want   int // counts the data given
	status RegistrationStatus
	since  time.Time // of the status
}

// Register creates an ephemeral znode with this data, and its parents if they are
// missing, and keeps it. It returns when the znode exists. If there is a znode already,
// Register takes it over if it belongs to this session or to an older one of its own,
// see RegistrationOptions; otherwise it returns an *OwnedError. The caller still owns
// the client. Register does not keep data after it returns.
func Register(ctx context.Context, c *zk.Client, path string, data []byte, o *RegistrationOptions) (*Registration, error) {
	r := &Registration{path: path, want: 1, done: make(chan struct{}), since: time.Now()}
	if o != nil {
		r.opt = *o
	}
	b := newAgent(c, "registration", path, r.opt.ACL, r.opt.Logger, r.opt.Observer)
	r.b = &b
	r.m = registry.NewRegistrant(registry.RegistrantConfig{Path: path, Data: slices.Clone(data), Own: r.opt.Predecessors})
	r.status = RegistrationStatus{link: newStandingLink()}
	r.driver = b.newDriver(r.m)
	r.driver.resigns, r.driver.stepped = true, r.stepped
	r.driver.tidy = true // a foreign znode may stay; the own goes before its watch is given up
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.cancel = cancel
	go func() {
		defer close(r.done)
		_ = r.driver.run(run) // which ends with the state machine
	}()
	if err := r.first(ctx); err != nil {
		ctx, cancel := whileAnswered(ctx, c, cleanUpDefault)
		defer cancel()
		_ = r.Close(ctx) // what is left goes on in the background
		return nil, err
	}
	return r, nil
}

// first waits until it stands, or is refused.
func (r *Registration) first(ctx context.Context) error {
	for s := r.Status(); ; {
		switch {
		case s.Standing == Stands:
			return nil
		case s.refused:
			return s.Err
		}
		var err error
		if s, err = s.Next(ctx); err != nil {
			return err
		}
	}
}

// Path returns the path of the znode.
func (r *Registration) Path() string { return r.path }

// Set replaces the data. It returns when the znode holds the data, or that of a later
// Set. After an error, the context's or that of an ended client, the data may still be
// written.
func (r *Registration) Set(ctx context.Context, data []byte) error {
	r.mu.Lock()
	r.want++
	n := r.want
	r.mu.Unlock()
	select {
	case r.driver.events <- heard{ev: registry.Keep{Data: slices.Clone(data), N: n}}:
	case <-r.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	for s := r.Status(); ; {
		if s.Standing == Stands && s.have >= n {
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

// Close ends the Registration and deletes its znode. If the error is the context's, the
// deletion continues in the background until it is done or the session ends. Otherwise
// the error is what the server refuses.
func (r *Registration) Close(ctx context.Context) error {
	r.cancel()
	select {
	case <-r.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := r.b.verdict(ctx, "close", r.path, r.m); !errors.Is(err, zk.ErrSessionExpired) {
		return err
	}
	return nil
}

// stepped tells what has become of it, by the driver's goroutine.
func (r *Registration) stepped(context.Context, claim.Event) {
	s := r.m.State()
	if s == r.known {
		return
	}
	r.known = s
	switch {
	case s.Leaving:
		r.follow(Absent, cmp.Or(r.b.c.Err(), error(&closedError{"registration", r.path})), true)
	case s.Doubtful:
		r.follow(Doubtful, r.driver.status.Err, false)
	case s.Stands:
		r.follow(Stands, nil, false)
	case s.Owned:
		r.follow(Absent, &OwnedError{Path: r.path, Owner: s.Owner}, false)
	default:
		r.follow(Absent, s.Err, false)
	}
}
