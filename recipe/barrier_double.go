package recipe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"bellwether/internal/claim"
	"bellwether/wire"
	"bellwether/zk"
)

// DoubleBarrier lets its members begin together and end together: Enter
// returns when enough are in, Leave when all who were in are out. Its znodes are
// those of Curator's DistributedDoubleBarrier and kazoo's DoubleBarrier: an
// ephemeral one for each member, and "ready".
//
// One DoubleBarrier is one member, which enters and leaves in turn.
type DoubleBarrier struct {
	b     bidder
	path  string
	n     int
	kazoo bool

	mu      sync.Mutex // held by Enter and Leave
	own     string     // path of the member's znode; empty while it is out
	session wire.SessionID
	round   map[string]bool // who was in when this member began to leave
}

// NewDoubleBarrier prepares a member of a barrier for n.
func NewDoubleBarrier(c *zk.Client, path string, n int, o *BarrierOptions) (*DoubleBarrier, error) {
	d := &DoubleBarrier{b: barrierBidder(c, path, o), path: path, n: n, kazoo: o != nil && o.Kazoo}
	if n < 1 {
		return d, fmt.Errorf("barrier %s: for %d members", path, n)
	}
	return d, d.b.validate()
}

// Errors of a DoubleBarrier that is used in the wrong order.
var (
	ErrEntered    = errors.New("this member of the barrier is in already")
	ErrNotEntered = errors.New("this member of the barrier is not in")
)

func (d *DoubleBarrier) ready() string { return claim.Join(d.path, "ready") }

// Enter waits until n members are in. With an error this member is out; where
// the context ended at the last moment, the others may have begun without it.
// When the session expires the member is out: ErrSessionExpired.
func (d *DoubleBarrier) Enter(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.own != "" {
		return ErrEntered
	}
	var err error
	if d.session, err = currentSession(ctx, d.b.c); err != nil {
		return err
	}
	own := claim.Join(d.path, nonce())
	if err = d.enter(zk.InSession(ctx, d.session), own); err != nil {
		sweep(ctx, d.b.c, d.session, own)
		return err
	}
	d.own, d.round = own, nil
	return nil
}

func (d *DoubleBarrier) enter(ctx context.Context, own string) error {
	if err := d.create(ctx, own, claim.Op{}); err != nil {
		return err
	}
	for {
		_, ok, w, err := d.b.c.ExistsW(ctx, d.ready())
		if err != nil {
			return err
		}
		var in []string
		if !ok {
			in, err = d.members(ctx)
		}
		if ok || err != nil || len(in) >= d.n {
			unwatch(ctx, w)
			if ok || err != nil {
				return err
			}
			return d.create(ctx, d.ready(), claim.Op{Persistent: true})
		}
		// Only that ready was there is a reason to pass: not that the client
		// was woken, nor that it is connected again (Curator GH-1290).
		ev, err := w.Wait(ctx)
		if err != nil {
			unwatch(ctx, w)
			return err
		}
		if ev.Type == wire.EventNodeCreated && ev.Path == d.ready() {
			return nil
		}
	}
}

// create makes a znode that only we, or others with the same intent, make.
func (d *DoubleBarrier) create(ctx context.Context, path string, kind claim.Op) error {
	return persist(ctx, func() error {
		_, _, err := d.b.c.Create(ctx, path, nil, d.b.createOptions(kind)...)
		if errors.Is(err, zk.ErrNoNode) {
			if err = d.b.makeParents(ctx, d.path); err == nil {
				_, _, err = d.b.c.Create(ctx, path, nil, d.b.createOptions(kind)...)
			}
		}
		if errors.Is(err, zk.ErrNodeExists) {
			return nil
		}
		return err
	})
}

// members are the names of those who are in, lowest first.
func (d *DoubleBarrier) members(ctx context.Context) ([]string, error) {
	names, _, err := d.b.c.Children(ctx, d.path)
	names = slices.DeleteFunc(names, func(n string) bool { return n == "ready" })
	slices.Sort(names)
	return names, absent(err)
}

// Session is the session in which the member is in, 0 while it is out.
func (d *DoubleBarrier) Session() wire.SessionID {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.own == "" {
		return 0
	}
	return d.session
}

// Leave waits until all members are out. After an error it may be called
// again; a session that expired has taken this member out: ErrSessionExpired.
func (d *DoubleBarrier) Leave(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.own == "" {
		return ErrNotEntered
	}
	err := d.leave(zk.InSession(ctx, d.session))
	if err == nil || errors.Is(err, zk.ErrSessionExpired) {
		d.own = ""
	}
	return err
}

func (d *DoubleBarrier) leave(ctx context.Context) error {
	if d.kazoo {
		if err := d.remove(ctx, d.ready()); err != nil {
			return err
		}
	}
	for {
		all, err := d.members(ctx)
		if err != nil {
			return err
		}
		own := d.own[len(d.path):][1:]
		in := d.ofRound(all)
		switch {
		case len(all) == 0:
			return d.remove(ctx, d.ready())
		case len(in) == 0:
			return nil // the others have entered anew
		case len(in) == 1 && in[0] == own:
			return d.leaveLast(ctx)
		case in[0] == own:
			err = d.awaitGone(ctx, in[len(in)-1])
		default:
			if err = d.remove(ctx, d.own); err == nil {
				err = d.awaitGone(ctx, in[0])
			}
		}
		if err != nil {
			return err
		}
	}
}

// ofRound are those of the members who were in when this one began to leave,
// while it was in itself. Others may have entered anew since, with other names;
// they are not waited for, as they may wait for this one to enter.
func (d *DoubleBarrier) ofRound(all []string) []string {
	if d.round == nil {
		d.round = map[string]bool{}
		for _, name := range all {
			d.round[name] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(n string) bool { return !d.round[n] })
}

// leaveLast takes ready along, so that who enters anew at once finds none.
func (d *DoubleBarrier) leaveLast(ctx context.Context) error {
	return persist(ctx, func() error {
		_, err := d.b.c.Multi(ctx, zk.DeleteOp(d.ready(), zk.AnyVersion), zk.DeleteOp(d.own, zk.AnyVersion))
		if errors.Is(err, zk.ErrNoNode) { // one of them is gone
			return errors.Join(d.remove(ctx, d.own), d.remove(ctx, d.ready()))
		}
		return err
	})
}

func (d *DoubleBarrier) remove(ctx context.Context, path string) error {
	return persist(ctx, func() error { return absent(d.b.c.Delete(ctx, path, zk.AnyVersion)) })
}

// awaitGone waits for any event of a member that is in.
func (d *DoubleBarrier) awaitGone(ctx context.Context, name string) error {
	_, _, w, err := d.b.c.GetW(ctx, claim.Join(d.path, name))
	if err != nil {
		return absent(err)
	}
	if _, err = w.Wait(ctx); err != nil {
		unwatch(ctx, w)
	}
	return err
}
