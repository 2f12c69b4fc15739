package replica

import (
	"fmt"

	"bellwether/internal/election"
	"bellwether/internal/peerwire"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// look starts an election, unless this server is disabled.
func (r *Replica) look(why string) {
	m := r.member
	m.role, m.leaving, m.readers.since = peerwire.Looking, false, r.now.Mono
	if m.disabled != "" {
		return
	}
	e := election.Look{Zxid: m.claims(), Epoch: m.current, Initialized: m.opt.Initialized, Why: why,
		Abstains: r.stall.active(), Failed: m.failedCandidates(r.now.Mono)}
	if m.opt.Unknown && m.log.Last() == 0 && m.current == 0 {
		e.Zxid = election.NoHistory
	}
	m.election.Step(r.now.Mono, e)
}

// claims returns the zxid that this server's votes claim as the end of its history. A
// compatible leader, and learners to which it sent a snapshot, claim zxid 0 of their
// epoch until its first transaction. A native server that has served under such a leader
// has the same history, however it received it, and claims the same zxid.
func (m *member) claims() wire.Zxid {
	if m.compatible != m.current {
		return m.log.Last()
	}
	return max(m.log.Last(), wire.MakeZxid(m.compatible, 0))
}

// stepVote passes an event to the election. A leader also learns from a notification
// which epoch the history of a looking server has reached. It uses every vote for the
// sender itself. It uses a vote for another server only if the epoch of the vote is not
// later than the leader's.
func (r *Replica) stepVote(e election.Event) {
	m := r.member
	m.election.Step(r.now.Mono, e)
	m.masters.heard(e)
	h, heard := e.(election.Heard)
	if n := &h.Notification; heard && m.leader != nil && n.State == peerwire.Looking &&
		(n.Leader == h.From || n.PeerEpoch <= m.leader.Epoch()) {
		m.step(r.now.Mono, zab.Looks{Server: h.From, Current: max(n.PeerEpoch, 0)})
	}
}

// electionReady takes the duties of the election and reports whether the role may have
// changed.
func (r *Replica) electionReady() bool {
	m := r.member
	rd := m.election.Ready()
	m.wakeElection = rd.Wake
	if m.disabled == "" { // a disabled server votes for nobody and has no role to report
		m.ready.Votes = append(m.ready.Votes, rd.Send...)
	}
	for _, h := range rd.Observations {
		r.observe(h)
	}
	if rd.Adopt != nil {
		r.adopt(rd.Adopt)
	}
	if rd.Decision != nil {
		r.take(*rd.Decision)
	}
	if rd.GiveUp != "" && m.role != peerwire.Looking {
		r.leave(rd.GiveUp)
	}
	return rd.Decision != nil || rd.GiveUp != "" || rd.Adopt != nil
}

// take enters the role that an election has decided.
func (r *Replica) take(d election.Decision) {
	m := r.member
	if m.disabled != "" {
		return
	}
	m.masters.leader = m.masters.leader && d.Vote.Leader == m.decision.Vote.Leader
	m.role, m.decision, m.decided = d.State, d, r.now.Mono
	m.masters.at = peerwire.NoServer
	r.noteJoining()
	if d.State == peerwire.Leading {
		m.leader = zab.NewLeader(r.now.Mono, zab.LeaderOptions{
			TermStart: r.terms(), CompatibleOnly: m.opt.CompatibleOnly, NativeOnly: r.opt.Secrets.nativeOnly(), HeartbeatMS: m.opt.HeartbeatMS, LeaseMS: m.opt.LeaseMS,
			Above: m.above, Claims: m.claims(), Tried: r.health.tried, DiskLog: m.opt.DiskLog, CounterMax: m.opt.CounterMax,
		}, m.log)
	}
}

// terms returns the parameters with which the leader or learner of a term starts.
func (r *Replica) terms() zab.TermStart {
	m := r.member
	discover := int64(0) // no limit if no other server could be elected
	if m.decision.Spare {
		discover = m.candidateTimeout(m.decision.Vote.Leader, r.now.Mono)
	}
	members := m.memberships()
	return zab.TermStart{
		ID: r.opt.ServerID, Accepted: m.accepted, Current: m.current, Generation: m.generation,
		Committed: members.Committed, LastSeen: members.Proposed,
		TickMS: r.opt.TickMS, InitLimit: m.opt.InitLimit, SyncLimit: m.opt.SyncLimit,
		DiscoverMS: discover,
	}
}

// linked starts the learner of a term when the leader is connected.
func (r *Replica) linked(e Linked) {
	m := r.member
	learns := m.role == peerwire.Following || m.role == peerwire.Observing
	if !learns || m.learner != nil || m.disabled != "" || e.Server != m.master() {
		m.ready.Close = append(m.ready.Close, e.Link)
		return
	}
	m.election.Step(r.now.Mono, election.Linked{})
	m.link = e.Link
	m.learner = zab.NewLearner(r.now.Mono, zab.LearnerOptions{
		TermStart: r.terms(), Link: e.Link, Leader: m.decision.Vote.Leader, Elected: m.decision.Vote.Zxid, Master: e.Server, Observer: m.role == peerwire.Observing || m.leaving, CompatibleOnly: m.opt.CompatibleOnly, NativeOnly: r.opt.Secrets.nativeOnly(), Barred: m.decision.Barred, Reconfig: m.opt.Reconfig,
		ServeObservers: m.opt.ObserverMasters && m.role == peerwire.Following, DiskLog: m.opt.DiskLog,
	}, m.log)
}

// leave ends the current role and starts an election. The history of the next leader
// decides whether the proposals that are not committed take effect. Their clients get no
// answer before that.
func (r *Replica) leave(why string) {
	m := r.member
	if m.learner != nil || m.leader != nil {
		m.step(r.now.Mono, zab.Leave{Why: why})
		r.collect(m.machineReady())
	}
	r.ended(why, nil, nil)
}

// ended deals with the end of a term. next is set if the leader has transferred
// leadership, and named if a reconfiguration has ended the term.
func (r *Replica) ended(why string, next *zab.Successor, named *zab.Reconfigured) {
	if named == nil {
		r.health.transferred(next, r.opt.ServerID, r.now.Mono)
		r.failedTerm(why)
		r.wrongTreeEnds(next)
		r.member.noteEnd(next, r.now.Mono)
	}
	r.suspend()
	r.reset()
	r.tree.Discard()
	switch {
	case named != nil:
		r.appoint(named)
	case next != nil && r.member.disabled == "":
		r.succeed(next)
	default:
		r.look(why)
	}
}

// machineReady returns the Ready of the leader or learner of this term.
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

// inputsMax is the number of inputs of learners that are handled before Yield is called.
// Handlers that take long call Yield themselves.
const inputsMax = 16

// zabReady takes the duties of Zab and reports whether it must be called again.
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
	if rd.Again {
		r.joinAgain()
		return true
	}
	if rd.Silent {
		r.silentLeader(rd.GiveUp)
	}
	if rd.GiveUp != "" {
		r.ended(rd.GiveUp, rd.Successor, r.named(rd.Reconfigured))
		return true
	}
	return len(rd.Inputs) > 0
}

