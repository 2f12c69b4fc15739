package replica

import (
	"fmt"

	"bellwether/internal/peerwire"
	"bellwether/internal/zab"
)

// DiskStalled says that the oldest duty that the driver holds has been unanswered since
// Mono time Since, which is longer than the driver's limit. Duty describes it in words,
// for example "fsync of log.100000001". The driver measures the time and decides on the
// limit; the replica decides what to do. The driver sends the event once for each stall.
type DiskStalled struct {
	Since int64
	Duty  string
}

// DiskAnswered says that the duty that DiskStalled named was answered and that no duty
// that the driver holds is older than the limit.
type DiskAnswered struct{}

func (DiskStalled) event()  {}
func (DiskAnswered) event() {}

// stall is the duty that the disk has not answered in time. The zero value means that
// there is none.
type stall struct {
	duty  string
	since int64 // Mono
}

func (s stall) active() bool { return s.duty != "" }

// reason returns why this server takes no part in an election, or "".
func (s stall) reason() string {
	if !s.active() {
		return ""
	}
	return "the disk does not answer: " + s.duty
}

// diskStalled records a stall. A server that looks for a leader restarts its election
// without being a candidate. A follower keeps following: the others can commit what it
// does not acknowledge.
func (r *Replica) diskStalled(e DiskStalled) {
	if r.stall.active() {
		return
	}
	if e.Duty == "" {
		e.Duty = "a task of the log writer"
	}
	r.stall = stall{duty: e.Duty, since: e.Since}
	r.observe(StallBegan{Duty: e.Duty, ForMS: r.now.Mono - e.Since})
	r.lookAnew(r.stall.reason())
	if m := r.member; m != nil {
		m.holdBy = min(m.holdBy, r.now.Mono) // from now on connections wait for a shorter time
	}
	r.yield()
	r.tellFitness()
}

// diskAnswered ends a stall. A server that looks for a leader becomes a candidate again.
func (r *Replica) diskAnswered() {
	if !r.stall.active() {
		return
	}
	s := r.stall
	r.stall = stall{}
	r.observe(StallEnded{Duty: s.duty, AfterMS: r.now.Mono - s.since})
	r.lookAnew("the disk has answered")
}

// lookAnew restarts the election if one is running. It keeps the time since which there is
// no leader.
func (r *Replica) lookAnew(why string) {
	m := r.member
	if m == nil || m.role != peerwire.Looking {
		return
	}
	since := m.readers.since
	r.look(why)
	m.readers.since = since
}

// yield ends the role of a leader whose disk does not answer. A leader that serves
// transfers leadership if the others have a quorum without it; it checks that again at
// each tick. If they have none, no other server could lead. Then it goes on leading, and
// its proposals wait for its disk.
func (r *Replica) yield() {
	m := r.member
	if m == nil || m.leader == nil || !r.stall.active() {
		return
	}
	switch {
	case !m.serving:
		r.leave(r.stall.reason())
	case m.leader.Transferring() || !m.leader.Dispensable():
	default:
		if _, err := m.leader.Successor(peerwire.NoServer, true); err != nil {
			r.leave(r.stall.reason())
			return
		}
		m.leader.Step(r.now.Mono, zab.TransferLeadership{To: peerwire.NoServer, Stalled: true})
	}
}

// StallBegan says that the disk has not answered a duty within the driver's limit.
type StallBegan struct {
	Duty  string
	ForMS int64
}

func (h StallBegan) String() string {
	return fmt.Sprintf("the disk has not answered for %d ms: %s; until it does, this server is no candidate for leader and acknowledges nothing", h.ForMS, h.Duty)
}

// StallEnded says that the disk has answered the late duty.
type StallEnded struct {
	Duty    string
	AfterMS int64
}

func (h StallEnded) String() string {
	return fmt.Sprintf("the disk has answered after %d ms: %s; this server is a full member again", h.AfterMS, h.Duty)
}
