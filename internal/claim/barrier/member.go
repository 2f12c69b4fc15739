package barrier

import (
	"errors"
	"slices"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// MemberConfig describes a [Member].
type MemberConfig struct {
	Path  string // path of the barrier
	Name  string // name of the member's znode, never used before
	N     int    // how many members must be present
	Kazoo bool   // compatible with kazoo: a member removes ready before it deletes its own znode
}

// MemberPhase is a phase in the life of a Member.
type MemberPhase uint8

// The phases.
const (
	Entering  MemberPhase = iota // waiting until enough members are present
	Inside                       // the member has passed the barrier
	Departing                    // waiting until the other members have left, or giving up
)

// Depart asks the member to leave the barrier. A repeated Depart makes it read the state again.
type Depart struct{}

func (Depart) Event() {}

// Member enters a double barrier and leaves it again:
//
//	create own znode ▸ watch ready, list ▸ enough members: create ready ▸ inside ▸ depart ▸ delete own znode, wait for the others
//	                                     ▸ not enough: wait for ready
//
// The znode ready separates two rounds. The members that are older than ready belong to its round. While
// one of them is present, only the last of them removes ready, together with its own znode. A member that
// arrives later may enter too while a member of the round is present, as in Curator and kazoo.
//
// If all members of the round have died, ready is left over, and the oldest member removes it. The same
// transaction checks that the member's own znode still exists. Otherwise another member could already be
// the oldest, and remove ready as well.
//
// A member lives as long as its session. If leaving has failed, Depart starts it again.
type Member struct {
	claim.Requester
	cfg    MemberConfig
	phase  MemberPhase
	failed error // why the member gives up
	gone   bool  // the session is over

	createSent bool // the creation of the member's znode was requested
	made       bool // the member's znode was created
	czxid      wire.Zxid
	watched    bool // ready is watched
	look       bool // ready and the members must be read
	enough     bool // enough members are present, so ready must be created
	late       bool // the member entered although ready is older than its own znode
	byEvent    bool // an event let the member in; the server of a new connection may not know ready yet

	// Fields about ready, while it exists.
	since  wire.Zxid // czxid of ready
	probes []string  // members whose age is still to be read
	alive  bool      // a member of the round is present
	oldest string
	age    wire.Zxid // czxid of the oldest member's znode

	// Fields about leaving.
	withoutWaiting bool            // leave without waiting for other members
	deleteOnly     bool            // the server refused a request that leaving needs, so only delete the member's znode
	opened         bool            // kazoo: ready has been removed
	round          map[string]bool // members to wait for; nil: not known yet
	there          map[string]bool // members present at the last look; nil: look again
	counted        bool            // the member belongs to the round of ready, and removes ready if it is the last
	waits          string          // name of the member that is watched
}

// NewMember returns the state machine of a member. It does nothing until Attached is stepped.
func NewMember(cfg MemberConfig) *Member {
	m := &Member{cfg: cfg, look: true}
	m.Forget = func() { m.gone = true }
	return m
}

func (m *Member) path(name string) string { return claim.Join(m.cfg.Path, name) }
func (m *Member) own() string             { return m.path(m.cfg.Name) }
func (m *Member) readyPath() string       { return m.path("ready") }

// Phase returns the phase of the member.
func (m *Member) Phase() MemberPhase { return m.phase }

// Settled reports whether the member is inside, and no request is outstanding or due.
func (m *Member) Settled() bool {
	return !m.Over() && m.phase == Inside && m.Asked == 0 && (!m.watched || !m.Connected)
}

// Session returns the session of the member.
func (m *Member) Session() wire.SessionID { return m.Current }

// Late reports whether the member entered although ready is older than its own znode.
func (m *Member) Late() bool { return m.late }

// Step processes one event, which happened at now.
func (m *Member) Step(now claim.Moment, ev claim.Event) {
	if _, again := ev.(Depart); again {
		m.depart()
	}
	if m.Over() {
		return
	}
	if ev, ok := ev.(claim.Fired); ok {
		m.fired(ev)
	}
	m.Advance(now, ev, m.plan)
	if m.gone && !m.Over() {
		m.End(claim.Failed, wire.ErrSessionExpired)
	}
}

// fired processes a watch event. Only the creation of ready lets a member in. After any other event, or
// the removal of a watch, the member reads the state (Curator GH-1290).
func (m *Member) fired(ev claim.Fired) {
	switch {
	case ev.Path == m.readyPath() && m.phase == Entering:
		m.watched, m.look = false, true
		if ev.Type == wire.EventNodeCreated && m.made {
			m.byEvent = true
			m.letIn()
		}
	case ev.Path == m.readyPath():
		m.watched = false
	case ev.Path == m.path(m.oldest) && m.phase == Entering:
		m.look = true
	case ev.Path == m.path(m.waits):
		m.waits, m.there = "", nil
	}
}

func (m *Member) letIn() {
	if m.phase == Entering {
		m.phase = Inside
	}
}

// plan chooses the next request.
func (m *Member) plan() {
	switch {
	case m.phase == Inside && m.watched:
		m.Ask(func([]claim.Result) { m.watched = false }, claim.Unwatch(m.readyPath()))
	case m.phase == Inside:
	case m.phase == Departing:
		m.planLeave()
	case m.Leaving || m.failed != nil:
		m.giveUp()
	case !m.made:
		m.createSent = true
		m.Ask(m.tookOwn, claim.Op{Kind: claim.OpCreate, Path: m.own()})
	case len(m.probes) > 0:
		m.planProbe()
	case m.enough:
		m.watched = false
		m.Ask(m.tookReady, claim.Unwatch(m.readyPath()), claim.Op{Kind: claim.OpCreate, Path: m.readyPath(), Persistent: true})
	case m.look:
		m.Ask(m.tookLook, claim.Op{Kind: claim.OpExists, Path: m.readyPath()}, claim.List(m.cfg.Path))
	}
}

// giveUp leaves without waiting for other members.
func (m *Member) giveUp() {
	if !m.createSent {
		m.quit()
		return
	}
	m.phase, m.withoutWaiting = Departing, true
	m.planLeave()
}

// quit ends the member. The outcome depends on why it leaves.
func (m *Member) quit() {
	switch {
	case m.failed != nil:
		m.End(claim.Failed, m.failed)
	case m.Leaving && (m.withoutWaiting || !m.createSent):
		m.End(claim.Withdrawn, nil)
	default:
		m.End(claim.Succeeded, nil)
	}
}

// refused reports whether err is a refusal by the server, that is neither nil nor one of the expected
// errors. The member then gives up, and tries to delete its own znode.
func (m *Member) refused(err error, expected ...error) bool {
	if err == nil || slices.ContainsFunc(expected, func(e error) bool { return errors.Is(err, e) }) {
		return false
	}
	if m.failed == nil {
		m.failed = err
	}
	switch {
	case m.phase == Departing && m.deleteOnly:
		m.quit()
	case m.phase == Departing:
		m.deleteOnly = true
	}
	return true
}

func (m *Member) tookOwn(res []claim.Result) {
	switch r := res[0]; {
	case errors.Is(r.Err, wire.ErrNoNode):
		m.Ask(func(res []claim.Result) { m.refused(res[0].Err) }, claim.MakeParents(m.cfg.Path))
	case !m.refused(r.Err, wire.ErrNodeExists): // created by a request whose answer was lost
		m.made, m.czxid = true, r.Stat.Czxid
	}
}

// tookLook lets the member in, or makes it wait. If the answer was lost, plan asks again.
func (m *Member) tookLook(res []claim.Result) {
	ready, list := res[0], res[1]
	if m.refused(ready.Err, wire.ErrNoNode) || m.refused(list.Err, wire.ErrNoNode) {
		return
	}
	m.watched, m.look = true, false
	if m.refused(claim.OtherRecipe(m.cfg.Path, claim.KindDoubleBarrier, list.Names)) {
		return
	}
	in := Members(list.Names)
	switch {
	case ready.Err == nil && m.czxid != 0 && ready.Stat.Czxid > m.czxid:
		m.letIn()
	case ready.Err == nil:
		m.since, m.probes, m.alive, m.oldest, m.age = ready.Stat.Czxid, in, false, "", 0
		m.look = len(in) == 0
	default:
		m.enough = len(in) >= m.cfg.N
	}
}

// Members returns the names of the members among the children, in order.
func Members(names []string) []string {
	in := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == "ready" })
	slices.Sort(in)
	return in
}