// collect adds the duties of a zab.Ready to the next Ready and queues its effects.
func (r *Replica) collect(rd zab.Ready) {
	m := r.member
	r.duties(&rd)
	m.above = max(m.above, rd.Above)
	m.ready.Send = append(m.ready.Send, rd.Send...)
	if m.ready.HeartbeatDue == 0 {
		m.ready.HeartbeatDue = rd.HeartbeatDue
	}
	m.ready.Close = append(m.ready.Close, rd.Close...)
	m.ready.ReadLog = append(m.ready.ReadLog, rd.ReadLog...)
	for _, o := range rd.TreeOrders {
		r.treeOrdered(o)
	}
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
	for _, h := range rd.Observations {
		r.observe(h)
	}
}

// duties adds the disk duties of a zab.Ready to the next Ready.
func (r *Replica) duties(rd *zab.Ready) {
	m := r.member
	d := Duty{
		SaveAccepted: rd.SaveAccepted, Truncate: rd.Truncate, Install: rd.Install, Append: rd.Append,
		Sync: rd.Sync, SaveCurrent: rd.SaveCurrent, Generation: rd.Generation,
		Rebuild: rd.Rebuild || rd.Truncate != nil && rd.Truncate.Rebuild,
	}
	if rd.LastSeen != nil && rd.LastSeen.Version() > m.memberships().Committed.Version() { // otherwise it is committed by now
		d.Proposed = rd.LastSeen
	}
	m.accepted = max(m.accepted, d.SaveAccepted)
	m.current = max(m.current, d.SaveCurrent)
	if d.Truncate != nil && d.Truncate.Rebuild {
		r.observe(Undone{d.Truncate.Zxid, r.tree.LastZxid()})
	}
	if d.SaveAccepted != 0 || d.Truncate != nil || d.Rebuild || d.Install != nil || d.Proposed != nil || len(d.Append) > 0 || d.Sync || d.SaveCurrent != 0 {
		m.ready.Duties = append(m.ready.Duties, d)
	}
}

// Undone says that transactions which the leader does not have were removed from the log
// and the tree.
type Undone struct{ To, From wire.Zxid }

func (h Undone) String() string {
	return fmt.Sprintf("the log is cut back from %v to %v, and the tree is rebuilt from the disk", h.From, h.To)
}

// serve starts to serve clients in a term.
func (r *Replica) serve(e *zab.Established) {
	m := r.member
	before := m.epoch
	m.serving, m.served, m.epoch, m.readers.shown = true, r.now.Mono, e.Epoch, true
	m.rejoined = m.learner != nil && (e.Epoch == before || e.Epoch == m.opt.Current)
	r.describe()
	m.compatible = 0
	if m.learner != nil && !m.learner.Native() && !m.opt.CompatibleOnly {
		m.compatible = e.Epoch
	}
	m.failed, m.joining = nil, Never
	m.masters.tries, m.masters.rounds, m.masters.leader = 0, 0, false
	m.noteServes(e.Epoch)
	if e.Epoch != before {
		r.differs.asks = 0
	}
	r.startComparing(e)
	if m.learner != nil {
		r.health.tried, r.health.waits, r.health.retry = nil, 0, 0
	}
	m.election.Step(r.now.Mono, election.Established{Epoch: e.Epoch})
	r.tellFitness()
	r.tellTree()
	r.answerTree() // the question can have come with UPTODATE
	r.locals.renew(r.now.Mono)
	r.settleTerm(e.Epoch)
	r.track()
	r.grace = r.now.Mono
	r.sweep.due, r.sweep.next = nil, r.now.Mono+r.opt.ContainerCheckMS
	m.unsettled = true
	if m.refusesClients() {
		for _, c := range r.connections() {
			r.end(c)
		}
		return
	}
	r.resumeKept(before)
	r.admitHeld()
}
