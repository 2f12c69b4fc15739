package replica

import (
	"errors"
	"fmt"
	"slices"

	"bellwether/internal/election"
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// A reconfiguration is a transaction like any other. The log knows which memberships
// count (zab.Log.Memberships). This file checks a request, and passes on each change of
// the memberships: to the election, to the driver, to the disk, and to the znode.
// docs/decisions/0028-reconfiguration.md has the reasons.

// Memberships are the memberships that count. Proposed is nil unless a newer one than
// Committed is in the log.
type Memberships struct{ Committed, Proposed *ensemble.Membership }

// memberships returns the memberships that count now.
func (m *member) memberships() Memberships {
	if !m.opt.Reconfig {
		return Memberships{Committed: m.opt.Members}
	}
	committed, proposed := m.log.Memberships()
	return Memberships{committed, proposed}
}

// Memberships returns the memberships with which this server of an ensemble counts now. The
// last Ready may have returned older ones.
func (r *Replica) Memberships() Memberships { return r.member.memberships() }

// reconcile passes on the memberships if they have changed. The file of a proposed
// membership is a duty of its own (see duties), because it comes before the transaction.
func (r *Replica) reconcile() {
	m := r.member
	now := m.memberships()
	if now == m.members {
		return
	}
	if now.Committed != m.members.Committed {
		m.ready.Duties = append(m.ready.Duties, Duty{Committed: &now, Generation: max(m.generation, 1)}) // generations start at 1
	}
	m.members = now
	m.ready.Members = &now
	m.election.Step(r.now.Mono, election.Configured{Committed: now.Committed, Proposed: now.Proposed})
}

// adopt records a committed membership that the election has learned from another server.
func (r *Replica) adopt(committed *ensemble.Membership) {
	r.member.log.Configure(committed)
}

// describe writes the committed membership into its znode. If a transaction has committed
// it, the znode has it already.
func (r *Replica) describe() {
	m := r.member
	if !m.opt.Reconfig {
		return
	}
	now := m.memberships().Committed
	if text, at := r.tree.Described(); now.Version() > int64(at) || text == "" {
		r.tree.Describe(now.String(), now.Version(), r.now.Wall)
	}
}

// named returns the reconfiguration that has ended a term, if one has: it names another
// leader, or gives this server another role.
func (r *Replica) named(all []zab.Reconfigured) *zab.Reconfigured {
	m := r.member
	if len(all) == 0 {
		return nil
	}
	last := &all[len(all)-1]
	s, listed := last.Members.Server(r.opt.ServerID)
	observes := listed && s.Role == ensemble.Observer
	switch {
	case m.leader != nil && last.Leader != r.opt.ServerID,
		m.learner != nil && (last.Leader != m.decision.Vote.Leader || observes != (m.role == peerwire.Observing)):
		return last
	}
	return nil
}

// appoint begins the role that a reconfiguration gives to this server, without an election.
// A server that cannot lead now looks for a leader.
func (r *Replica) appoint(n *zab.Reconfigured) {
	m := r.member
	if m.disabled != "" || r.stall.active() {
		r.look("the membership has changed")
		return
	}
	m.role, m.leaving = peerwire.Looking, false
	r.reconcile()
	m.election.Step(r.now.Mono, election.Appointed{Leader: n.Leader, Zxid: n.Zxid})
}

// reconfigure checks a request on the leader and returns the text of the new membership.
// permitted says that the client may write the znode. An empty text with code OK means
// that nothing is proposed: leadership is transferred first, and the next leader gets the
// request, or the request is postponed (awaits is set).
func (r *Replica) reconfigure(q *wire.ReconfigRequest, permitted bool, z wire.Zxid) (string, wire.Code) {
	m := r.member
	members := m.memberships()
	if p := members.Proposed; p != nil {
		return r.refuseChange(wire.ErrReconfigInProgress, fmt.Errorf("the change to version %x is in progress", p.Version()))
	}
	now := members.Committed
	if q.ConfigID != -1 && q.ConfigID != now.Version() {
		return r.refuseChange(wire.ErrBadVersion, fmt.Errorf("it is based on version %x, and the present version is %x", q.ConfigID, now.Version()))
	}
	c := ensemble.Change{Joining: q.Joining.String, Leaving: q.Leaving.String, VotersMin: m.opt.VotersMin}
	if q.Members.Valid {
		c.Whole = &q.Members.String
	}
	next, err := now.Apply(c, int64(z))
	switch {
	case err != nil:
		return r.refuseChange(wire.ErrBadArguments, err)
	case !m.leader.QuorumOf(next) && permitted && r.now.Mono < m.joinBy():
		r.awaits = next
		return "", wire.OK
	case !m.leader.QuorumOf(next):
		return r.refuseChange(wire.ErrNewConfigNoQuorum, errors.New("the voters of the new membership that follow this leader and are up to date are no quorum of it"))
	case !permitted:
		return r.refuseChange(wire.ErrNoAuth, errors.New("the client may not write /zookeeper/config"))
	case r.resent && !m.leader.Leads(next) && r.transferTo(next):
		return "", wire.OK
	}
	r.observe(Reconfigures{Members: next, Was: now.Version()})
	return next.String(), wire.OK
}

func (r *Replica) refuseChange(code wire.Code, why error) (string, wire.Code) {
	r.observe(ReconfigRefused{Code: code, Why: why.Error()})
	return "", code
}

// postponed is a request that waits on this leader: a reconfiguration that needs servers that
// do not follow it yet, as after a leadership transfer; or a later write of the same session.
type postponed struct {
	next *ensemble.Membership // what the reconfiguration asks for; nil: it is a later write
	in   zab.Input            // the request, if a learner has forwarded it
	conn *conn                // otherwise the connection that holds it, and later writes too
}

// joinMaxMS limits how long after the begin of a term a reconfiguration waits for servers to
// follow the leader, in ms.
const joinMaxMS = 5000

// joinBy returns the Mono time until which a reconfiguration waits for servers to follow this
// leader.
func (m *member) joinBy() int64 { return m.served + min(m.opt.SyncLimit*m.tickMS, joinMaxMS) }

// postpone lets a reconfiguration wait that propose has not taken.
func (r *Replica) postpone(in zab.Input, c *conn) {
	r.member.postponed = append(r.member.postponed, postponed{r.awaits, in, c})
}

// postpones reports whether a request of a connection to this server is postponed.
func (r *Replica) postpones(c *conn) bool {
	return r.member != nil && slices.ContainsFunc(r.member.postponed, func(p postponed) bool { return p.conn == c })
}

// postponesSession reports whether a forwarded request of a session is postponed.
func (r *Replica) postponesSession(id wire.SessionID) bool {
	return slices.ContainsFunc(r.member.postponed, func(p postponed) bool { return p.conn == nil && p.in.Request.Session == id })
}

// dropPostponed drops the postponed requests that learners have forwarded for a session. They came by older connections
// of the session, which has a newer one now. A native learner ends such a connection when the session moves; a ZooKeeper server
// waits for a transaction.
func (r *Replica) dropPostponed(id wire.SessionID) {
	m := r.member
	m.postponed = slices.DeleteFunc(m.postponed, func(p postponed) bool {
		older := p.conn == nil && p.in.Request.Session == id
		if older && !p.in.Native {
			r.proposeError(p.in.Request, wire.ErrSessionMoved)
		}
		return older
	})
}

// postponedUntil returns the Mono time at which takePostponed is due, or Never.
func (r *Replica) postponedUntil() int64 {
	if len(r.member.postponed) == 0 {
		return Never
	}
	return r.member.joinBy()
}

// takePostponed carries out the postponed requests if it is time, or if a quorum of a membership
// that one of them asks for follows this leader. A request may be postponed again. A request whose
// connection has ended is dropped. takePostponed reports whether there were any.
func (r *Replica) takePostponed() bool {
	m := r.member
	due := r.now.Mono >= r.postponedUntil()
	if !due && !slices.ContainsFunc(m.postponed, func(p postponed) bool { return p.next != nil && m.leader.QuorumOf(p.next) }) {
		return false
	}
	all := m.postponed
	m.postponed = nil
	for _, p := range all {
		switch {
		case p.conn == nil && m.leader.Connected(&p.in):
			r.input(p.in)
		case p.conn != nil && !p.conn.ended:
			r.beginHeld(p.conn)
		}
	}
	return true
}

// transferTo begins a leadership transfer to a voter of another membership, and reports
// whether it has begun. It has not if none of them can lead next.
func (r *Replica) transferTo(next *ensemble.Membership) bool {
	l := r.member.leader
	for _, id := range next.Voters() {
		l.Step(r.now.Mono, zab.TransferLeadership{To: id, Planned: true})
		if l.Transferring() {
			return true
		}
	}
	return false
}

// Reconfigures says that this leader proposes another membership.
type Reconfigures struct {
	Members *ensemble.Membership
	Was     int64
}

func (h Reconfigures) String() string {
	return fmt.Sprintf("proposes membership version %x in place of %x: voters %v of %d servers",
		h.Members.Version(), h.Was, h.Members.Voters(), len(h.Members.Servers()))
}

// ReconfigRefused says that this leader has refused a reconfiguration, and why.
type ReconfigRefused struct {
	Code wire.Code
	Why  string
}

func (h ReconfigRefused) String() string { return fmt.Sprintf("refuses a reconfiguration: %s", h.Why) }
