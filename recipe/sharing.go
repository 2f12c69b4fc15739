package recipe

import (
	"context"
	"errors"

	"bellwether/internal/claim"
	"bellwether/internal/claim/cache"
	"bellwether/internal/claim/share"
	"bellwether/wire"
	"bellwether/zk"
)

// sharing is one Run of a Partitioner or of Work. It carries out the operations of a
// share.Sharing.
type sharing struct {
	*driver
	c   *zk.Client
	cfg share.SharingConfig
	opt ElectionOptions
	own func(ctx context.Context, part string, h *Handle) error

	me *Registration

	// Only the loop uses these fields.
	ends   map[string]context.CancelFunc // cancel bids and caches, by their paths
	pauses map[string]*claim.Backoff     // the pauses of parts that have a bid or will have another one
}

func newSharing(c *zk.Client, cfg share.SharingConfig, o ElectionOptions, own func(context.Context, string, *Handle) error) *sharing {
	return &sharing{c: c, cfg: cfg, opt: o, own: own, ends: map[string]context.CancelFunc{}, pauses: map[string]*claim.Backoff{}}
}

// run drives the machine until it is over. All operations have ended when run returns.
func (s *sharing) run(ctx context.Context) error {
	if err := s.vet(ctx); err != nil {
		return err
	}
	a := newAgent(s.c, "sharing", s.cfg.Parent, s.opt.ACL, s.opt.Logger, s.opt.Observer)
	m := share.NewSharing(s.cfg)
	s.driver = a.newDriver(m)
	s.resigns, s.afterStepLocked = true, s.forget
	s.start = func(driven context.Context, op claim.Op) { s.begin(ctx, driven, op) }
	_ = s.driver.run(ctx) // run returns when the machine has ended
	return m.Err()
}

// vet returns an error if the parent belongs to another recipe. If the server refuses to list the children, vet returns nil.
func (s *sharing) vet(ctx context.Context) error {
	names, _, err := s.c.Children(ctx, s.cfg.Parent)
	if ctx.Err() != nil || err != nil {
		return context.Cause(ctx)
	}
	return s.cfg.OtherRecipe(names)
}

// forget deletes the state of a bid that is over.
func (s *sharing) forget(_ claim.Moment, ev claim.Event) {
	if over, ok := ev.(share.BidOver); ok {
		delete(s.ends, s.cfg.PartAt(over.Part))
		if !over.Again() {
			delete(s.pauses, over.Part)
		}
	}
}

// begin begins or ends an operation. An operation that it begins ends with ctx, the context of Run. driven is the driver's context.
func (s *sharing) begin(ctx, driven context.Context, op claim.Op) {
	switch op.Kind {
	case claim.OpRegister:
		s.step(driven, s.register(ctx))
	case claim.OpFollow:
		s.keep(ctx, driven, op, func(ctx context.Context) claim.Event {
			return share.CacheOver{Path: op.Path, Err: s.follow(ctx, op.Path)}
		})
	case claim.OpBid:
		pause := s.pauseOf(op.Part())
		s.keep(ctx, driven, op, func(ctx context.Context) claim.Event {
			end := s.bid(ctx, op, pause)
			return share.BidOver{Part: op.Part(), Resigned: ctx.Err() != nil, TermEnd: end}
		})
	case claim.OpTidy:
		s.threads.Go(func() {
			bye, stop := whileConnected(ctx, s.c, unwatchTime)
			defer stop()
			_ = s.c.Delete(bye, op.Path, zk.AnyVersion) // the next candidate creates it again
			s.tell(driven, share.Tidied{Part: op.Part()})
		})
	case claim.OpResign, claim.OpUnfollow:
		s.ends[op.Path]()
	case claim.OpDeregister:
		s.step(driven, s.deregister(ctx))
	}
}

// pauseOf returns the pause between the bids for a part.
func (s *sharing) pauseOf(part string) *claim.Backoff {
	if s.pauses[part] == nil {
		s.pauses[part] = &claim.Backoff{}
	}
	return s.pauses[part]
}

// keep runs do until the machine ends the operation, and gives the resulting event to the loop.
func (s *sharing) keep(ctx, driven context.Context, op claim.Op, do func(context.Context) claim.Event) {
	ctx, cancel := context.WithCancel(ctx)
	s.ends[op.Path] = cancel
	s.threads.Go(func() {
		defer cancel()
		s.tell(driven, do(ctx))
	})
}

// register waits until the member's znode exists, or cannot be created.
func (s *sharing) register(ctx context.Context) claim.Event {
	g, err := NewGroup(s.c, s.cfg.MembersAt(), &GroupOptions{ACL: s.opt.ACL, Wait: true, Logger: s.opt.Logger, Observer: s.opt.Observer})
	if err == nil {
		s.me, err = g.Join(ctx, s.cfg.ID, nil)
	}
	if err != nil {
		return share.RegistrationOver{Err: err}
	}
	return share.Registered{}
}

// deregister removes the member's znode. After cleanUpDefault the removal continues in the background. deregister
// reports only errors that a server returned.
func (s *sharing) deregister(ctx context.Context) claim.Event {
	bye, stop := whileConnected(ctx, s.c, cleanUpDefault)
	defer stop()
	err := s.me.Close(bye)
	if code := wire.OK; !errors.As(err, &code) {
		err = nil
	}
	return share.RegistrationOver{Err: err}
}

// follow gives the events of a cache to the loop until the machine ends it.
func (s *sharing) follow(ctx context.Context, root string) error {
	k, err := OpenCache(ctx, s.c, root, &CacheOptions{ChildrenOnly: true, Logger: s.opt.Logger, Observer: s.opt.Observer})
	if err != nil {
		return err
	}
	defer k.Close()
	for events, err := range k.batches(ctx) {
		if err != nil {
			return err
		}
		seen := share.Seen{Path: root, Events: make([]cache.Event, len(events))}
		for i := range events {
			seen.Events[i] = cache.Event{Type: cache.EventType(events[i].Type), Node: (*cache.Node)(&events[i].Node)}
		}
		select {
		case s.events <- input{event: seen}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return ctx.Err()
}

// bid makes a bid for a part, and owns the part for one term. If another bid follows, bid then waits until this bid
// is gone and for a pause.
func (s *sharing) bid(ctx context.Context, op claim.Op, pause *claim.Backoff) claim.TermEnd {
	e, err := NewElection(s.c, op.Path, s.cfg.ID, &s.opt)
	if err != nil {
		return claim.TermEnd{Err: err}
	}
	k, inner, err := e.begin(ctx)
	if err != nil {
		return claim.TermEnd{Err: err}
	}
	h, end := e.bid(inner, e.start(k))
	if h != nil {
		end = e.supervise(inner, h, func(ctx context.Context, h *Handle) error { return s.own(ctx, op.Part(), h) })
	}
	if end.Err = k.end(inner, end.Err); end.Again() {
		select { // one bid exists at a time
		case <-k.bid().gone:
		case <-ctx.Done():
		}
		_ = e.pause(ctx, pause)
	}
	return end
}
