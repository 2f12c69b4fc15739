package share

import (
	"errors"
	"maps"
	"slices"

	"bellwether/internal/claim"
	"bellwether/internal/claim/cache"
)

// SharingConfig describes a Sharing.
type SharingConfig struct {
	Parent string   // parent of the members, the parts and the tasks
	ID     string   // id of this member
	Parts  []string // the parts to share
	Tasks  bool     // share tasks instead of parts; tasks may be added and removed
	Most   int      // how many parts this member may own at a time; 0: no limit
}

// MembersAt returns the parent of the members' registrations.
func (c SharingConfig) MembersAt() string { return claim.Join(c.Parent, "members") }

// TasksAt returns the parent of the tasks.
func (c SharingConfig) TasksAt() string { return claim.Join(c.Parent, "tasks") }

// PartAt returns the path of the election for a part or a task.
func (c SharingConfig) PartAt(part string) string {
	return claim.Join(claim.Join(c.Parent, "parts"), part)
}

// Submission returns the operations that add a task. They must be carried out one after the other. The
// creation fails if the task exists.
func (c SharingConfig) Submission(id string, data []byte) []claim.Op {
	return []claim.Op{
		claim.MakeParents(c.TasksAt()),
		{Kind: claim.OpCreate, Path: claim.Join(c.TasksAt(), id), Data: data, Persistent: true},
	}
}

// Sharing is one member that shares parts or tasks with others, from its registration to its end. It knows
// only which other members exist. A part has at most one owner because each part has its own
// [lines.Election], in which the member bids that the part is assigned to.
//
//	register ▸ registered: follow members and tasks ▸ all known: bid for each part that is assigned to this member
//	a bid is over ▸ the part was lost: bid again
//	              ▸ the owner returned, or had to let go: tidy up; bid when the part is assigned to this member again
//	leave, or a failure ▸ let go of all parts, follow nothing ▸ all ended: deregister ▸ over
//
// It makes no requests. Everything that it needs is an operation of [claim.Ready].Start, and the driver
// steps the end of each operation as an event.
//
// assignments has an entry for each part that is assigned to this member, or whose bid has not ended
// completely.
type Sharing struct {
	cfg         SharingConfig
	members     nameList
	parts       nameList
	assignments map[string]*assignment
	starts      []claim.Op

	leaving       bool
	deregistering bool // the registration is being ended
	deregistered  bool // the registration has ended
	err           error
}

// assignment is the state of one part in a Sharing.
type assignment struct {
	assigned bool // the part is assigned to this member
	returned bool // the owner returned by itself: do not bid until the part has been assigned to another member in between
	stage    assignmentStage
}

type assignmentStage uint8

const (
	idle      assignmentStage = iota
	bidding                   // a bid exists or is being made
	resigning                 // the owner was told to let go of the part
	tidying                   // the bid is gone, and the election is being deleted
)

// NewSharing returns the state machine of a member. It begins with the registration.
func NewSharing(cfg SharingConfig) *Sharing {
	s := &Sharing{cfg: cfg, assignments: map[string]*assignment{}}
	s.members = nameList{root: cfg.MembersAt(), ephemeral: true}
	if s.parts = (nameList{names: unique(cfg.Parts), known: true}); cfg.Tasks {
		s.parts = nameList{root: cfg.TasksAt()}
	}
	s.start(claim.OpRegister, claim.Join(cfg.MembersAt(), cfg.ID))
	return s
}

// Over reports whether the member has ended.
func (s *Sharing) Over() bool { return s.deregistered && s.free() }

// Err returns why the member has ended.
func (s *Sharing) Err() error { return s.err }

// Ready returns the operations to begin since the last call.
func (s *Sharing) Ready() claim.Ready {
	r := claim.Ready{Start: s.starts}
	s.starts = nil
	return r
}

func (s *Sharing) start(kind claim.OpKind, path string) {
	s.starts = append(s.starts, claim.Op{Kind: kind, Path: path})
}

// Step processes one event.
func (s *Sharing) Step(_ claim.Moment, ev claim.Event) {
	switch ev := ev.(type) {
	case Registered:
		s.follow()
	case Seen:
		s.changed(s.list(ev.Path), ev.Events)
	case BidOver:
		s.bidOver(ev)
	case Tidied:
		s.assignments[ev.Part].stage = idle
		s.next(ev.Part)
	case CacheOver:
		s.list(ev.Path).followed = false
		s.leave(ev.Err)
	case RegistrationOver:
		s.registrationOver(ev.Err)
	case claim.Resign:
		s.leave(ev.Err)
	}
	if s.leaving && s.free() && !s.deregistering && !s.deregistered {
		s.deregistering = true
		s.start(claim.OpDeregister, claim.Join(s.cfg.MembersAt(), s.cfg.ID))
	}
}

