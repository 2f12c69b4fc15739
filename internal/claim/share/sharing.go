package share

import (
	"errors"
	"maps"
	"slices"

	"bellwether/internal/claim"
	"bellwether/internal/claim/cache"
)

// SharingConfig is what a Sharing is about.
type SharingConfig struct {
	Parent string   // of the members, the parts and the tasks
	ID     string   // of this member
	Parts  []string // that are shared
	Tasks  bool     // tasks are shared instead, which come and go
	Most   int      // of parts at a time; 0: no limit
}

// MembersAt is where members register.
func (c SharingConfig) MembersAt() string { return claim.Join(c.Parent, "members") }

// TasksAt is where tasks stand.
func (c SharingConfig) TasksAt() string { return claim.Join(c.Parent, "tasks") }

// PartAt is where the election of a part, or of a task, is.
func (c SharingConfig) PartAt(part string) string {
	return claim.Join(claim.Join(c.Parent, "parts"), part)
}

// Submission adds a task, one operation after the other: its own znode must not
// be there yet.
func (c SharingConfig) Submission(id string, data []byte) []claim.Op {
	return []claim.Op{
		{Kind: claim.OpParents, Path: c.TasksAt()},
		{Kind: claim.OpCreate, Path: claim.Join(c.TasksAt(), id), Data: data, Persistent: true},
	}
}

// Sharing is one of those who share parts, or do tasks, from its registration to
// its end. It knows of the others no more than that they are there: that no part
// has two owners rests on the part's own [lines.Election], in which each stands for
// whom the part is meant.
//
//	register ▸ stands: follow members and tasks ▸ all are known: bid for each part that is meant for it
//	a bid is over ▸ the part was lost: bid again
//	              ▸ its owner has returned, or had to let go: tidy up, bid when it is meant for it anew
//	leave, or a failure ▸ let all go, follow nothing any more ▸ all is over: deregister ▸ over
//
// It makes no requests: all that it wants done are operations of [claim.Ready].Start, whose ends are stepped
// as events.
type Sharing struct {
	cfg     SharingConfig
	members roll
	parts   roll
	stakes  map[string]*stake
	starts  []claim.Op

	leaving  bool
	departs  bool // the registration is being ended
	departed bool // or is over
	err      error
}

// stake is what a Sharing has to do with one part.
type stake struct {
	meant bool // the part is meant for this member
	spent bool // its owner has returned by itself: no bid before it has been meant for another
	stage stakeStage
}

type stakeStage uint8

const (
	idle    stakeStage = iota
	bidding            // a bid stands, or is about to
	ceding             // and was told to let the part go
	tidying            // it is gone, and what is left of it goes
)

// NewSharing begins as a member that is to register.
func NewSharing(cfg SharingConfig) *Sharing {
	s := &Sharing{cfg: cfg, stakes: map[string]*stake{}}
	s.members = roll{root: cfg.MembersAt(), mortal: true}
	if s.parts = (roll{names: unique(cfg.Parts), known: true}); cfg.Tasks {
		s.parts = roll{root: cfg.TasksAt()}
	}
	s.start(claim.OpRegister, claim.Join(cfg.MembersAt(), cfg.ID))
	return s
}

// Over reports whether nothing is left to do.
func (s *Sharing) Over() bool { return s.departed && s.free() }

// Err is why it has ended.
func (s *Sharing) Err() error { return s.err }

// Ready hands out the operations to begin since the last call.
func (s *Sharing) Ready() claim.Ready {
	r := claim.Ready{Start: s.starts}
	s.starts = nil
	return r
}

func (s *Sharing) start(kind claim.OpKind, path string) {
	s.starts = append(s.starts, claim.Op{Kind: kind, Path: path})
}

// Step takes one event.
func (s *Sharing) Step(_ claim.Moment, ev claim.Event) {
	switch ev := ev.(type) {
	case Registered:
		s.follow()
	case Seen:
		s.hear(s.roll(ev.Path), ev.Events)
	case BidOver:
		s.bidOver(ev)
	case Tidied:
		s.stakes[ev.Part].stage = idle
		s.next(ev.Part)
	case CacheOver:
		s.roll(ev.Path).open = false
		s.leave(ev.Err)
	case RegistrationOver:
		s.registrationOver(ev.Err)
	case claim.Resign:
		s.leave(ev.Err)
	}
	if s.leaving && s.free() && !s.departs && !s.departed {
		s.departs = true
		s.start(claim.OpDeregister, claim.Join(s.cfg.MembersAt(), s.cfg.ID))
	}
}

