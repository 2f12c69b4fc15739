package commit

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// ServingConfig describes a Serving.
type ServingConfig struct {
	Root string // parent of the transactions; created if it is missing
	Most int    // how many transactions the site takes part in at a time
}

// SiteOver reports that this site's part in the transaction at Path, which OpJoin began, has ended. Err is set if
// it failed.
type SiteOver struct {
	Path string
	Err  error
}

func (SiteOver) Event() {}

// NotTransaction reports that a znode with the name of a transaction does not contain one.
type NotTransaction struct{ Err *claim.DataError }

func (h NotTransaction) String() string {
	return fmt.Sprintf("no transaction at %s: %v", h.Err.Path, h.Err.Err)
}

// Serving is a site that takes part once in every transaction below a root, each time with a new [Site].
// It continues in later sessions. It ends when one of its parts fails; the driver must then end the parts
// that still run.
//
//	list and watch the root ▸ join new transactions, up to Most at a time ▸ watch event ▸ list …
//	                        ▸ root missing: create it
//	a part is over ▸ join the next
//
// 0 <= runs <= cfg.Most, and runs is the number of true values in joined.
type Serving struct {
	claim.Requester
	cfg      ServingConfig
	watch    uint64          // number of the request that set the watch on the root; 0: list again
	rootMade bool            // the root was created just now
	joined   map[string]bool // names of transactions that are known or in the last list; true while this site takes part in the transaction
	runs     int             // number of transactions in which this site takes part now
	next     []string        // names of the transactions to join later
	joins    []claim.Op      // OpJoin operations for the next Ready
}

// NewServing returns the state machine. It does nothing until Attached is stepped.
func NewServing(cfg ServingConfig) *Serving {
	s := &Serving{cfg: cfg, joined: map[string]bool{}}
	s.Forget = func() { s.watch = 0 }
	return s
}

// Step processes one event, which happened at now. After Resign, the driver must remove the watch on the
// root.
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

// Ready returns what the steps since the last call have produced.
func (s *Serving) Ready() claim.Ready {
	r := s.Requester.Ready()
	r.Start, s.joins = s.joins, nil
	return r
}

func (s *Serving) plan() {
	if s.watch == 0 && !s.Leaving {
		s.Ask(s.took, claim.Sync(s.cfg.Root), claim.Op{Kind: claim.OpWatchAll, Path: s.cfg.Root})
	}
}

// took processes the list of transactions. It forgets those that are gone, because their names are never
// used again.
func (s *Serving) took(res []claim.Result) {
	switch sync, list := res[0].Err, res[1]; {
	case sync != nil:
		s.End(claim.Failed, sync)
	case errors.Is(list.Err, wire.ErrNoNode) && !s.rootMade:
		s.Ask(s.made, claim.MakeParents(s.cfg.Root))
	case list.Err != nil:
		s.End(claim.Failed, list.Err)
	default:
		if err := claim.OtherRecipe(s.cfg.Root, claim.KindTransaction, list.Names); err != nil && len(s.joined) == 0 {
			s.End(claim.Failed, err)
			return
		}
		s.watch, s.rootMade, s.next = s.N, false, nil
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

// made processes the creation of the root.
func (s *Serving) made(res []claim.Result) {
	if s.rootMade = true; res[0].Err != nil {
		s.End(claim.Failed, res[0].Err)
	}
}

// settle joins further transactions, up to the limit.
func (s *Serving) settle() {
	n := min(len(s.next), s.cfg.Most-s.runs)
	for _, name := range s.next[:n] {
		s.joined[name] = true
		s.joins = append(s.joins, claim.Op{Kind: claim.OpJoin, Path: claim.Join(s.cfg.Root, name)})
	}
	s.runs, s.next = s.runs+n, s.next[n:]
}

// siteOver processes the end of a part. A znode that is not a transaction is reported and skipped.
func (s *Serving) siteOver(ev SiteOver) {
	s.joined[ev.Path[strings.LastIndexByte(ev.Path, '/')+1:]] = false
	s.runs--
	var foreign *claim.DataError
	switch {
	case errors.As(ev.Err, &foreign):
		s.Report(NotTransaction{foreign})
	case ev.Err != nil && !s.Over():
		s.End(claim.Failed, ev.Err)
	}
}
