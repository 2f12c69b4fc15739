package recipe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bellwether/internal/claim"
	"bellwether/wire"
	"bellwether/zk"
)

// PartitionerOptions are the settings of a Partitioner or Work; nil is all defaults.
type PartitionerOptions struct {
	// Election are the settings of the election by which a part is owned.
	Election ElectionOptions
	// Parallel is how many parts a member owns, or tries to, at the same time.
	// Default no limit; for Work 1.
	Parallel int
}

// Partitioner shares a fixed set of parts among the members of a group. Which
// member a part is meant for follows from who is there; whether it owns it is
// decided by an election of that part alone, in which a member stands while the part
// is meant for it. So no part has two owners, whatever they know of each
// other, and a part changes hands when its owner has let go, without a barrier.
type Partitioner struct {
	c      *zk.Client
	parent string
	id     string
	parts  []string
	opt    PartitionerOptions
}

// NewPartitioner prepares a member, by its id, of those who share the parts,
// which are names of znodes and the same for all members. The client stays the caller's.
func NewPartitioner(c *zk.Client, parent, id string, parts []string, o *PartitionerOptions) (*Partitioner, error) {
	p := &Partitioner{c: c, parent: parent, id: id, parts: slices.Clone(parts)}
	if o != nil {
		p.opt = *o
	}
	for _, name := range append(slices.Clone(parts), id) {
		if name == "" || strings.Contains(name, "/") {
			return p, fmt.Errorf("partitioner %s: %q is not a name", parent, name)
		}
	}
	return p, checkPath("partitioner", parent)
}

// Run is a member until the context ends. For each part that it owns it calls
// own, whose context ends when the part is to be let go; it is somebody else's
// no sooner than own has returned or the handle is over, see Election.Lead. An
// error of own ends Run with it. Where own returns nil before that, nobody stands
// for the part until it is meant for another member. A member whose id is taken waits until it is free.
func (p *Partitioner) Run(ctx context.Context, own func(ctx context.Context, part string, h *Handle) error) error {
	s := &sharing{c: p.c, parent: p.parent, id: p.id, opt: p.opt, own: own, part: claim.NewSharing(p.id, p.opt.Parallel), owners: map[string]*owner{}}
	return s.run(ctx, p.follow)
}

// follow sends the parts, which never change.
func (p *Partitioner) follow(ctx context.Context, to chan<- []string) error {
	select {
	case to <- p.parts:
		<-ctx.Done()
	case <-ctx.Done():
	}
	return ctx.Err()
}

// sharing is one Run. Its loop owns the owners.
type sharing struct {
	c      *zk.Client
	parent string
	id     string
	opt    PartitionerOptions
	own    func(ctx context.Context, part string, h *Handle) error
	tidy   bool // the znode of a part's election goes with its last candidate

	part   *claim.Sharing
	owners map[string]*owner // also those that have yet to let go
}

// owner stands in the election of one part.
type owner struct {
	cancel  context.CancelFunc
	stopped bool
	done    chan struct{} // closed when it has let go
}

// run follows the members and, by the function given, the parts.
func (s *sharing) run(ctx context.Context, follow func(context.Context, chan<- []string) error) error {
	g, err := NewGroup(s.c, claim.Join(s.parent, "members"), &GroupOptions{ACL: s.opt.Election.ACL, Wait: true})
	if err != nil {
		return err
	}
	me, err := g.Join(ctx, s.id, nil)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	members, parts := make(chan []string), make(chan []string) // unbuffered: the loop takes the latest
	ended := make(chan struct{}, 2)
	go func() { cancel(s.members(ctx, members)); ended <- struct{}{} }()
	go func() { cancel(follow(ctx, parts)); ended <- struct{}{} }()
	s.loop(ctx, cancel, members, parts)
	<-ended
	<-ended
	for _, o := range s.owners {
		o.cancel()
		<-o.done
	}
	bye, stop := context.WithTimeout(context.WithoutCancel(ctx), cleanUpDefault)
	defer stop()
	err = me.Close(bye) // cut short it goes on in the background
	if code := wire.OK; errors.As(err, &code) {
		return errors.Join(context.Cause(ctx), err)
	}
	return context.Cause(ctx)
}

