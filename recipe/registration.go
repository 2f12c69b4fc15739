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

// RegistrationOptions are the settings of a Registration. A nil pointer means all defaults.
type RegistrationOptions struct {
	// ACL is given to each znode that is created. By default everybody may do everything.
	ACL zk.ACLs
	// Predecessors are other sessions whose znode at the path Register may replace at once. An
	// example is the session of an earlier process that has died and whose session has not expired
	// yet. Register always replaces the znodes of the Registration's own older sessions.
	Predecessors []zk.SessionID
	// Wait makes Register wait until a znode of another owner at the path is gone,
	// instead of returning an *OwnedError.
	Wait bool

	// Logger and Observer receive reports as described at ElectionOptions.
	Logger   *slog.Logger
	Observer func(Observation)
}

// OwnedError says that the znode at Path belongs to another owner.
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

// ErrNoParent says that the parent of a registration cannot be created, or is deleted
// each time it was created.
var ErrNoParent = registry.ErrNoParent

// Registration keeps an ephemeral znode until Close: it creates the znode again in each
// new session, and when somebody deletes it. Its methods may be called from any
// goroutine.
//
// Invariants: once status is final it does not change, and done is closed soon after.
type Registration struct {
	b    *agent
	path string
	opt  RegistrationOptions

	m      *registry.Registrant // used by the driver's loop, and after its end by Close
	driver *driver
	cancel context.CancelFunc // makes the machine resign
	done   chan struct{}      // closed when the driver's run has returned
	known  registry.RegistrantState

	mu     sync.Mutex
	want   int // how many times the caller has given data: once with Register, and once with each Set
	status RegistrationStatus
	since  time.Time // when status began
}

// Register creates an ephemeral znode with this data, and keeps it. It also creates missing
// parents. It returns when the znode exists. If there is a znode already,
// Register takes it over if it belongs to this session, or to a session that
// RegistrationOptions.Predecessors names; otherwise it returns an *OwnedError. The caller still owns
// the client. Register does not use the slice data after it returns.
func Register(ctx context.Context, c *zk.Client, path string, data []byte, o *RegistrationOptions) (*Registration, error) {
	if err := checkClient("registration", c, path); err != nil {
		return nil, err
	}
	r := &Registration{path: path, opt: optionsOr(o), want: 1, done: make(chan struct{}), since: time.Now()}
	b := newAgent(c, "registration", path, r.opt.ACL, r.opt.Logger, r.opt.Observer)
	r.b = &b
	r.m = registry.NewRegistrant(registry.RegistrantConfig{Path: path, Data: slices.Clone(data), Own: r.opt.Predecessors})
	r.status = RegistrationStatus{link: newStatusLink()}
	r.driver = b.newDriver(r.m)
	r.driver.resigns, r.driver.afterStep = true, r.stepped
	r.driver.tidy = true // a znode of another owner may stay; the registration's own znode is deleted before its watch is removed
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.cancel = cancel
	go func() {
		defer close(r.done)
		_ = r.driver.run(run) // the machine holds the error
	}()
	if err := r.first(ctx); err != nil {
		ctx, cancel := whileConnected(ctx, c, cleanUpDefault)
		defer cancel()
		_ = r.Close(ctx) // the rest of the removal continues in the background
		return nil, err
	}
	return r, nil
}

// first waits until the znode exists or the registration is refused.
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

// Set replaces the data. It returns when the znode holds this data, or the data of a
// later Set. Set returns an error if the context ends first or the client has ended; the
// data may still be written then.
func (r *Registration) Set(ctx context.Context, data []byte) error {
	r.mu.Lock()
	r.want++
	n := r.want
	r.mu.Unlock()
	select {
	case r.driver.events <- input{event: registry.Keep{Data: slices.Clone(data), N: n}}:
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

// Close ends the Registration and deletes its znode. If the context ends first, Close
// returns the context's error, and the deletion continues in the background until it is
// done or the session ends. Any other error comes from a server that refused a request.
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

// stepped makes the next status after each step that changed the state. The driver's goroutine calls it.
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
	case s.Foreign:
		r.follow(Absent, &OwnedError{Path: r.path, Owner: s.Owner}, false)
	default:
		r.follow(Absent, s.Err, false)
	}
}
