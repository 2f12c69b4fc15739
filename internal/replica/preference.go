package replica

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// A server can be preferred as leader by its priority (Member.Priorities), or by the znode
// tree.PreferredLeaderPath, which names one server and comes before all priorities. Votes know
// nothing of either. A leader that serves transfers leadership to a server with a higher priority
// once that server has been fit to lead for some time, without interruption (zab.Leader.FitMS),
// and has just acknowledged a write. So nothing happens while there are no writes.
//
// Each transfer raises the priority of the leader, so without faults there are at most as many
// transfers as there are priorities. A server that is preferred but leads badly must not get
// leadership back again and again: after its term has ended otherwise than by a planned stop
// or by another preference, the time for which it must be fit is avoidFactor times as long. A
// transfer that did not make the preferred server the leader doubles the time, up to the same
// bound.
const (
	preferMS    = 10_000
	avoidFactor = 360 // with preferMS: an hour
)

// preference is what a server remembers about preferred servers. It is kept across terms, and
// lost when the server restarts.
type preference struct {
	// failed counts the transfers to a server, since it last led, that this server has begun.
	failed map[ensemble.ServerID]int
	// avoid holds the servers whose last term ended badly.
	avoid map[ensemble.ServerID]badEnd
}

// badEnd is the end of a term otherwise than by a planned stop or by a preference.
type badEnd struct {
	epoch wire.Epoch // of that term
	at    int64      // Mono
}

// avoids reports whether the last term of a server ended badly within avoidMS.
func (p *preference) avoids(id ensemble.ServerID, now int64) bool {
	bad, ok := p.avoid[id]
	return ok && now-bad.at < avoidMS
}

func newPreference() preference {
	return preference{failed: map[ensemble.ServerID]int{}, avoid: map[ensemble.ServerID]badEnd{}}
}

// namedPriority is the priority of the server that the znode names, above every other one.
const namedPriority = math.MaxInt

// priority returns a function that returns the priorities of servers.
func (r *Replica) priority() func(ensemble.ServerID) int {
	priorities := r.member.opt.Priorities
	text, named := r.tree.PreferredLeader()
	id, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if !named || err != nil {
		return func(of ensemble.ServerID) int { return priorities[of] }
	}
	return func(of ensemble.ServerID) int {
		if of == ensemble.ServerID(id) {
			return namedPriority
		}
		return priorities[of]
	}
}

// preferred returns the voters with a higher priority than this server, highest first.
func (r *Replica) preferred() []ensemble.ServerID {
	var ids []ensemble.ServerID
	priority := r.priority()
	for _, id := range r.member.memberships().Committed.Voters() {
		if priority(id) > priority(r.opt.ServerID) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b ensemble.ServerID) int {
		return cmp.Or(cmp.Compare(priority(b), priority(a)), cmp.Compare(a, b))
	})
	return ids
}

// fitMS returns for how long a server must have been fit before leadership is transferred to it.
func (m *member) fitMS(id ensemble.ServerID) int64 {
	longest := m.opt.PreferMS * avoidFactor
	if _, avoid := m.preference.avoid[id]; avoid {
		return longest
	}
	return doubled(m.opt.PreferMS, m.preference.failed[id], longest)
}

// noteEnd remembers the leader of a term that ends now, if the term served and did not end as
// planned. next is set if the leader has transferred leadership.
func (m *member) noteEnd(next *zab.Successor, now int64) {
	leader := m.decision.Vote.Leader
	switch {
	case !m.serving || m.learner == nil:
	case next != nil && !next.Avoid:
		delete(m.preference.avoid, leader)
	default:
		m.preference.avoid[leader] = badEnd{m.epoch, now}
	}
}

// noteServes corrects what is remembered when a term begins to serve. A leader that still leads
// in the same epoch has not ended its term: only this server had left it.
func (m *member) noteServes(epoch wire.Epoch) {
	leader := m.decision.Vote.Leader
	delete(m.preference.failed, leader)
	if m.preference.avoid[leader].epoch == epoch {
		delete(m.preference.avoid, leader)
	}
}

// prefers returns the server with the highest priority above this leader's that can lead next,
// and for how long it must have been fit; NoServer if there is none or this server does not
// lead.
func (r *Replica) prefers() (id ensemble.ServerID, fitMS int64) {
	m := r.member
	if !m.leads() {
		return peerwire.NoServer, 0
	}
	for _, id := range r.preferred() {
		if m.leader.FitMS(id) > 0 {
			return id, m.fitMS(id)
		}
	}
	return peerwire.NoServer, 0
}

// prefer transfers leadership to a server with a higher priority. The leader does nothing while
// its disk stalls, because then it gives up leadership in any case (yield).
func (r *Replica) prefer() {
	m := r.member
	if !m.leads() || r.stall.active() || m.leader.Transferring() {
		return
	}
	for _, id := range r.preferred() {
		fit := m.leader.FitMS(id)
		if fit < m.fitMS(id) || !m.leader.Writes(id) {
			continue
		}
		if _, err := m.leader.Successor(id, false); err != nil {
			continue
		}
		m.preference.failed[id]++
		priority := r.priority()
		r.observe(Prefers{Server: id, Priority: priority(id), Own: priority(r.opt.ServerID), FitMS: fit})
		m.leader.Step(r.now.Mono, zab.TransferLeadership{To: id, Planned: true})
		return
	}
}

// Prefers says that this leader transfers leadership because of a priority. Priority is
// namedPriority if an operator has named the server.
type Prefers struct {
	Server        ensemble.ServerID
	Priority, Own int
	FitMS         int64
}

func (h Prefers) String() string {
	if h.Priority == namedPriority {
		return fmt.Sprintf("server %d is preferred as leader: an operator has named it, and it has kept up for %d ms", h.Server, h.FitMS)
	}
	return fmt.Sprintf("server %d is preferred as leader: its priority is %d, that of this server is %d, and it has kept up for %d ms", h.Server, h.Priority, h.Own, h.FitMS)
}
