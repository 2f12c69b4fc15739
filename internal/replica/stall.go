package replica

import (
	"fmt"

	"bellwether/internal/peerwire"
	"bellwether/internal/zab"
)

// DiskStalled: the oldest duty that the driver holds has been unanswered since
// Mono ms Since, which is longer than the driver's bound. Duty says in words
// what it is, for example "fsync of log.100000001". The driver measures and
// decides on the bound; the replica decides what follows from it. The driver
// sends the event once for each stall.
type DiskStalled struct {
	Since int64
	Duty  string
}

// DiskAnswered: the duty that DiskStalled named was answered, and no duty that
// the driver holds is older than the bound.
type DiskAnswered struct{}

func (DiskStalled) event()  {}
func (DiskAnswered) event() {}

// stall is the duty for which the disk has been silent for too long. The zero
// value: there is none.
type stall struct {
	duty  string
	since int64 // Mono
}

func (s stall) active() bool { return s.duty != "" }

// reason says why a server whose disk stalls takes no part in an election.
func (s stall) reason() string {
	if !s.active() {
		return ""
	}
	return "the disk does not answer: " + s.duty
}

// diskStalled takes note of a stall. A server that looks for a leader begins
// anew, as one that cannot be elected. A follower goes on following: what it
// does not acknowledge the others commit.
func (r *Replica) diskStalled(e DiskStalled) {
	if r.stall.active() {
		return
	}
	if e.Duty == "" {
		e.Duty = "a duty of the log writer"
	}
	r.stall = stall{duty: e.Duty, since: e.Since}
	r.happened(StallBegan{Duty: e.Duty, ForMS: r.now.Mono - e.Since})
	r.lookAnew(r.stall.reason())
	if m := r.member; m != nil {
		m.holdBy = min(m.holdBy, r.now.Mono) // connections wait for a shorter time from now on
	}
	r.yield()
}

// diskAnswered ends a stall. A server that looks for a leader stands for
// election again.
func (r *Replica) diskAnswered() {
	if !r.stall.active() {
		return
	}
	s := r.stall
	r.stall = stall{}
	r.happened(StallEnded{Duty: s.duty, AfterMS: r.now.Mono - s.since})
	r.lookAnew("the disk has answered")
}

// lookAnew begins the election anew where one runs. It is the same time without
// a leader.
func (r *Replica) lookAnew(why string) {
	m := r.member
	if m == nil || m.role != peerwire.Looking {
		return
	}
	since := m.readers.since
	r.look(why)
	m.readers.since = since
}

// yield ends the role of a leader whose disk does not answer. One that serves
// transfers leadership, as long as the others can do without it; it asks this
// again at each tick. While they cannot, nobody could lead in its place: it goes
// on, and what it cannot commit waits for its disk.
func (r *Replica) yield() {
	m := r.member
	if m == nil || m.leader == nil || !r.stall.active() {
		return
	}
	switch {
	case !m.serving:
		r.leave(r.stall.reason())
	case m.leader.HandingOver() || !m.leader.Spare():
	default:
		if _, err := m.leader.Successor(peerwire.NoServer, true); err != nil {
			r.leave(r.stall.reason())
			return
		}
		m.leader.Step(r.now.Mono, zab.HandOver{To: peerwire.NoServer, Stalled: true})
	}
}

// StallBegan: the disk has not answered a duty within the driver's bound.
type StallBegan struct {
	Duty  string
	ForMS int64
}

func (h StallBegan) String() string {
	return fmt.Sprintf("the disk has not answered for %d ms: %s; until it does, this server is no candidate for leader and acknowledges nothing", h.ForMS, h.Duty)
}

// StallEnded: the disk has answered the duty that was late.
type StallEnded struct {
	Duty    string
	AfterMS int64
}

func (h StallEnded) String() string {
	return fmt.Sprintf("the disk has answered after %d ms: %s; this server takes full part again", h.AfterMS, h.Duty)
}
