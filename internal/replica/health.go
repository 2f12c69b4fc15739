package replica

import (
	"cmp"
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/zab"
)

// A server can be in a state in which it votes, follows and acknowledges correctly, and yet
// another server should lead: its disk has no room left although its log still has some reserved,
// or its loop does not run again and again. A leader in such a state transfers leadership to the
// best server that can lead next; if there is none, it goes on leading. Votes know nothing of
// this state: if all servers are in it, one of them must still lead.
//
// The state is often the same on several servers, because they have equal disks and equal work.
// So followers tell their leader of it, and a leader does not give way to such a follower, nor
// to a server whose own term has ended badly within avoidMS, unless its own tree was found wrong. Without other faults
// there are in that time at most as many such transfers as servers. After a transfer that has failed, so that
// this server leads again, it waits, twice as long each time, and then prefers another server.

const (
	// lateMS is by how much a tick must be late to count, longer than the lease of a leader.
	lateMS = 500
	// lateTicksMax late ticks within lateWithinMS mean that the loop makes no progress.
	lateTicksMax = 5
	lateWithinMS = 60_000
	// avoidMS is for how long no leader gives way to a server whose term has ended badly, and
	// the longest wait after transfers that have failed. retryMS is the shortest.
	avoidMS = 3_600_000
	retryMS = 10_000
)

// NoRoom (ensemble) says that the disk of this server has no room for another log. LogFull
// follows if a transaction does not fit any more.
type NoRoom struct{}

// Room (ensemble) says that there is room again.
type Room struct{}

func (NoRoom) event() {}
func (Room) event()   {}

// health is what a server knows about its own ability to lead, apart from stall.
type health struct {
	noRoom bool
	late   [lateTicksMax]int64 // Mono times of the last late ticks; 0: none
	next   int                 // where late goes on
	// tried holds the servers to which this server has transferred leadership since it last served under
	// another leader. waits counts the waits after such transfers, and retry is the Mono time at which the last one ends.
	tried map[ensemble.ServerID]bool
	waits int
	retry int64
}

// ticked notes a tick that came gap ms after the one before.
func (h *health) ticked(now, gap, tickMS int64) {
	if gap <= tickMS/4+lateMS {
		return
	}
	h.late[h.next] = now
	h.next = (h.next + 1) % lateTicksMax
}

// reason says why another server should lead; empty if there is no reason.
func (h *health) reason(now int64) string {
	oldest := h.late[h.next]
	switch {
	case h.noRoom:
		return "its disk has no room for another log"
	case oldest > 0 && now-oldest < lateWithinMS:
		return fmt.Sprintf("it has not run for more than %d ms %d times within a minute", lateMS, lateTicksMax)
	}
	return ""
}

// wait begins a wait, unless one is not over.
func (h *health) wait(now int64) {
	if now >= h.retry {
		h.retry = now + doubled(retryMS, h.waits, avoidMS)
		h.waits++
	}
}

// transferred notes a leadership transfer of this server. If nothing was wrong with this server, it does not wait before the next one.
func (h *health) transferred(next *zab.Successor, from ensemble.ServerID, now int64) {
	if next == nil || next.From != from {
		return
	}
	if h.tried == nil {
		h.tried = map[ensemble.ServerID]bool{}
	}
	h.tried[next.Leader] = true
	if next.Avoid {
		h.wait(now)
	}
}

// giveWay transfers leadership if another server should lead and one can.
func (r *Replica) giveWay() {
	m, h := r.member, &r.health
	why := cmp.Or(h.reason(r.now.Mono), r.differs.verdict.why)
	if why == "" || !m.leads() || r.stall.active() || m.leader.Transferring() || r.now.Mono < h.retry {
		return
	}
	to := r.healthier()
	if to == peerwire.NoServer {
		return
	}
	if h.tried[to] { // so were all others that can lead
		h.tried = nil
	}
	h.wait(r.now.Mono)
	r.observe(GivesWay{Server: to, Why: why})
	m.leader.Step(r.now.Mono, zab.TransferLeadership{To: to, Stalled: h.noRoom})
}

// healthier returns the best server that can lead in place of this one: one that was not tried, with the highest
// priority, and of those the one that has most on its disk. A server whose last term has ended badly comes only into
// question if the tree of this one was found wrong, and then behind others. A leader without room may not be able
// to promise the next epoch, so it does not count in the next quorum.
func (r *Replica) healthier() ensemble.ServerID {
	m, priority, wrong := r.member, r.priority(), r.differs.verdict.why != ""
	// rank is lower if the server was not tried, and then if no term of it has ended badly.
	rank := func(id ensemble.ServerID) (n int) {
		if r.health.tried[id] {
			n = 2
		}
		if m.preference.avoids(id, r.now.Mono) {
			n++
		}
		return n
	}
	best := zab.LearnerStatus{Server: peerwire.NoServer}
	for _, k := range m.leader.Learners() {
		if _, err := m.leader.Successor(k.Server, r.health.noRoom); err != nil || !wrong && m.preference.avoids(k.Server, r.now.Mono) {
			continue
		}
		better := cmp.Or(cmp.Compare(rank(best.Server), rank(k.Server)), cmp.Compare(priority(k.Server), priority(best.Server)),
			cmp.Compare(k.Acked, best.Acked), cmp.Compare(k.Server, best.Server)) > 0
		if best.Server == peerwire.NoServer || better {
			best = k
		}
	}
	return best.Server
}

// whyUnfit says why this server should not lead; empty if it may.
func (r *Replica) whyUnfit() string {
	differs := cmp.Or(r.differs.verdict.why, r.differs.why)
	if m := r.member; m != nil && m.learner != nil && m.learner.ComparesTrees() { // the leader knows, and may be the wrong one
		differs = ""
	}
	return cmp.Or(r.stall.reason(), differs, r.health.reason(r.now.Mono))
}

// tellFitness tells the leader of this server when its fitness to lead changes.
func (r *Replica) tellFitness() {
	m := r.member
	if m == nil || m.learner == nil || !m.serving {
		return
	}
	if why := r.whyUnfit(); why != m.told {
		m.told = why
		m.learner.Step(r.now.Mono, zab.Fitness{Why: why})
	}
}

// GivesWay says that this leader transfers leadership because another server should lead.
type GivesWay struct {
	Server ensemble.ServerID
	Why    string
}

func (h GivesWay) String() string {
	return fmt.Sprintf("server %d is to lead in place of this server: %s", h.Server, h.Why)
}
