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
	pauses map[string]*claim.Backoff     // of parts for which a bid stands or another one follows; each is its bid's
	events chan claim.Event              // unbuffered

	threads sync.WaitGroup
}

func newSharing(c *zk.Client, cfg claim.SharingConfig, o ElectionOptions, own func(context.Context, string, *Handle) error) *sharing {
	return &sharing{c: c, cfg: cfg, opt: o, own: own, m: claim.NewSharing(cfg), ends: map[string]context.CancelFunc{}, pauses: map[string]*claim.Backoff{}, events: make(chan claim.Event)}
}

// run ends when the state machine is over: nobody is left then who would tell it
// something.
func (s *sharing) run(ctx context.Context) error {
	if err := s.vet(ctx); err != nil {
		return err
	}
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

// vet looks whether the parent is another recipe's. A list that is refused tells nothing.
func (s *sharing) vet(ctx context.Context) error {
	names, _, err := s.c.Children(ctx, s.cfg.Parent)
	if ctx.Err() != nil || err != nil {
		return context.Cause(ctx)
	}
	return s.cfg.Strangers(names)
}

// step hands an event to the state machine and does what comes of it.
func (s *sharing) step(ctx context.Context, ev claim.Event) {
	if over, ok := ev.(claim.BidOver); ok {
		delete(s.ends, s.cfg.PartAt(over.Part))
		if !over.Again() {
			delete(s.pauses, over.Part)
		}
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
		pause := s.pauseOf(d.Part)
		s.begin(ctx, d, func(ctx context.Context) claim.Event {
			end := s.bid(ctx, d, pause)
			return claim.BidOver{Part: d.Part, Told: ctx.Err() != nil, TermEnd: end}
		})
	case claim.DoTidy:
		s.threads.Go(func() {
			bye, stop := whileAnswered(ctx, s.c, unwatchTime)
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

// pauseOf is the pause between the bids for a part.
func (s *sharing) pauseOf(part string) *claim.Backoff {
	if s.pauses[part] == nil {
		s.pauses[part] = &claim.Backoff{}
	}
	return s.pauses[part]
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
	g, err := NewGroup(s.c, s.cfg.MembersAt(), &GroupOptions{ACL: s.opt.ACL, Wait: true, Logger: s.opt.Logger, Observer: s.opt.Observer})
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
	bye, stop := whileAnswered(ctx, s.c, cleanUpDefault)
	defer stop()
	err := s.me.Close(bye)
	if code := wire.OK; !errors.As(err, &code) {
		err = nil
	}
	return claim.RegistrationOver{Err: err}
}

// follow tells what a cache does, until it is to end.
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

// bid makes a bid for a part, and owns it in its term. A pause follows if another bid does.
func (s *sharing) bid(ctx context.Context, d claim.Duty, pause *claim.Backoff) claim.TermEnd {
	e, err := NewElection(s.c, d.Path, s.cfg.ID, &s.opt)
	if err != nil {
		return claim.TermEnd{Err: err}
	}
	k, inner, err := e.begin(ctx)
	if err != nil {
		return claim.TermEnd{Err: err}
	}
	h, end := e.bid(inner, e.start(k))
	if h != nil {
		end = e.supervise(inner, h, func(ctx context.Context, h *Handle) error { return s.own(ctx, d.Part, h) })
	}
	if end.Err = k.end(inner, end.Err); end.Again() {
		select { // one bid at a time
		case <-k.bid().done:
		case <-ctx.Done():
		}
		_ = e.rest(ctx, pause)
	}
	return end
}
