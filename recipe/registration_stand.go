package recipe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"bellwether/wire"
	"bellwether/zk"
)

// stand makes sure that the znode is there, is this session's, holds the data
// and is watched. It makes the znode first and looks afterwards, which is two
// requests where all is well. A foreign znode is an *OwnedError, and watched too.
func (r *Registration) stand(ctx context.Context) error {
	for {
		data, want, have := r.wanted()
		if r.watch != nil && (have == want || r.stat.EphemeralOwner != r.session) {
			return r.verdict()
		}
		var err error
		switch {
		case have == 0:
			err = r.create(ctx, data, want)
		case have != want:
			err = r.update(ctx, data, want)
		}
		if err == nil && r.watch == nil {
			err = r.look(ctx)
		}
		if err == nil && r.watch != nil && r.stat.EphemeralOwner != r.session && slices.Contains(r.own, r.stat.EphemeralOwner) {
			err = r.replace(ctx, data, want)
		}
		if err != nil && !isLook(err) {
			return err
		}
	}
}

// isLook: the tree is not as it was thought to be, or the outcome is unknown;
// looking tells.
func isLook(err error) bool {
	var lost *zk.LostError
	return errors.As(err, &lost) && !errors.Is(err, context.Canceled) ||
		errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNodeExists)
}

func (r *Registration) verdict() error {
	if r.stat.EphemeralOwner == r.session {
		return nil
	}
	return &OwnedError{Path: r.path, Owner: r.stat.EphemeralOwner}
}

func (r *Registration) wanted() (data []byte, want, have int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.data, r.want, r.have
}

func (r *Registration) holding(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.have = n
}

// unknownData is a have that no want equals: the znode may hold anything.
const unknownData = -1

func (r *Registration) createOptions() []zk.CreateOption {
	opts := []zk.CreateOption{zk.Ephemeral}
	if r.opt.ACL != nil {
		opts = append(opts, r.opt.ACL)
	}
	return opts
}

// create makes the znode. One that is there already is looked at.
func (r *Registration) create(ctx context.Context, data []byte, want int) error {
	_, _, err := r.c.Create(ctx, r.path, data, r.createOptions()...)
	if errors.Is(err, zk.ErrNoNode) {
		if err = makeDirs(ctx, r.c, dirOf(r.path), r.opt.ACL); err == nil {
			_, _, err = r.c.Create(ctx, r.path, data, r.createOptions()...)
		}
	}
	switch {
	case err == nil:
		r.holding(want)
	case errors.Is(err, zk.ErrNoNode): // not even the parent can be made: the chroot is missing
		return fmt.Errorf("%s: %w: %v", r.path, ErrNoParent, err)
	case isLook(err):
		r.holding(unknownData)
		return nil
	}
	return err
}

// update sets the data of the znode as it was last seen.
func (r *Registration) update(ctx context.Context, data []byte, want int) error {
	if r.watch == nil {
		return nil // look first
	}
	stat, err := r.c.Set(ctx, r.path, data, r.stat.Version)
	if err == nil {
		r.stat = stat
		r.holding(want)
	} else if isLook(err) {
		r.watch = nil
	}
	return err
}

// look says who owns the znode, and watches it. No permission is needed for that.
func (r *Registration) look(ctx context.Context) error {
	stat, ok, w, err := r.c.ExistsW(ctx, r.path)
	if err != nil {
		return err
	}
	if !ok {
		_ = w.Remove(ctx) // it is made at once
		r.holding(0)
		return zk.ErrNoNode
	}
	if stat.EphemeralOwner != r.session {
		r.holding(0)
	}
	r.stat, r.watch = stat, w
	return nil
}

// replace takes the znode over from an older session of its own. The tree knows no
// check of an owner: the version stands for it, within the one round trip since
// the owner was seen.
func (r *Registration) replace(ctx context.Context, data []byte, want int) error {
	r.watch = nil // it fires by the deletion, whoever does it
	_, err := r.c.Multi(ctx, zk.DeleteOp(r.path, r.stat.Version), zk.CreateOp(r.path, data, r.createOptions()...))
	if err == nil {
		r.holding(want)
	}
	return err
}

// makeDirs creates what is missing of a path, as persistent znodes.
func makeDirs(ctx context.Context, c *zk.Client, path string, acl zk.ACLs) error {
	return makeDir(ctx, c, path, nil, acl)
}

// makeDir is makeDirs with data for the last of the znodes, should it be missing.
func makeDir(ctx context.Context, c *zk.Client, path string, data []byte, acl zk.ACLs) error {
	if path == "/" {
		return nil
	}
	var opts []zk.CreateOption
	if acl != nil {
		opts = append(opts, acl)
	}
	_, _, err := c.Create(ctx, path, data, opts...)
	if errors.Is(err, zk.ErrNoNode) {
		if err = makeDirs(ctx, c, dirOf(path), acl); err == nil {
			_, _, err = c.Create(ctx, path, data, opts...)
		}
	}
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

// dirOf is the path of the parent.
func dirOf(path string) string { return path[:max(strings.LastIndexByte(path, '/'), 1)] }

// Standing says whether a Registration's znode stands.
type Standing int

// The standings.
const (
	Absent   Standing = iota // it does not, or its session is over
	Stands                   // it stood when last looked at, and its session lives
	Doubtful                 // the connection is lost: it stands as long as the session does
)

func (s Standing) String() string {
	return [...]string{"absent", "stands", "doubtful"}[s]
}

// RegistrationStatus is how a Registration stands from one change to the
// next. Each knows its successor, so whoever holds one misses none.
type RegistrationStatus struct {
	Standing Standing
	Session  wire.SessionID
	Token    wire.Zxid // czxid of the znode: it grows with each one made
	// Err is why it does not stand, an *OwnedError or what the server refuses.
	Err error

	have  int // the data that the znode holds
	final bool
	link  *standingLink
}

// standingLink leads from one status to the next, which is set before changed is closed.
type standingLink struct {
	changed chan struct{}
	next    RegistrationStatus
}

func newStandingLink() *standingLink { return &standingLink{changed: make(chan struct{})} }

// Final reports whether no other status can follow: it was closed, or its client was.
func (s RegistrationStatus) Final() bool { return s.final }

// Changed is closed when another status has followed this one.
func (s RegistrationStatus) Changed() <-chan struct{} { return s.link.changed }

// Next waits for the status that follows this one. Its error is the context's.
func (s RegistrationStatus) Next(ctx context.Context) (RegistrationStatus, error) {
	select {
	case <-s.link.changed:
		return s.link.next, nil
	case <-ctx.Done():
		return s, ctx.Err()
	}
}

// Status is how it stands now.
func (r *Registration) Status() RegistrationStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

// becomes is the next status, unless it would say the same.
func (r *Registration) becomes(s Standing, err error) { r.follow(s, err, false) }

func (r *Registration) follow(s Standing, err error, final bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := RegistrationStatus{Standing: s, Session: r.session, Err: err, have: r.have, final: final}
	if s != Absent {
		next.Token = r.stat.Czxid
	}
	last := r.status.link
	if next.link = last; next == r.status {
		return
	}
	next.link = newStandingLink()
	r.status, last.next = next, next
	close(last.changed)
}
