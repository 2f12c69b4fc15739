package client

import (
	"fmt"
	"slices"

	"bellwether/internal/claim"
	"bellwether/internal/claim/cache"
	"bellwether/internal/claim/registry"
	"bellwether/internal/claim/share"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/machine"
	"bellwether/wire"
)

// shareMembers is the znode of the members.
const shareMembers = check.ShareParent + "/members"

// shareCount is the number of parts, and tasksMax is the largest number of tasks that wait.
const (
	shareCount = 7
	tasksMax   = 6
)

// Sharer is a member of a group that shares parts or does tasks. It carries out what its
// state machine asks for: a registration as a member, caches of the members and the tasks,
// and bids in the elections of parts.
//
// While busy is true, no other call carries out duties, so duties never overlap.
type Sharer struct {
	c           *Client
	id          string
	doesTasks   bool    // it does tasks; otherwise it owns parts
	submits     bool    // it also submits tasks
	n           int     // number of tasks submitted so far
	submissions *Runner // sends its submissions

	lease      claim.Lease
	session    wire.SessionID // the session for which the lease is held
	membership *membership    // its registration
	memberList *childrenCache // the members
	taskList   *childrenCache // the tasks
	m          *share.Sharing
	owners     []*Owner // owners that have not released their part yet
	busy       bool     // it is carrying out duties: later ones wait
	ownersMade int      // number of owners so far
}

// membership drives the registration of a member.
type membership struct {
	Runner
	m *registry.Registrant
}

// childrenCache drives a cache of a znode's children.
type childrenCache struct {
	Runner
	m    *cache.Cache
	root string
}

func newSharer(c *Client, n int) *Sharer {
	s := &Sharer{c: c, id: fmt.Sprint("m", c.ID), doesTasks: c.group.Settings().Recipe == Work}
	s.submits = s.doesTasks && n == 0
	s.begin()
	return s
}

// begin starts a new process, or a new Run of the same process.
func (s *Sharer) begin() {
	s.membership, s.memberList, s.taskList = &membership{}, &childrenCache{root: shareMembers}, &childrenCache{root: check.ShareTasks}
	s.membership.Runner = Runner{c: s.c, step: s.stepMembership}
	s.memberList.Runner = Runner{c: s.c, step: func(ev claim.Event) { s.stepCache(s.memberList, ev) }, together: true}
	s.taskList.Runner = Runner{c: s.c, step: func(ev claim.Event) { s.stepCache(s.taskList, ev) }, together: true}
	s.submissions = &Runner{c: s.c, step: func(claim.Event) {}} // a submission that is lost is not repeated
	s.m, s.session = share.NewSharing(s.cfg()), 0
	here := s.membership
	s.membership.soon(20*machine.Second, func() {
		if s.membership == here && !s.c.group.Phase().Calm && s.c.random.Chance(50) {
			s.c.group.Tell("member %s leaves", s.id)
			s.step(claim.Resign{})
		}
	})
	if s.submits {
		s.submitLater()
	}
	s.carryOut()
}

func (s *Sharer) cfg() share.SharingConfig {
	cfg := share.SharingConfig{Parent: check.ShareParent, ID: s.id, Parts: s.c.group.parts()}
	if s.doesTasks {
		cfg.Tasks, cfg.Most = true, 1
	}
	return cfg
}

// step passes an event to the state machine and carries out what the machine asks for.
func (s *Sharer) step(ev claim.Event) {
	if !s.m.Over() {
		s.m.Step(s.membership.now(), ev)
		s.carryOut()
	}
}