func (m *Member) tookReady(res []claim.Result) {
	m.enough = false
	switch err := res[1].Err; {
	case errors.Is(err, wire.ErrNoNode):
		m.look = true
	case !m.refused(err, wire.ErrNodeExists):
		m.letIn()
	}
}

// planProbe reads the age of some members, and then ready. If ready is unchanged after that, only the
// oldest member may remove it.
func (m *Member) planProbe() {
	part := m.probes[:min(len(m.probes), claim.ProbeMax)]
	var ops []claim.Op
	for _, name := range part {
		ops = append(ops, claim.Get(m.path(name)))
	}
	ops = append(ops, claim.Get(m.readyPath()))
	m.Ask(func(res []claim.Result) { m.tookProbe(part, res) }, ops...)
}

func (m *Member) tookProbe(part []string, res []claim.Result) {
	for i, name := range part {
		r := res[i]
		if m.refused(r.Err, wire.ErrNoNode) {
			return
		}
		if r.Err != nil {
			continue
		}
		if name == m.cfg.Name {
			m.czxid = r.Stat.Czxid
		}
		if r.Stat.Czxid < m.since {
			m.alive = true
		}
		if m.age == 0 || r.Stat.Czxid < m.age {
			m.oldest, m.age = name, r.Stat.Czxid
		}
	}
	ready := res[len(part)]
	m.probes = m.probes[len(part):]
	switch {
	case m.refused(ready.Err, wire.ErrNoNode):
	case ready.Err != nil || ready.Stat.Czxid != m.since:
		m.probes, m.look = nil, true
	case m.czxid != 0 && m.czxid < m.since:
		m.probes = nil
		m.letIn()
	case m.alive:
		m.probes, m.late = nil, true
		m.letIn()
	case len(m.probes) == 0:
		m.planRemnant()
	}
}

// planRemnant handles a ready that is left over from a finished round. The oldest member deletes it. The other
// members watch the oldest. If ready has changed meanwhile, its watch is gone and they look again.
func (m *Member) planRemnant() {
	m.look = true // unless the watch on the oldest member makes this unnecessary
	if m.oldest != m.cfg.Name {
		m.Ask(func(res []claim.Result) {
			if !m.refused(res[0].Err, wire.ErrNoNode) {
				m.look = res[0].Err != nil || !m.watched
			}
		}, claim.Op{Kind: claim.OpWatch, Path: m.path(m.oldest)})
		return
	}
	m.Ask(func(res []claim.Result) { m.refused(res[0].Err, wire.ErrNoNode) }, claim.Multi(m.cfg.Path, claim.Check(m.own()), claim.Delete(m.readyPath())))
}
