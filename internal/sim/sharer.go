package sim

import (
	"fmt"
	"slices"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// Where members, parts and tasks stand.
const (
	shareMembers = "/share/members"
	shareParts   = "/share/parts"
	shareTasks   = "/share/tasks"
)

// shareCount is how many parts are shared, and tasksMax how many tasks wait.
const (
	shareCount = 7
	tasksMax   = 6
)

// sharer is a member of those who share parts, or do tasks. It is there by a
// registration, knows of the others and of the tasks by caches, and stands in
// the election of each part that is meant for it.
type sharer struct {
	c       *client
	id      string
	tasks   bool // it does tasks; else it owns parts
	submits bool // tasks, besides
	n       int  // of them so far

	lease   claim.Lease
	session wire.SessionID // of the lease
	here    *hand          // its registration
	there   *roll          // the members
	todo    *roll          // the tasks
	part    *claim.Sharing
	owners  []*owner // also those that have yet to let go
	leaving bool
}

// hand drives one registration.
type hand struct {
	hands
	m *claim.Registrant
}

// roll drives a cache of a znode's children.
type roll struct {
	hands
	m     *claim.Cache
	root  string
	known bool // it was current
}

func newSharer(c *client, n int) *sharer {
	s := &sharer{c: c, id: fmt.Sprint("m", c.id), tasks: c.sim.opt.Recipe == Work}
	s.submits = s.tasks && n == 0
	s.begin()
	return s
}

// begin is a new process, or a new Run of the same.
func (s *sharer) begin() {
	s.here, s.there, s.todo = &hand{}, &roll{}, &roll{}
	s.here.hands = hands{c: s.c, step: s.stepHere}
	s.there.hands = hands{c: s.c, step: func(ev claim.Event) { s.stepRoll(s.there, ev) }, together: true}
	s.todo.hands = hands{c: s.c, step: func(ev claim.Event) { s.stepRoll(s.todo, ev) }, together: true}
	s.here.m = claim.NewRegistrant(claim.RegistrantConfig{Path: claim.Join(shareMembers, s.id)})
	most := 0
	if s.tasks {
		most = 1
	}
	s.part, s.leaving, s.session = claim.NewSharing(s.id, most), false, 0
	here := s.here
	s.here.soon(20*second, func() {
		if s.here == here && !s.c.sim.calm && s.c.dice.chance(50) {
			s.leave()
		}
	})
	if s.submits {
		s.submitLater()
	}
}

// each steps an event in all that it drives.
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
	for _, o := range s.owners {
		o.drop()
		o.task.drop()
		o.line, o.task.m = nil, nil
	}
	s.owners = nil
}

// stepHere drives the registration. When it stands for the first time the member
// looks who else is there.
func (s *sharer) stepHere(ev claim.Event) {
	h := s.here
	if h.m == nil {
		return
	}
	h.m.Step(h.now(), ev)
	rd, st := h.m.Ready(), h.m.State()
	h.ask(rd.Request)
	switch {
	case s.here != h:
		return
	case h.m.Over():
		s.left()
		return
	case st.Stands && s.there.m == nil && !s.leaving:
		s.c.sim.tell("member %s is there", s.id)
		s.follow(s.there, shareMembers)
		if s.tasks {
			s.follow(s.todo, shareTasks)
		}
	}
	h.wake(rd.Wake)
}

func (s *sharer) follow(r *roll, root string) {
	r.root = root
	r.oneShot = s.c.dice.chance(25)
	r.m = claim.NewCache(claim.CacheConfig{Root: root, ChildrenOnly: true, NodesMax: 1000, BytesMax: 1 << 20})
	if s.c.attached {
		s.stepRoll(r, claim.Attached{Session: s.c.session})
	}
}

// stepRoll drives a cache, and settles after each change that it tells.
func (s *sharer) stepRoll(r *roll, ev claim.Event) {
	m := r.m
	if m == nil {
		return
	}
	m.Step(r.now(), ev)
	rd := m.Ready()
	news := false
	for _, e := range m.Events() {
		r.known = r.known || e.Type == claim.CacheCurrent
		news = news || e.Type != claim.NodeChanged
	}
	r.ask(rd.Request)
	switch {
	case r.m != m:
		return
	case m.Over() && m.Outcome() == claim.Withdrawn:
		r.drop()
		r.m = nil
		s.c.dropStream(s.c.streamAt(r.root)) // which goes with the connection, where that is lost
		s.leaveIfFree()
		return
	case m.Over():
		s.c.sim.fail("Shares", "the cache of member %s ends: %v %v", s.id, m.Outcome(), m.Err())
		return
	}
	r.wake(rd.Wake)
	if news {
		s.settle()
	}
}

// settle lets go of what is not meant for this member any more, and stands for
// what is, once the last owner here has let go.
func (s *sharer) settle() {
	if s.leaving || !s.there.known || s.tasks && !s.todo.known {
		return
	}
	parts := s.c.sim.parts()
	if s.tasks {
		parts = s.todo.m.Children(shareTasks)
	}
	letGo, stand := s.part.Settle(s.there.m.Children(shareMembers), parts)
	for _, part := range letGo {
		for _, o := range s.owners {
			if o.part == part {
				o.stop()
			}
		}
	}
	for _, part := range stand {
		o := newOwner(s, part)
		s.owners = append(s.owners, o)
		o.stand()
	}
}

// parts are those that are shared.
func (s *Sim) parts() (all []string) {
	for i := range shareCount {
		all = append(all, fmt.Sprint("p", i))
	}
	return all
}

// leave ends a Run: all parts are let go, then the registration.
func (s *sharer) leave() {
	s.c.sim.tell("member %s leaves", s.id)
	s.leaving = true
	s.stepRoll(s.there, claim.Resign{})
	s.stepRoll(s.todo, claim.Resign{})
	for _, o := range slices.Clone(s.owners) {
		o.stop()
	}
	s.leaveIfFree()
}

func (s *sharer) leaveIfFree() {
	if s.leaving && len(s.owners) == 0 && s.there.m == nil && s.todo.m == nil {
		s.stepHere(claim.Resign{})
	}
}

// left: it is not there any more, and comes back some time.
func (s *sharer) left() {
	s.c.sim.tell("member %s has left", s.id)
	s.here.m = nil
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
			for _, path := range []string{"/share", shareTasks, fmt.Sprintf("%s/t%d-%d", shareTasks, s.c.id, s.n)} {
				s.c.send(requestOf(&claim.Op{Kind: claim.OpParents, Path: path, Data: []byte(path)}))
			}
		}
		s.submitLater()
	})
}

// sharers are all of a run.
func (s *Sim) sharers() (all []*sharer) {
	for _, c := range s.clients {
		if m, ok := c.player.(*sharer); ok {
			all = append(all, m)
		}
	}
	return all
}

// allShared says what is missing until all members are there, every part has
// one owner, whom it is meant for, and every task is done.
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
	meant := claim.Share(members, s.parts())
	owners := map[string][]string{}
	for _, m := range all {
		for _, o := range m.owners {
			if o.holds() && !o.stopped {
				owners[o.part] = append(owners[o.part], m.id)
			}
		}
	}
	for _, part := range s.parts() {
		if !slices.Equal(owners[part], []string{meant[part]}) {
			return fmt.Sprintf("%s is owned by %v, and meant for %s", part, owners[part], meant[part])
		}
	}
	return ""
}
