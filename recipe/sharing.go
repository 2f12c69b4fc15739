package recipe

import (
	"context"
	"errors"
	"sync"

	"bellwether/internal/claim"
	"bellwether/wire"
	"bellwether/zk"
)

// sharing is one Run of a Partitioner or of Work: it carries out what a
// claim.Sharing wants. The goroutine of run steps that; the others tell it what
// has come of theirs.
type sharing struct {
	c   *zk.Client
	cfg claim.SharingConfig
	opt ElectionOptions
	own func(ctx context.Context, part string, h *Handle) error

	m      *claim.Sharing
	me     *Registration
	ends   map[string]context.CancelFunc // of bids and caches, by their paths
	events chan claim.Event              // unbuffered

	threads sync.WaitGroup
}

func newSharing(c *zk.Client, cfg claim.SharingConfig, o ElectionOptions, own func(context.Context, string, *Handle) error) *sharing {
	return &sharing{c: c, cfg: cfg, opt: o, own: own, m: claim.NewSharing(cfg), ends: map[string]context.CancelFunc{}, events: make(chan claim.Event)}
}

// run ends when the state machine is over: nobody is left then who would tell it
// something.
func (s *sharing) run(ctx context.Context) error {
	defer s.threads.Wait()
	s.duties(ctx)
	left := ctx.Done()
	for !s.m.Over() {
		select {
		case ev := <-s.events:
			if ctx.Err() != nil { // which may be all that has brought it about
				s.step(ctx, claim.Leave{Err: context.Cause(ctx)})
			}
			s.step(ctx, ev)
		case <-left:
			left = nil
			s.step(ctx, claim.Leave{Err: context.Cause(ctx)})
		}
	}
	return s.m.Err()
}

// step hands an event to the state machine and does what comes of it.
func (s *sharing) step(ctx context.Context, ev claim.Event) {
	if over, ok := ev.(claim.BidOver); ok {
		delete(s.ends, s.cfg.PartAt(over.Part))
	}
	s.m.Step(ev)
	s.duties(ctx)
}

func (s *sharing) duties(ctx context.Context) {
	for _, d := range s.m.Duties() {
		s.carryOut(ctx, d)
	}
}

func (s *sharing) carryOut(ctx context.Context, d claim.Duty) {
	switch d.Do {
	case claim.DoRegister:
		s.step(ctx, s.register(ctx))
	case claim.DoFollow:
		s.begin(ctx, d, func(ctx context.Context) claim.Event {
			return claim.CacheOver{Path: d.Path, Err: s.follow(ctx, d.Path)}
		})
	case claim.DoBid:
		s.begin(ctx, d, func(ctx context.Context) claim.Event {
			end := s.bid(ctx, d)
			return claim.BidOver{Part: d.Part, Told: ctx.Err() != nil, TermEnd: end}
		})
	case claim.DoTidy:
		s.threads.Go(func() {
			bye, stop := context.WithTimeout(context.WithoutCancel(ctx), unwatchTime)
			defer stop()
			_ = s.c.Delete(bye, d.Path, zk.AnyVersion) // who comes makes it again
			s.events <- claim.Tidied{Part: d.Part}
		})
	case claim.DoLetGo, claim.DoUnfollow:
		s.ends[d.Path]()
	case claim.DoDeregister:
		s.step(ctx, s.deregister(ctx))
	}
}

// begin does something until it is to end, and tells what has come of it.
func (s *sharing) begin(ctx context.Context, d claim.Duty, do func(context.Context) claim.Event) {
	ctx, cancel := context.WithCancel(ctx)
	s.ends[d.Path] = cancel
	s.threads.Go(func() {
		defer cancel()
		s.events <- do(ctx)
	})
}

// register waits until the member is there, or cannot be.
func (s *sharing) register(ctx context.Context) claim.Event {
	g, err := NewGroup(s.c, s.cfg.MembersAt(), &GroupOptions{ACL: s.opt.ACL, Wait: true})
	if err == nil {
		s.me, err = g.Join(ctx, s.cfg.ID, nil)
	}
	if err != nil {
		return claim.RegistrationOver{Err: err}
	}
	return claim.Registered{}
}

// deregister is cut short after a while, and then goes on in the background.
// What is told of its end is the word of a server alone.
func (s *sharing) deregister(ctx context.Context) claim.Event {
	bye, stop := context.WithTimeout(context.WithoutCancel(ctx), cleanUpDefault)
	defer stop()
	err := s.me.Close(bye)
	if code := wire.OK; !errors.As(err, &code) {
		err = nil
	}
	return claim.RegistrationOver{Err: err}
}

// follow tells what a cache does, until it is to end.
func (s *sharing) follow(ctx context.Context, root string) error {
	k, err := OpenCache(ctx, s.c, root, &CacheOptions{ChildrenOnly: true})
	if err != nil {
		return err
	}
	defer k.Close()
	for events, err := range k.batches(ctx) {
		if err != nil {
			return err
		}
		seen := claim.Seen{Path: root, Events: make([]claim.CacheEvent, len(events))}
		for i := range events {
			seen.Events[i] = claim.CacheEvent{Type: claim.CacheEventType(events[i].Type), Node: (*claim.Node)(&events[i].Node)}
		}
		select {
		case s.events <- seen:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return ctx.Err()
}

// bid makes a bid for a part, and owns it in its term.
func (s *sharing) bid(ctx context.Context, d claim.Duty) claim.TermEnd {
	e, err := NewElection(s.c, d.Path, s.cfg.ID, &s.opt)
	if err != nil {
		return claim.TermEnd{Err: err}
	}
	h, end := e.bid(ctx, e.start)
	if h == nil {
		return end
	}
	end = e.supervise(ctx, h, func(ctx context.Context, h *Handle) error { return s.own(ctx, d.Part, h) })
	if end.Again() {
		select { // one bid at a time
		case <-h.t.done:
		case <-ctx.Done():
		}
	}
	return end
}
