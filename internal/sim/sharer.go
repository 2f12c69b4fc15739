package sim

import (
	"fmt"
	"slices"

	"bellwether/internal/claim"
	"bellwether/internal/claim/cache"
	"bellwether/internal/claim/registry"
	"bellwether/internal/claim/share"
	"bellwether/wire"
)

// The znodes of members, parts and tasks.
const (
	shareParent  = "/share"
	shareMembers = shareParent + "/members"
	shareParts   = shareParent + "/parts"
	shareTasks   = shareParent + "/tasks"
)

// shareCount is the number of parts, and tasksMax is the largest number of tasks that wait.
const (
	shareCount = 7
	tasksMax   = 6
)

// sharer is a member of a group that shares parts or does tasks. It carries out what its
// state machine asks for: a registration as a member, caches of the members and the tasks,
// and bids in the elections of parts.
//
// While busy is true, no other call carries out duties, so duties never overlap.
type sharer struct {
	c       *client
	id      string
	tasks   bool    // it does tasks; otherwise it owns parts
	submits bool    // it also submits tasks
	n       int     // number of tasks submitted so far
	post    *runner // sends its submissions

	lease   claim.Lease
	session wire.SessionID // the session for which the lease is held
	here    *hand          // its registration
	there   *roll          // the members
	todo    *roll          // the tasks
	m       *share.Sharing
	owners  []*owner // owners that have not released their part yet
	busy    bool     // it is carrying out duties: later ones wait
}

// hand drives the registration of a member.
type hand struct {
	runner
	m *registry.Registrant
}

// roll drives a cache of a znode's children.
type roll struct {
	runner
	m    *cache.Cache
	root string
}

func newSharer(c *client, n int) *sharer {
	s := &sharer{c: c, id: fmt.Sprint("m", c.id), tasks: c.sim.opt.Recipe == Work}
	s.submits = s.tasks && n == 0
	s.begin()
	return s
}

// begin starts a new process, or a new Run of the same process.
func (s *sharer) begin() {
	s.here, s.there, s.todo = &hand{}, &roll{root: shareMembers}, &roll{root: shareTasks}
	s.here.runner = runner{c: s.c, step: s.stepHere}
	s.there.runner = runner{c: s.c, step: func(ev claim.Event) { s.stepRoll(s.there, ev) }, together: true}
	s.todo.runner = runner{c: s.c, step: func(ev claim.Event) { s.stepRoll(s.todo, ev) }, together: true}
	s.post = &runner{c: s.c, step: func(claim.Event) {}} // a submission that is lost is not repeated
	s.m, s.session = share.NewSharing(s.cfg()), 0
	here := s.here
	s.here.soon(20*second, func() {
		if s.here == here && !s.c.sim.calm && s.c.random.chance(50) {
			s.c.sim.tell("member %s leaves", s.id)
			s.step(claim.Resign{})
		}
	})
	if s.submits {
		s.submitLater()
	}
	s.carryOut()
}

func (s *sharer) cfg() share.SharingConfig {
	cfg := share.SharingConfig{Parent: shareParent, ID: s.id, Parts: s.c.sim.parts()}
	if s.tasks {
		cfg.Tasks, cfg.Most = true, 1
	}
	return cfg
}

// step passes an event to the state machine and carries out what the machine asks for.
func (s *sharer) step(ev claim.Event) {
	if !s.m.Over() {
		s.m.Step(s.here.now(), ev)
		s.carryOut()
	}
}

// carryOut carries out the duties in order. Duties that arise meanwhile come after them.
func (s *sharer) carryOut() {
	if s.busy {
		return
	}
	s.busy = true
	for ops := s.m.Ready().Start; len(ops) > 0; ops = s.m.Ready().Start {
		for _, op := range ops {
			s.do(op)
		}
	}
	if s.busy = false; s.m.Over() {
		s.left()
	}
}

func (s *sharer) do(op claim.Op) {
	switch op.Kind {
	case claim.OpRegister:
		s.here.m = registry.NewRegistrant(registry.RegistrantConfig{Path: op.Path})
	case claim.OpFollow:
		s.follow(s.roll(op.Path))
	case claim.OpBid:
		o := newOwner(s, op.Part())
		s.owners = append(s.owners, o)
		o.stand()
	case claim.OpLetGo:
		s.owner(op.Part()).letGo()
	case claim.OpTidy:
		s.here.soon(10*millisecond, func() {
			if s.c.attached {
				s.c.send(requestOf(&claim.Op{Kind: claim.OpDelete, Path: op.Path, Version: claim.AnyVersion}))
			}
			s.step(share.Tidied{Part: op.Part()})
		})
	case claim.OpUnfollow:
		s.stepRoll(s.roll(op.Path), claim.Resign{})
	case claim.OpDeregister:
		s.stepHere(claim.Resign{})
	}
}

func (s *sharer) roll(root string) *roll {
	if root == s.there.root {
		return s.there
	}
	return s.todo
}

// owner returns the bidder for a part; nil: there is none.
func (s *sharer) owner(part string) *owner {
	for _, o := range s.owners {
		if o.part == part {
			return o
		}
	}
	return nil
}

// each passes an event to everything that the member drives.
func (s *sharer) each(ev claim.Event) {
	s.stepHere(ev)
	s.stepRoll(s.there, ev)
	s.stepRoll(s.todo, ev)
	for _, o := range slices.Clone(s.owners) {
		o.step(ev)
		o.task.step(ev)
	}
}