// roll is the one that a Cache of that root tells of.
func (s *Sharing) roll(root string) *roll {
	if root == s.members.root {
		return &s.members
	}
	return &s.parts
}

// hear: a part that has gone is let go, as one of its name that is back is another one.
func (s *Sharing) hear(r *roll, events []cache.CacheEvent) {
	gone, news := r.hear(events)
	for _, name := range gone {
		if r == &s.parts && s.stakes[name] != nil {
			s.letGo(name)
		}
	}
	if news {
		s.settle()
	}
}

// free: no bid is left, and nothing is followed.
func (s *Sharing) free() bool { return len(s.stakes) == 0 && !s.members.open && !s.parts.open }

// follow looks who and what is there, once it is there itself.
func (s *Sharing) follow() {
	for _, r := range []*roll{&s.members, &s.parts} {
		if r.root != "" && !r.open && !s.leaving {
			r.open = true
			s.start(claim.OpFollow, r.root)
		}
	}
}

// settle lets go of what is not meant for this member any more, and bids for what is.
func (s *Sharing) settle() {
	if s.leaving || !s.members.known || !s.parts.known {
		return
	}
	mine := s.mine(Share(s.members.names, s.parts.names))
	for _, part := range slices.Sorted(maps.Keys(s.stakes)) {
		if !slices.Contains(mine, part) {
			s.letGo(part)
		}
	}
	for _, part := range mine {
		k := s.stakes[part]
		if k == nil {
			k = &stake{}
			s.stakes[part] = k
		}
		if !k.meant {
			k.meant, k.spent = true, false
			s.next(part)
		}
	}
}

// mine are the parts meant for this member, those that were before first, and no
// more than it may have.
func (s *Sharing) mine(shares map[string]string) []string {
	var old, fresh []string
	for _, part := range slices.Sorted(maps.Keys(shares)) {
		switch k := s.stakes[part]; {
		case shares[part] != s.cfg.ID:
		case k != nil && k.meant:
			old = append(old, part)
		default:
			fresh = append(fresh, part)
		}
	}
	all := append(old, fresh...)
	if s.cfg.Most > 0 {
		all = all[:min(len(all), s.cfg.Most)]
	}
	return all
}

func (s *Sharing) letGo(part string) {
	k := s.stakes[part]
	k.meant = false
	if k.stage == bidding {
		k.stage = ceding
		s.start(claim.OpLetGo, s.cfg.PartAt(part))
	}
	s.next(part)
}

// next goes on with a part whose last bid, and what was left of it, is gone.
func (s *Sharing) next(part string) {
	switch k := s.stakes[part]; {
	case k.stage != idle:
	case !k.meant:
		delete(s.stakes, part)
	case !k.spent:
		k.stage = bidding
		s.start(claim.OpBid, s.cfg.PartAt(part))
	}
}

// bidOver: what an owner says that has been told to let go is of no matter.
func (s *Sharing) bidOver(ev BidOver) {
	k := s.stakes[ev.Part]
	again := k.stage == bidding && ev.Again()
	k.spent = k.stage == bidding && !again
	if k.stage = idle; s.cfg.Tasks && !again {
		k.stage = tidying
		s.start(claim.OpTidy, s.cfg.PartAt(ev.Part))
	}
	if ev.Err != nil && !ev.Told {
		s.leave(ev.Err)
	}
	if s.stakes[ev.Part] != nil { // leave has not gone on with it
		s.next(ev.Part)
	}
}

// leave ends everything; the first reason counts.
func (s *Sharing) leave(err error) {
	if s.leaving {
		return
	}
	s.leaving, s.err = true, err
	for _, r := range []*roll{&s.members, &s.parts} {
		if r.open {
			s.start(claim.OpUnfollow, r.root)
		}
	}
	for _, part := range slices.Sorted(maps.Keys(s.stakes)) {
		s.letGo(part)
	}
}

// registrationOver: it was refused, or ended as it was to be.
func (s *Sharing) registrationOver(err error) {
	if s.departed = true; s.leaving && err != nil {
		s.err = errors.Join(s.err, err)
	}
	s.leave(err)
}

// Strangers is an [claim.OtherRecipeError] if the parent of a [Sharing] has the children of another recipe.
func (c SharingConfig) Strangers(names []string) error {
	want := claim.KindPartitioner
	if c.Tasks {
		want = claim.KindWork
		if slices.Contains(names, "parts") && !slices.Contains(names, "tasks") {
			return &claim.OtherRecipeError{Path: c.Parent, Want: string(want), Found: string(claim.KindPartitioner)}
		}
	}
	return claim.OtherRecipe(c.Parent, want, names)
}