// list returns the list that the Cache with this root fills.
func (s *Sharing) list(root string) *nameList {
	if root == s.members.root {
		return &s.members
	}
	return &s.parts
}

// changed processes the changes of a Cache. It lets go of a part that was removed, even if a part of the same
// name exists again, because that is another part.
func (s *Sharing) changed(r *nameList, events []cache.Event) {
	gone, news := r.apply(events)
	for _, name := range gone {
		if r == &s.parts && s.assignments[name] != nil {
			s.resign(name)
		}
	}
	if news {
		s.settle()
	}
}

// free reports whether no bid exists and nothing is followed.
func (s *Sharing) free() bool {
	return len(s.assignments) == 0 && !s.members.followed && !s.parts.followed
}

// follow begins to follow the members and the tasks, once this member is registered.
func (s *Sharing) follow() {
	for _, r := range []*nameList{&s.members, &s.parts} {
		if r.root != "" && !r.followed && !s.leaving {
			r.followed = true
			s.start(claim.OpFollow, r.root)
		}
	}
}

// settle lets go of parts that are no longer assigned to this member, and bids for those that are.
func (s *Sharing) settle() {
	if s.leaving || !s.members.known || !s.parts.known {
		return
	}
	mine := s.mine(Share(s.members.names, s.parts.names))
	for _, part := range slices.Sorted(maps.Keys(s.assignments)) {
		if !slices.Contains(mine, part) {
			s.resign(part)
		}
	}
	for _, part := range mine {
		k := s.assignments[part]
		if k == nil {
			k = &assignment{}
			s.assignments[part] = k
		}
		if !k.assigned {
			k.assigned, k.returned = true, false
			s.next(part)
		}
	}
}

// mine returns the parts assigned to this member, at most cfg.Most. Parts that it had before come first.
func (s *Sharing) mine(shares map[string]string) []string {
	var old, fresh []string
	for _, part := range slices.Sorted(maps.Keys(shares)) {
		switch k := s.assignments[part]; {
		case shares[part] != s.cfg.ID:
		case k != nil && k.assigned:
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

func (s *Sharing) resign(part string) {
	k := s.assignments[part]
	k.assigned = false
	if k.stage == bidding {
		k.stage = resigning
		s.start(claim.OpResign, s.cfg.PartAt(part))
	}
	s.next(part)
}

// next continues with a part whose last bid has ended completely.
func (s *Sharing) next(part string) {
	switch k := s.assignments[part]; {
	case k.stage != idle:
	case !k.assigned:
		delete(s.assignments, part)
	case !k.returned:
		k.stage = bidding
		s.start(claim.OpBid, s.cfg.PartAt(part))
	}
}

// bidOver processes the end of a bid. If the owner was told to let go, its error does not end the member.
func (s *Sharing) bidOver(ev BidOver) {
	k := s.assignments[ev.Part]
	again := k.stage == bidding && ev.Again()
	k.returned = k.stage == bidding && !again
	if k.stage = idle; s.cfg.Tasks && !again {
		k.stage = tidying
		s.start(claim.OpTidy, s.cfg.PartAt(ev.Part))
	}
	if ev.Err != nil && !ev.Resigned {
		s.leave(ev.Err)
	}
	if s.assignments[ev.Part] != nil { // leave may have removed it
		s.next(ev.Part)
	}
}

// leave ends the member. The first error is kept.
func (s *Sharing) leave(err error) {
	if s.leaving {
		return
	}
	s.leaving, s.err = true, err
	for _, r := range []*nameList{&s.members, &s.parts} {
		if r.followed {
			s.start(claim.OpUnfollow, r.root)
		}
	}
	for _, part := range slices.Sorted(maps.Keys(s.assignments)) {
		s.resign(part)
	}
}

// registrationOver processes the end of the registration, which was requested or is a failure.
func (s *Sharing) registrationOver(err error) {
	if s.deregistered = true; s.leaving && err != nil {
		s.err = errors.Join(s.err, err)
	}
	s.leave(err)
}

// OtherRecipe returns a [claim.OtherRecipeError] if the parent of a [Sharing] has the children of another
// recipe.
func (c SharingConfig) OtherRecipe(names []string) error {
	want := claim.KindPartitioner
	if c.Tasks {
		want = claim.KindWork
		if slices.Contains(names, "parts") && !slices.Contains(names, "tasks") {
			return &claim.OtherRecipeError{Path: c.Parent, Want: string(want), Found: string(claim.KindPartitioner)}
		}
	}
	return claim.OtherRecipe(c.Parent, want, names)
}