// members sends who is there, all of them at once at first. It keeps the names
// in order itself: to ask the cache for all of them after each change would
// cost as much as all members together.
func (s *sharing) members(ctx context.Context, to chan<- []string) error {
	dir := claim.Join(s.parent, "members")
	k, err := OpenCache(ctx, s.c, dir, &CacheOptions{ChildrenOnly: true})
	if err != nil {
		return err
	}
	defer k.Close()
	var names []string
	started := false
	for e, err := range k.Events(ctx) {
		if err != nil {
			return err
		}
		first := e.Type == CacheCurrent && !started
		if !first && !change(&names, dir, e) || !(started || first) {
			continue
		}
		started = true
		select {
		case to <- slices.Clone(names):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return ctx.Err()
}

// change takes an event of a cache to the names of those who are there. It reports
// whether they are others now.
func change(names *[]string, dir string, e CacheEvent) bool {
	if e.Type != NodeAdded && e.Type != NodeRemoved || e.Node.Path == dir || e.Node.Stat.EphemeralOwner == 0 {
		return false
	}
	name := e.Node.Path[len(dir)+1:]
	i, there := slices.BinarySearch(*names, name)
	switch {
	case e.Type == NodeAdded && !there:
		*names = slices.Insert(*names, i, name)
	case e.Type == NodeRemoved && there:
		*names = slices.Delete(*names, i, i+1)
	}
	return there == (e.Type == NodeRemoved)
}

func (s *sharing) loop(ctx context.Context, fail context.CancelCauseFunc, members, parts <-chan []string) {
	var who, what []string
	for {
		select {
		case who = <-members:
		case what = <-parts:
		case <-ctx.Done():
			return
		}
		s.settle(ctx, fail, who, what)
	}
}

// settle lets go of what is not meant for this member any more, and stands for what is.
func (s *sharing) settle(ctx context.Context, fail context.CancelCauseFunc, members, parts []string) {
	letGo, stand := s.part.Settle(members, parts)
	for _, part := range letGo {
		s.owners[part].cancel()
		s.owners[part].stopped = true
	}
	maps.DeleteFunc(s.owners, func(_ string, o *owner) bool { return o.stopped && o.over() })
	for _, part := range stand {
		s.owners[part] = s.stand(ctx, fail, part, s.owners[part])
	}
}

// over reports whether it has let go.
func (o *owner) over() bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}

// stand campaigns for a part, once the last owner here has let go.
func (s *sharing) stand(ctx context.Context, fail context.CancelCauseFunc, part string, last *owner) *owner {
	o := &owner{done: make(chan struct{})}
	ctx, o.cancel = context.WithCancel(ctx)
	go func() {
		defer close(o.done)
		defer o.cancel()
		if last != nil {
			<-last.done
		}
		if err := s.lead(ctx, part); err != nil && ctx.Err() == nil {
			fail(err)
		}
	}()
	return o
}

// lead owns a part again and again while the context lasts, or once where own
// returns by itself.
func (s *sharing) lead(ctx context.Context, part string) error {
	at := claim.Join(claim.Join(s.parent, "parts"), part)
	e, err := NewElection(s.c, at, s.id, &s.opt.Election)
	if err != nil {
		return err
	}
	err = e.Lead(ctx, func(ctx context.Context, h *Handle) error { return s.own(ctx, part, h) })
	if s.tidy {
		bye, stop := context.WithTimeout(context.WithoutCancel(ctx), unwatchTime)
		defer stop()
		_ = s.c.Delete(bye, at, zk.AnyVersion) // not while others stand there; who comes makes it again
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return nil
	}
	return err
}