// carryOut carries out the duties in order. Duties that arise meanwhile come after them.
func (s *Sharer) carryOut() {
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

func (s *Sharer) do(op claim.Op) {
	switch op.Kind {
	case claim.OpRegister:
		s.membership.m = registry.NewRegistrant(registry.RegistrantConfig{Path: op.Path})
	case claim.OpFollow:
		s.follow(s.cacheAt(op.Path))
	case claim.OpBid:
		o := newOwner(s, op.Part())
		s.owners = append(s.owners, o)
		o.bid()
	case claim.OpResign:
		s.owner(op.Part()).release()
	case claim.OpTidy:
		s.membership.soon(10*machine.Millisecond, func() {
			if s.c.Attached {
				s.c.Send(RequestOf(&claim.Op{Kind: claim.OpDelete, Path: op.Path, Version: claim.AnyVersion}))
			}
			s.step(share.Tidied{Part: op.Part()})
		})
	case claim.OpUnfollow:
		s.stepCache(s.cacheAt(op.Path), claim.Resign{})
	case claim.OpDeregister:
		s.stepMembership(claim.Resign{})
	}
}

func (s *Sharer) cacheAt(root string) *childrenCache {
	if root == s.memberList.root {
		return s.memberList
	}
	return s.taskList
}

// owner returns the bidder for a part; nil: there is none.
func (s *Sharer) owner(part string) *Owner {
	for _, o := range s.owners {
		if o.Part == part {
			return o
		}
	}
	return nil
}

// Client returns the client of the member.
func (s *Sharer) Client() *Client { return s.c }

// Doing returns the owner whose task is being done; nil: there is none.
func (s *Sharer) Doing() *Owner {
	for _, o := range s.owners {
		if o.task.due && !o.task.did {
			return o
		}
	}
	return nil
}

// each passes an event to everything that the member drives.
func (s *Sharer) each(ev claim.Event) {
	s.stepMembership(ev)
	s.stepCache(s.memberList, ev)
	s.stepCache(s.taskList, ev)
	for _, o := range slices.Clone(s.owners) {
		o.step(ev)
		o.task.step(ev)
	}
}

func (s *Sharer) attached() {
	session := s.c.Session
	s.stepMembership(claim.Attached{Session: session})
	s.stepCache(s.memberList, claim.Attached{Session: session})
	s.stepCache(s.taskList, claim.Attached{Session: session})
	here := s.membership
	s.c.prove(&s.lease, func() {
		if s.membership != here {
			return
		}
		s.session = session
		for _, o := range slices.Clone(s.owners) {
			o.step(claim.Attached{Session: session, Lease: s.lease})
			o.task.step(claim.Attached{Session: session})
		}
	})
}

func (s *Sharer) disconnected() { s.session = 0; s.each(claim.Disconnected{}) }
func (s *Sharer) expired()      { s.session = 0; s.each(claim.Expired{}) }

func (s *Sharer) proven(at claim.Moment) {
	s.lease.Sent = at
	for _, o := range slices.Clone(s.owners) {
		o.step(claim.Confirmed{Lease: s.lease})
		if o.holds() {
			s.c.group.See(check.PartProven{Owner: o.observed()})
		}
	}
}

func (s *Sharer) pingsOften() bool {
	return slices.ContainsFunc(s.owners, func(o *Owner) bool { return o.keepAlive })
}

func (s *Sharer) crashed() {
	s.dropAll()
	s.begin()
}

func (s *Sharer) dropAll() {
	s.membership.drop()
	s.memberList.drop()
	s.taskList.drop()
	s.submissions.drop()
	for _, o := range s.owners {
		o.drop()
		o.task.drop()
		o.line, o.task.m = nil, nil
	}
	s.owners = nil
}

// stepMembership drives the registration.
func (s *Sharer) stepMembership(ev claim.Event) {
	h := s.membership
	if h.m == nil {
		return
	}
	h.m.Step(h.now(), ev)
	rd, st := h.m.Ready(), h.m.State()
	h.request(rd.Request)
	switch {
	case s.membership != h || h.m == nil:
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

func (s *Sharer) follow(r *childrenCache) {
	r.oneShot = s.c.random.Chance(25)
	r.m = cache.NewCache(cache.Config{Root: r.root, ChildrenOnly: true, NodesMax: 1000, BytesMax: 1 << 20})
	if s.c.Attached {
		s.stepCache(r, claim.Attached{Session: s.c.Session})
	}
}

// stepCache drives a cache.
func (s *Sharer) stepCache(r *childrenCache, ev claim.Event) {
	m := r.m
	if m == nil {
		return
	}
	m.Step(r.now(), ev)
	rd := m.Ready()
	if events := m.Events(); len(events) > 0 {
		s.step(share.Seen{Path: r.root, Events: events})
	}
	r.request(rd.Request)
	switch {
	case r.m != m:
	case m.Over():
		r.drop()
		r.m = nil
		s.c.dropTreeWatch(s.c.treeWatchAt(r.root)) // a lost connection has already ended the stream
		s.step(share.CacheOver{Path: r.root, Err: m.Err()})
	default:
		r.wake(rd.Wake)
	}
}

// parts returns the names of the parts.
func (s *Group) parts() (all []string) {
	for i := range shareCount {
		all = append(all, fmt.Sprint("p", i))
	}
	return all
}

// left handles the end of the membership. The member comes back later.
func (s *Sharer) left() {
	if err := s.m.Err(); err != nil {
		s.c.group.Fail("Shares", "member %s ends: %v", s.id, err)
		return
	}
	s.c.group.Tell("member %s has left", s.id)
	here := s.membership
	s.membership.soon(machine.Second, func() {
		if s.membership != here {
			return
		}
		s.dropAll()
		s.begin()
		if s.c.Attached {
			s.attached()
		}
	})
}

// submitLater submits tasks, each once.
func (s *Sharer) submitLater() {
	s.membership.soon(200*machine.Millisecond, func() {
		if s.c.Attached && !s.c.group.Phase().Quiet && len(s.c.group.History().Names(check.ShareTasks)) < tasksMax {
			s.n++
			id := fmt.Sprintf("t%d-%d", s.c.ID, s.n)
			s.submissions.request(&claim.Request{Session: s.c.Session, Ops: s.cfg().Submission(id, []byte(id))})
		}
		s.submitLater()
	})
}

// Sharers returns all members of the run.
func (s *Group) Sharers() (all []*Sharer) {
	for _, c := range s.All {
		if m, ok := c.Player.(*Sharer); ok {
			all = append(all, m)
		}
	}
	return all
}

// PartsMissing says what is missing until all members are there, every part is shared as it
// should be, and every task is done. A part is as it should be if the member for which it
// is meant owned it last and is the only bidder left. The member need not own it at this
// moment: short leases lapse in a slow ensemble, and are renewed.
func (s *Group) PartsMissing() string {
	all := s.Sharers()
	if len(all) == 0 {
		return ""
	}
	members := s.History().Names(shareMembers)
	if len(members) != len(all) {
		return fmt.Sprintf("the members are only %v", members)
	}
	if all[0].doesTasks {
		if left := s.History().Names(check.ShareTasks); len(left) > 0 {
			return fmt.Sprintf("tasks are left: %v", left)
		}
		return ""
	}
	meant := share.Share(members, s.parts())
	for _, m := range all {
		for _, part := range s.parts() {
			o := m.owner(part)
			switch mine := meant[part] == m.id; {
			case mine && (s.owned[part] != m.id || o == nil || o.mustRelease || s.History().FirstBid(o.parent()) != m.c.Session):
				return fmt.Sprintf("%s was last owned by %q, but is assigned to %s, whose bid is not the first", part, s.owned[part], m.id)
			case !mine && o != nil:
				return fmt.Sprintf("%s is assigned to %s, but %s has a bid for it", part, meant[part], m.id)
			}
		}
	}
	return ""
}
