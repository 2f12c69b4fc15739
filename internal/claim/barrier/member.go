package barrier

import (
	"errors"
	"slices"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// MemberConfig is what a [Member] is about.
type MemberConfig struct {
	Path  string // of the barrier
	Name  string // of the member's znode, never used before
	N     int    // how many have to be there
	Kazoo bool   // ready is removed first of all by who leaves
}

// MemberPhase is the part of its life a Member is in.
type MemberPhase uint8

// The phases.
const (
	Entering  MemberPhase = iota // until enough are there
	Inside                       // let in
	Departing                    // until the others are out, or giving up
)

// Depart: leave the barrier. Stepped again it means to look anew.
type Depart struct{}

func (Depart) Event() {}

// Member is one who enters a double barrier and leaves it again:
//
//	create own znode ▸ watch ready, list ▸ enough: create ready ▸ in ▸ depart ▸ remove own, await the others
//	                                     ▸ not enough: await ready
//
// The znode ready tells two rounds apart. Of its round are the members that
// are older than it: as long as one of them is there nobody removes it but the
// last, together with its own znode. Who comes later and finds it is let in
// too, as in Curator and kazoo, while somebody of the round is there. When all
// of them have died, ready is a remnant: the oldest member then removes it, in
// a transaction that looks whether its own znode still stands, so that no
// other can take it for the oldest.
//
// A member lives as long as its session.
type Member struct {
	claim.Requester
	cfg    MemberConfig
	phase  MemberPhase
	failed error // why it gives up
	gone   bool  // the session is over

	asks    bool // the own znode was asked for
	made    bool // it stands, or did
	czxid   wire.Zxid
	watched bool // ready is watched
	look    bool // how things stand must be looked at
	enough  bool // and ready is to be made
	late    bool // let in by a ready that is older
	told    bool // let in by an event: the next server may not know of it yet

	// Of ready, where it is there.
	since  wire.Zxid // when it was made
	probes []string  // members that have not been asked for their age
	alive  bool      // one is of its round
	oldest string
	age    wire.Zxid // of the oldest

	// Of the end.
	hurry  bool            // nobody is waited for
	blind  bool            // it may not do what leaving takes: the own znode goes all the same
	opened bool            // kazoo: ready was removed
	round  map[string]bool // who is waited for; nil: not known yet
	there  map[string]bool // who was there at the last look; nil: look
	full   bool            // this member is of ready's round, and takes it along
	waits  string          // who is watched
}

// NewMember makes a member's state machine. It waits for Attached.
func NewMember(cfg MemberConfig) *Member {
	m := &Member{cfg: cfg, look: true}
	m.Forget = func() { m.gone = true }
	return m
}

func (m *Member) path(name string) string { return claim.Join(m.cfg.Path, name) }
func (m *Member) own() string             { return m.path(m.cfg.Name) }
func (m *Member) readyPath() string       { return m.path("ready") }

// Phase is the part of its life the member is in.
func (m *Member) Phase() MemberPhase { return m.phase }

// Settled: the member is let in, and nothing is under way.
func (m *Member) Settled() bool {
	return !m.Over() && m.phase == Inside && m.Asked == 0 && (!m.watched || !m.Connected)
}

// Session is the one that it lives in.
func (m *Member) Session() wire.SessionID { return m.Current }

// Late: it was let in by a ready that is older than its own znode.
func (m *Member) Late() bool { return m.late }

// Step takes one event, which happened at now.
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

// Ready hands out what has come of the steps since the last call.
func (m *Member) Ready() claim.Ready { return m.Collect() }

// fired: only that ready was made lets a member in. Any other event, and a
// watch that ends by itself, is a reason to look (Curator GH-1290).
func (m *Member) fired(ev claim.Fired) {
	switch {
	case ev.Path == m.readyPath() && m.phase == Entering:
		m.watched, m.look = false, true
		if ev.Type == wire.EventNodeCreated && m.made {
			m.told = true
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
		m.Ask(func([]claim.Result) { m.watched = false }, claim.Op{Kind: claim.OpUnwatch, Path: m.readyPath()})
	case m.phase == Inside:
	case m.phase == Departing:
		m.planLeave()
	case m.Leaving || m.failed != nil:
		m.giveUp()
	case !m.made:
		m.asks = true
		m.Ask(m.tookOwn, claim.Op{Kind: claim.OpCreate, Path: m.own()})
	case len(m.probes) > 0:
		m.planProbe()
	case m.enough:
		m.watched = false
		m.Ask(m.tookReady, claim.Op{Kind: claim.OpUnwatch, Path: m.readyPath()}, claim.Op{Kind: claim.OpCreate, Path: m.readyPath(), Persistent: true})
	case m.look:
		m.Ask(m.tookLook, claim.Op{Kind: claim.OpExists, Path: m.readyPath()}, claim.Op{Kind: claim.OpList, Path: m.cfg.Path})
	}
}

// giveUp leaves without waiting for anybody.
func (m *Member) giveUp() {
	if !m.asks {
		m.quit()
		return
	}
	m.phase, m.hurry = Departing, true
	m.planLeave()
}

// quit ends who has given up.
func (m *Member) quit() {
	switch {
	case m.failed != nil:
		m.End(claim.Failed, m.failed)
	case m.Leaving && (m.hurry || !m.asks):
		m.End(claim.Withdrawn, nil)
	default:
		m.End(claim.Succeeded, nil)
	}
}

// refused reports whether the server does not allow what the member needs,
// which then gives up, and takes its own znode away if it may do that. Where a
// znode was or was not does not count.
func (m *Member) refused(err error, expected ...error) bool {
	if err == nil || slices.ContainsFunc(expected, func(e error) bool { return errors.Is(err, e) }) {
		return false
	}
	if m.failed == nil {
		m.failed = err
	}
	switch {
	case m.phase == Departing && m.blind:
		m.quit()
	case m.phase == Departing:
		m.blind = true
	}
	return true
}

func (m *Member) tookOwn(res []claim.Result) {
	switch r := res[0]; {
	case errors.Is(r.Err, wire.ErrNoNode):
		m.Ask(func(res []claim.Result) { m.refused(res[0].Err) }, claim.Op{Kind: claim.OpParents, Path: m.cfg.Path})
	case !m.refused(r.Err, wire.ErrNodeExists): // by a request whose answer was lost
		m.made, m.czxid = true, r.Stat.Czxid
	}
}

// tookLook lets the member in, or has it wait. An answer that is lost means to
// look again.
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

// Members are those among the children, in the order of their names.
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

// planProbe asks members for their age, and last whether ready is the same
// yet: from then on nobody removes it but the oldest.
func (m *Member) planProbe() {
	part := m.probes[:min(len(m.probes), claim.ProbeMax)]
	var ops []claim.Op
	for _, name := range part {
		ops = append(ops, claim.Op{Kind: claim.OpGet, Path: m.path(name)})
	}
	ops = append(ops, claim.Op{Kind: claim.OpGet, Path: m.readyPath()})
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
		m.remnant()
	}
}

// remnant: nobody of ready's round is left. Who watches the oldest looks again
// where ready has fired meanwhile: it is not watched any more.
func (m *Member) remnant() {
	m.look = true // unless it is known that another removes it
	if m.oldest != m.cfg.Name {
		m.Ask(func(res []claim.Result) {
			if !m.refused(res[0].Err, wire.ErrNoNode) {
				m.look = res[0].Err != nil || !m.watched
			}
		}, claim.Op{Kind: claim.OpWatch, Path: m.path(m.oldest)})
		return
	}
	m.Ask(func(res []claim.Result) { m.refused(res[0].Err, wire.ErrNoNode) }, claim.Op{Kind: claim.OpMulti, Path: m.cfg.Path, Ops: []claim.Op{
		{Kind: claim.OpCheck, Path: m.own(), Version: claim.AnyVersion}, {Kind: claim.OpDelete, Path: m.readyPath(), Version: claim.AnyVersion}}})
}
