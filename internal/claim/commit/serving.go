package commit

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// ServingConfig is what a Serving is about.
type ServingConfig struct {
	Root string // of the transactions, which is made where it is missing
	Most int    // of them at a time
}

// SiteOver: a part in the transaction at Path, which OpJoin began, is
// over; Err says why, where that was not by plan.
type SiteOver struct {
	Path string
	Err  error
}

func (SiteOver) Event() {}

// Passed: what stands at a transaction's place is none.
type Passed struct{ Err *claim.DataError }

func (h Passed) String() string {
	return fmt.Sprintf("no transaction at %s: %v", h.Err.Path, h.Err.Err)
}

// Serving is a site that takes part in all transactions below a root, in each
// once, by a [Site] of its own. It goes on in the next session, and ends when
// one of the parts fails. Those that are left then, its driver ends.
//
//	list and watch the root ▸ join each transaction that is new, while there is room ▸ its event ▸ list …
//	                        ▸ there is none: make it
//	a part is over ▸ join the next
type Serving struct {
	claim.Requester
	cfg    ServingConfig
	watch  uint64          // the request that set the watch on the root; 0: list it
	bare   bool            // the root was made just now
	joined map[string]bool // names of transactions that are known, or were when last listed; true while the part runs
	runs   int             // of the parts
	next   []string        // names of those to be joined yet
	joins  []claim.Op      // of those to be joined now
}

// NewServing makes the state machine, which waits for Attached.
func NewServing(cfg ServingConfig) *Serving {
	s := &Serving{cfg: cfg, joined: map[string]bool{}}
	s.Forget = func() { s.watch = 0 }
	return s
}

// Step takes one event, which happened at now. Who gives up by Resign leaves
// the watch to its driver.
func (s *Serving) Step(now claim.Moment, ev claim.Event) {
	switch ev := ev.(type) {
	case claim.Fired:
		if ev.N == s.watch {
			s.watch = 0
		}
	case SiteOver:
		s.siteOver(ev)
	}
	s.Advance(now, ev, s.plan)
	switch {
	case s.Over():
	case s.Leaving:
		s.End(claim.Withdrawn, nil)
	default:
		s.settle()
	}
}

// Ready hands out what has come of the steps since the last call.
func (s *Serving) Ready() claim.Ready {
	r := s.Collect()
	r.Start, s.joins = s.joins, nil
	return r
}

func (s *Serving) plan() {
	if s.watch == 0 && !s.Leaving {
		s.Ask(s.took, claim.Op{Kind: claim.OpSync, Path: s.cfg.Root}, claim.Op{Kind: claim.OpWatchAll, Path: s.cfg.Root})
	}
}

// took: what is not there any more never comes again, and is forgotten.
func (s *Serving) took(res []claim.Result) {
	switch sync, list := res[0].Err, res[1]; {
	case sync != nil:
		s.End(claim.Failed, sync)
	case errors.Is(list.Err, wire.ErrNoNode) && !s.bare:
		s.Ask(s.made, claim.Op{Kind: claim.OpParents, Path: s.cfg.Root})
	case list.Err != nil:
		s.End(claim.Failed, list.Err)
	default:
		if err := claim.OtherRecipe(s.cfg.Root, claim.KindTransaction, list.Names); err != nil && len(s.joined) == 0 {
			s.End(claim.Failed, err)
			return
		}
		s.watch, s.bare, s.next = s.N, false, nil
		there := map[string]bool{}
		for _, name := range list.Names {
			there[name] = true
			if _, known := s.joined[name]; !known && strings.HasPrefix(name, claim.TxPrefix) {
				s.next = append(s.next, name)
			}
		}
		slices.Sort(s.next)
		for name, runs := range s.joined {
			if !runs && !there[name] {
				delete(s.joined, name)
			}
		}
	}
}

// made: the root is there now, or cannot be.
func (s *Serving) made(res []claim.Result) {
	if s.bare = true; res[0].Err != nil {
		s.End(claim.Failed, res[0].Err)
	}
}

// settle joins what there is room for.
func (s *Serving) settle() {
	n := min(len(s.next), s.cfg.Most-s.runs)
	for _, name := range s.next[:n] {
		s.joined[name] = true
		s.joins = append(s.joins, claim.Op{Kind: claim.OpJoin, Path: claim.Join(s.cfg.Root, name)})
	}
	s.runs, s.next = s.runs+n, s.next[n:]
}

// siteOver: what is no transaction is passed over.
func (s *Serving) siteOver(ev SiteOver) {
	s.joined[ev.Path[strings.LastIndexByte(ev.Path, '/')+1:]] = false
	s.runs--
	var foreign *claim.DataError
	switch {
	case errors.As(ev.Err, &foreign):
		s.Tell(Passed{foreign})
	case ev.Err != nil && !s.Over():
		s.End(claim.Failed, ev.Err)
	}
}