func (s *sharer) attached() {
	session := s.c.session
	s.stepHere(claim.Attached{Session: session})
	s.stepRoll(s.there, claim.Attached{Session: session})
	s.stepRoll(s.todo, claim.Attached{Session: session})
	here := s.here
	s.c.prove(&s.lease, func() {
		if s.here != here {
			return
		}
		s.session = session
		for _, o := range slices.Clone(s.owners) {
			o.step(claim.Attached{Session: session, Lease: s.lease})
			o.task.step(claim.Attached{Session: session})
		}
	})
}

func (s *sharer) disconnected() { s.session = 0; s.each(claim.Disconnected{}) }
func (s *sharer) expired()      { s.session = 0; s.each(claim.Expired{}) }

func (s *sharer) proven(at claim.Moment) {
	s.lease.Sent = at
	for _, o := range slices.Clone(s.owners) {
		o.step(claim.Confirmed{Lease: s.lease})
		if o.holds() {
			s.c.sim.see(partProven{o})
		}
	}
}

func (s *sharer) eager() bool {
	return slices.ContainsFunc(s.owners, func(o *owner) bool { return o.often })
}

func (s *sharer) crashed() {
	s.dropAll()
	s.begin()
}

func (s *sharer) dropAll() {
	s.here.drop()
	s.there.drop()
	s.todo.drop()
	s.post.drop()
	for _, o := range s.owners {
		o.drop()
		o.task.drop()
		o.line, o.task.m = nil, nil
	}
	s.owners = nil
}

// stepHere drives the registration.
func (s *sharer) stepHere(ev claim.Event) {
	h := s.here
	if h.m == nil {
		return
	}
	h.m.Step(h.now(), ev)
	rd, st := h.m.Ready(), h.m.State()
	h.ask(rd.Request)
	switch {
	case s.here != h || h.m == nil:
	case h.m.Over():
		err := h.m.Err()
		h.m = nil
		s.step(share.RegistrationOver{Err: err})
	default:
		h.wake(rd.Wake)
		if st.Stands {
			s.step(share.Registered{})
		}
	}
}

func (s *sharer) follow(r *roll) {
	r.oneShot = s.c.random.chance(25)
	r.m = cache.NewCache(cache.CacheConfig{Root: r.root, ChildrenOnly: true, NodesMax: 1000, BytesMax: 1 << 20})
	if s.c.attached {
		s.stepRoll(r, claim.Attached{Session: s.c.session})
	}
}

// stepRoll drives a cache.
func (s *sharer) stepRoll(r *roll, ev claim.Event) {
	m := r.m
	if m == nil {
		return
	}
	m.Step(r.now(), ev)
	rd := m.Ready()
	if events := m.Events(); len(events) > 0 {
		s.step(share.Seen{Path: r.root, Events: events})
	}
	r.ask(rd.Request)
	switch {
	case r.m != m:
	case m.Over():
		r.drop()
		r.m = nil
		s.c.dropStream(s.c.streamAt(r.root)) // a lost connection has already ended the stream
		s.step(share.CacheOver{Path: r.root, Err: m.Err()})
	default:
		r.wake(rd.Wake)
	}
}

// parts returns the names of the parts.
func (s *Sim) parts() (all []string) {
	for i := range shareCount {
		all = append(all, fmt.Sprint("p", i))
	}
	return all
}

// left handles the end of the membership. The member comes back later.
func (s *sharer) left() {
	if err := s.m.Err(); err != nil {
		s.c.sim.fail("Shares", "member %s ends: %v", s.id, err)
		return
	}
	s.c.sim.tell("member %s has left", s.id)
	here := s.here
	s.here.soon(second, func() {
		if s.here != here {
			return
		}
		s.dropAll()
		s.begin()
		if s.c.attached {
			s.attached()
		}
	})
}

// submitLater submits tasks, each once.
func (s *sharer) submitLater() {
	s.here.soon(200*millisecond, func() {
		if s.c.attached && !s.c.sim.quiet && len(s.c.sim.names(shareTasks)) < tasksMax {
			s.n++
			id := fmt.Sprintf("t%d-%d", s.c.id, s.n)
			s.post.ask(&claim.Request{Session: s.c.session, Ops: s.cfg().Submission(id, []byte(id))})
		}
		s.submitLater()
	})
}

// sharers returns all members of the run.
func (s *Sim) sharers() (all []*sharer) {
	for _, c := range s.clients {
		if m, ok := c.player.(*sharer); ok {
			all = append(all, m)
		}
	}
	return all
}

// allShared says what is missing until all members are there, every part is shared as it
// should be, and every task is done. A part is as it should be if the member for which it
// is meant owned it last and is the only bidder left. The member need not own it at this
// moment: short leases lapse in a slow ensemble, and are renewed.
func (s *Sim) allShared() string {
	all := s.sharers()
	if len(all) == 0 {
		return ""
	}
	members := s.names(shareMembers)
	if len(members) != len(all) {
		return fmt.Sprintf("there are %v", members)
	}
	if all[0].tasks {
		if left := s.names(shareTasks); len(left) > 0 {
			return fmt.Sprintf("there are tasks: %v", left)
		}
		return ""
	}
	meant := share.Share(members, s.parts())
	for _, m := range all {
		for _, part := range s.parts() {
			o := m.owner(part)
			switch mine := meant[part] == m.id; {
			case mine && (s.owned[part] != m.id || o == nil || o.told || s.first(o.parent()) != m.c.session):
				return fmt.Sprintf("%s was owned by %q last, and is meant for %s, whose bid is not the first", part, s.owned[part], m.id)
			case !mine && o != nil:
				return fmt.Sprintf("%s is meant for %s, and %s stands for it", part, meant[part], m.id)
			}
		}
	}
	return ""
}
