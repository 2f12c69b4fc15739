package replica

import (
	"fmt"

	"bellwether/internal/election"
	"bellwether/internal/peerwire"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// look begins an election, unless the disk has no room.
func (r *Replica) look(why string) {
	m := r.member
	m.role, m.leaving, m.readers.since = peerwire.Looking, false, r.now.Mono
	if m.resting != "" {
		return
	}
	e := election.Look{Zxid: m.claims(), Epoch: m.current, Initialized: m.opt.Initialized, Why: why,
		Abstains: r.stall.active(), Failed: m.failedCandidates(r.now.Mono)}
	if m.opt.Unknown && m.log.Last() == 0 && m.current == 0 {
		e.Zxid = election.NoHistory
	}
	m.election.Step(r.now.Mono, e)
}

// claims is the end of the history that this server's votes claim. ZooKeeper's
// leaders, and learners to which they sent a snapshot, claim the zero of their
// epoch until its first transaction. A server of ours that has served under such
// a leader has the same history, whichever way it got it, and claims the same.
func (m *member) claims() wire.Zxid {
	if m.foreign != m.current {
		return m.log.Last()
	}
	return max(m.log.Last(), wire.MakeZxid(m.foreign, 0))
}

// stepVote takes what the election hears. A leader learns from it how far the
// history of a server that looks reaches: its own vote says so, and a vote that
// it took from another is no worse.
func (r *Replica) stepVote(e election.Event) {
	m := r.member
	m.election.Step(r.now.Mono, e)
	h, heard := e.(election.Heard)
	if n := &h.Notification; heard && m.leader != nil && n.State == peerwire.Looking &&
		(n.Leader == h.From || n.PeerEpoch <= m.leader.Epoch()) {
		m.step(r.now.Mono, zab.Looks{Server: h.From, Current: max(n.PeerEpoch, 0)})
	}
}

// electionReady takes what the election hands out; false if that was nothing.
func (r *Replica) electionReady() bool {
	m := r.member
	rd := m.election.Ready()
	m.wakeElection = rd.Wake
	if m.resting == "" { // else it is for nobody, and has no role to tell of
		m.ready.Votes = append(m.ready.Votes, rd.Send...)
	}
	for _, h := range rd.Happenings {
		r.happened(h)
	}
	if rd.Decision != nil {
		r.take(*rd.Decision)
	}
	if rd.GiveUp != "" && m.role != peerwire.Looking {
		r.leave(rd.GiveUp)
	}
	return rd.Decision != nil || rd.GiveUp != ""
}

// take enters the role of a decision.
func (r *Replica) take(d election.Decision) {
	m := r.member
	if m.resting != "" {
		return
	}
	m.role, m.decision, m.decided = d.State, d, r.now.Mono
	if d.State == peerwire.Leading {
		m.leader = zab.NewLeader(r.now.Mono, zab.LeaderOptions{
			Terms: r.terms(), Plain: m.opt.Plain, BeatMS: m.opt.BeatMS, LeaseMS: m.opt.LeaseMS,
			Above: m.above, Claims: m.claims(), DiskLog: m.opt.DiskLog, CounterMax: m.opt.CounterMax,
		}, m.log)
	}
}

// terms are what a role begins with.
func (r *Replica) terms() zab.Terms {
	m := r.member
	discover := int64(0) // as long as it takes where nobody else could be elected
	if m.decision.Spare {
		discover = m.patience(m.decision.Vote.Leader, r.now.Mono)
	}
	return zab.Terms{
		ID: r.opt.ServerID, Accepted: m.accepted, Current: m.current, Generation: m.generation, Committed: m.opt.Members,
		TickMS: r.opt.TickMS, InitLimit: m.opt.InitLimit, SyncLimit: m.opt.SyncLimit,
		DiscoverMS: discover,
	}
}

// linked: the leader is connected, so the term of a learner begins.
func (r *Replica) linked(e Linked) {
	m := r.member
	learns := m.role == peerwire.Following || m.role == peerwire.Observing
	if !learns || m.learner != nil || e.Leader != m.decision.Vote.Leader {
		m.ready.Close = append(m.ready.Close, e.Link)
		return
	}
	m.election.Step(r.now.Mono, election.Linked{})
	m.link = e.Link
	m.learner = zab.NewLearner(r.now.Mono, zab.LearnerOptions{
		Terms: r.terms(), Link: e.Link, Leader: e.Leader, Observer: m.role == peerwire.Observing || m.leaving, Plain: m.opt.Plain,
	}, m.log)
}

// leave ends a role and looks again. What was proposed and not committed is
// for the next leader to decide; who waits for it is not told.
func (r *Replica) leave(why string) {
	m := r.member
	if m.learner != nil || m.leader != nil {
		m.step(r.now.Mono, zab.Leave{Why: why})
		r.collect(m.machineReady())
	}
	r.ended(why, nil)
}

// ended: the term is over. Who has it handed over has named the next leader.
func (r *Replica) ended(why string, next *zab.Successor) {
	r.failedTerm(why)
	r.suspend()
	r.reset()
	r.tree.Discard()
	if next != nil && r.member.resting == "" {
		r.succeed(next)
	} else {
		r.look(why)
	}
}

// machineReady is the Ready of the term's machine.
func (m *member) machineReady() (rd zab.Ready) {
	rd.Wake = Never
	switch {
	case m.leader != nil:
		rd = m.leader.Ready()
		m.generation = m.leader.Generation()
	case m.learner != nil:
		rd = m.learner.Ready()
		m.generation = m.learner.Generation()
	}
	m.wakeZab = rd.Wake
	return rd
}

// inputsMax is how many inputs of learners are taken before Yield is called. What
// takes long among them yields by itself.
const inputsMax = 16

// zabReady takes what Zab hands out; false if nothing of it needs another look.
func (r *Replica) zabReady() bool {
	m := r.member
	rd := m.machineReady()
	r.collect(rd)
	for i, in := range rd.Inputs {
		if i%inputsMax == inputsMax-1 && r.opt.Yield != nil {
			r.opt.Yield()
		}
		r.input(in)
	}
	r.release()
	if rd.GiveUp != "" {
		r.ended(rd.GiveUp, rd.Successor)
		return true
	}
	return len(rd.Inputs) > 0
}

// collect passes on the duties of a Ready and queues its effects.
func (r *Replica) collect(rd zab.Ready) {
	m := r.member
	r.duties(&rd)
	m.above = max(m.above, rd.Above)
	m.ready.Send = append(m.ready.Send, rd.Send...)
	if m.ready.BeatDue == 0 {
		m.ready.BeatDue = rd.BeatDue
	}
	m.ready.Close = append(m.ready.Close, rd.Close...)
	m.ready.ReadLog = append(m.ready.ReadLog, rd.ReadLog...)
	for _, t := range rd.Commit {
		m.effects.Push(effect{txn: t})
	}
	if m.ready.Committed == nil {
		m.ready.Committed = rd.Commit
	} else {
		m.ready.Committed = append(m.ready.Committed, rd.Commit...)
	}
	if rd.Joined {
		m.election.Step(r.now.Mono, election.Joined{})
	}
	if rd.Established != nil {
		m.effects.Push(effect{established: rd.Established, term: m.term})
	}
	for _, token := range rd.Syncs {
		m.effects.Push(effect{sync: token, term: m.term})
	}
	for _, a := range rd.Revalidated {
		r.revalidated(a)
	}
	if p := m.pings.First(); p != nil && rd.Confirmed > 0 && rd.Confirmed >= p.token {
		m.effects.Push(effect{confirmed: rd.Confirmed, term: m.term})
	}
	for _, h := range rd.Happenings {
		r.happened(h)
	}
}

// duties are those of the disk.
func (r *Replica) duties(rd *zab.Ready) {
	m := r.member
	d := Duty{
		SaveAccepted: rd.SaveAccepted, Truncate: rd.Truncate, Install: rd.Install, Append: rd.Append,
		Sync: rd.Sync, SaveCurrent: rd.SaveCurrent, Generation: rd.Generation,
		Rebuild: rd.Rebuild || rd.Truncate != nil && rd.Truncate.Rebuild,
	}
	m.accepted = max(m.accepted, d.SaveAccepted)
	m.current = max(m.current, d.SaveCurrent)
	if d.Truncate != nil && d.Truncate.Rebuild {
		r.happened(Undone{d.Truncate.Zxid, r.tree.LastZxid()})
	}
	if d.SaveAccepted != 0 || d.Truncate != nil || d.Rebuild || d.Install != nil || len(d.Append) > 0 || d.Sync || d.SaveCurrent != 0 {
		m.ready.Duties = append(m.ready.Duties, d)
	}
}

// Undone: what a leader never had is taken out of the tree.
type Undone struct{ To, From wire.Zxid }

func (h Undone) String() string {
	return fmt.Sprintf("the log is cut back from %v to %v, and the tree is made anew from the disk", h.From, h.To)
}

// serve begins to serve clients in a term.
func (r *Replica) serve(e *zab.Established) {
	m := r.member
	before := m.epoch
	m.serving, m.epoch, m.readers.shown = true, e.Epoch, true
	m.foreign = 0
	if m.learner != nil && !m.learner.Ours() && !m.opt.Plain {
		m.foreign = e.Epoch
	}
	m.failed = nil
	m.election.Step(r.now.Mono, election.Established{Epoch: e.Epoch})
	r.locals.stay(r.now.Mono)
	r.track()
	r.grace = r.now.Mono
	r.sweep.due, r.sweep.next = nil, r.now.Mono+r.opt.ContainerCheckMS
	m.unsettled = true
	if m.aloof() {
		for _, c := range r.connections() {
			r.end(c)
		}
		return
	}
	r.resumeKept(before)
	r.admitHeld()
}
