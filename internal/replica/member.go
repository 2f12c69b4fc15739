package replica

import (
	"fmt"

	"bellwether/internal/election"
	"bellwether/internal/ensemble"
	"bellwether/internal/fifo"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// Member are the options of a server of an ensemble, and what its disk holds.
type Member struct {
	Members *ensemble.Membership
	// Log is what the disk holds; the tree is at its Applied.
	Log               *zab.Log
	Accepted, Current wire.Epoch
	// Unknown: nothing may be presumed about what this server once had; it
	// only joins a leader that there is. Initialized: an operator's marker says
	// that an empty log is the truth.
	Unknown, Initialized bool
	// InitLimit and SyncLimit are in ticks; 0: 10 and 5.
	InitLimit, SyncLimit int64
	// LeaseMS and BeatMS are those of a leader of our kind; 0: 500 and 100.
	LeaseMS, BeatMS int64
	// Plain: it speaks to all as ZooKeeper does.
	Plain bool
	// KeepClients lets client connections outlive a change of leaders between
	// servers of our kind (keep.go).
	KeepClients bool
	// ReadOnly lets clients that accept it read from a server that has been
	// without a leader for a while (readonly.go).
	ReadOnly bool
	// ReadUncommitted lets such a server, also one that has not served in a term
	// since its start, show its whole log, as ZooKeeper does.
	ReadUncommitted bool
	// LocalSessions: new sessions live on the server alone that made them.
	// UpgradeLocal: one that asks for an ephemeral becomes everybody's.
	LocalSessions, UpgradeLocal bool
	// Aloof: while it leads it takes no clients.
	Aloof bool
	// DiskLog: Ready.ReadLog can be answered.
	DiskLog bool
	// CounterMax is the last zxid counter of an epoch; 0: the last but one there is.
	CounterMax uint32
}

// member is a server's part in its ensemble.
type member struct {
	opt      Member
	tickMS   int64
	election *election.Election
	log      *zab.Log
	// accepted and current are the epochs of the last duties handed out; saved
	// are those that are durable.
	accepted, current wire.Epoch
	saved             struct{ accepted, current wire.Epoch }
	generation        uint64

	role     peerwire.ServerState
	decision election.Decision
	leader   *zab.Leader
	learner  *zab.Learner
	serving  bool       // clients are served
	leaving  bool       // it has handed over, and is about to stop
	decided  int64      // Mono of the decision
	link     zab.LinkID // of the learner
	redial   redial
	failed   failedTerms
	epoch    wire.Epoch
	foreign  wire.Epoch // the same where ZooKeeper led, else 0
	above    wire.Epoch // the next epoch that this server brings about is later
	term     uint64     // counts the terms, lived or tried
	resting  string     // why it takes no part, empty if it does
	readers  readOnly

	wakeElection, wakeZab int64

	effects   fifo.Queue[effect]
	held      []*conn // that wait for a leader, or did
	holdBy    int64   // Mono until which no connection has waited too long for one
	homes     map[wire.SessionID]ensemble.ServerID
	gone      gone
	asking    map[wire.SessionID][]*conn // that wait for the leader's word
	syncs     map[uint64]*conn           // by token
	token     uint64
	pings     fifo.Queue[heldPing]
	touch     uint64
	unsettled bool
	ready     Ready
}

// effect is what a commit brings about, in order.
type effect struct {
	txn         *record.Txn
	sync        uint64
	confirmed   uint64 // touches
	established *zab.Established
	term        uint64 // in which the last three count
}

// join begins the life of a server of an ensemble: it looks for a leader.
func (r *Replica) join() {
	o := *r.opt.Member
	set := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
	set(&o.InitLimit, 10)
	set(&o.SyncLimit, 5)
	m := &member{opt: o, tickMS: r.opt.TickMS, log: o.Log, accepted: o.Accepted, current: o.Current, holdBy: Never}
	m.saved.accepted, m.saved.current = o.Accepted, o.Current
	m.election = election.New(election.Options{ID: r.opt.ServerID, Committed: o.Members})
	r.member = m
	r.reset()
	r.look("started")
}

// reset forgets what belongs to a term.
func (r *Replica) reset() {
	m := r.member
	m.leader, m.learner, m.serving, m.wakeZab = nil, nil, false, Never
	m.redial = redial{}
	m.term++
	m.homes, m.gone = map[wire.SessionID]ensemble.ServerID{}, gone{}
	m.asking, m.syncs = map[wire.SessionID][]*conn{}, map[uint64]*conn{}
	r.creating, r.ending = map[wire.SessionID]*conn{}, map[wire.SessionID]bool{}
}

// leads reports whether this server decides what is proposed.
func (m *member) leads() bool { return m.leader != nil && m.serving }

// aloof reports whether clients have to go elsewhere.
func (m *member) aloof() bool { return m.opt.Aloof && m.leads() }

// ours reports whether the leader is of our kind.
func (m *member) ours() bool {
	return !m.opt.Plain && (m.leader != nil || m.learner != nil && m.learner.Ours())
}

// leaseMS is D of the lease, 0 where nothing can be said of it.
func (m *member) leaseMS() int64 {
	switch {
	case m.opt.Plain:
		return 0
	case m.learner != nil:
		return m.learner.LeaseMS()
	case m.leader != nil:
		return m.leader.LeaseMS()
	}
	return 0
}

// stepMember takes what only a server of an ensemble hears of.
func (r *Replica) stepMember(e Event) {
	m := r.member
	switch e := e.(type) {
	case Vote:
		r.stepVote(e.Event)
	case Zab:
		r.stepZab(e.Event)
	case Synced:
		r.stepZab(zab.Synced{Zxid: e.Zxid, Generation: e.Generation})
	case Linked:
		r.linked(e)
	case Rebuilt:
		r.tree = e.Tree
		r.tree.OnYield(r.opt.Yield)
		r.closeAll() // their watches were in the other tree
		r.locals.lose()
	case LogFull:
		m.resting = fmt.Sprintf("no space for the transaction log behind %v", e.Zxid)
	case LogFree:
		if m.resting != "" {
			m.resting = ""
			r.happened(WritesResumed{})
			r.look("there is space for the log again")
		}
	case HandOver:
		r.handOver(e)
	case Wake:
		r.wake()
	}
}

// wake lets the deadlines of the cores pass.
func (r *Replica) wake() {
	m := r.member
	m.election.Step(r.now.Mono, election.Tick{})
	m.step(r.now.Mono, zab.Tick{})
	r.redialEnds()
	r.releaseHeld()
	r.release()
}

// step hands an event to the machine of the term.
func (m *member) step(now int64, e zab.Event) bool {
	switch {
	case m.leader != nil:
		m.leader.Step(now, e)
	case m.learner != nil:
		m.learner.Step(now, e)
	default:
		return false
	}
	return true
}

// stepZab takes news of links and of the disk.
func (r *Replica) stepZab(e zab.Event) {
	m := r.member
	switch e := e.(type) {
	case zab.Saved:
		m.saved.accepted = max(m.saved.accepted, e.Accepted)
		m.saved.current = max(m.saved.current, e.Current)
	case zab.Refused:
		m.accepted, m.current = m.saved.accepted, m.saved.current
		if !m.step(r.now.Mono, e) && m.log.Refuse(e) {
			m.ready.Duties = append(m.ready.Duties, Duty{Rebuild: true, Generation: m.generation})
		}
		return
	case zab.Closed:
		if r.early(e) {
			return
		}
	}
	m.step(r.now.Mono, e)
}

// readyMember hands out what has come of all steps. A core whose duties lead
// to another step is asked again, until all are quiet.
func (r *Replica) readyMember() Ready {
	m := r.member
	m.unsettled = false
	for r.electionReady() || r.zabReady() {
	}
	r.reviseReadOnly()
	rd := m.ready
	m.ready = Ready{}
	rd.Listen = m.role == peerwire.Leading && m.leader != nil
	rd.Dial = peerwire.NoServer
	if m.role != peerwire.Looking && m.role != peerwire.Leading && m.learner == nil && r.now.Mono >= m.redial.at {
		rd.Dial = m.decision.Vote.Leader
	}
	rd.NextBeat = Never
	if m.leader != nil {
		rd.NextBeat = m.leader.NextBeat()
	}
	rd.Wake = min(m.wakeElection, m.wakeZab, r.holdUntil(), m.redialWake(r.now.Mono), r.readOnlyWake())
	return rd
}

// nextMember carries out the next effect of a commit; false if there is none.
func (r *Replica) nextMember() bool {
	m := r.member
	if m.effects.Len() == 0 {
		return false
	}
	switch e := m.effects.Pop(); {
	case e.txn != nil:
		r.apply(e.txn)
	case e.term != m.term:
	case e.established != nil:
		r.serve(e.established)
	case e.confirmed > 0:
		r.confirmed(e.confirmed)
	default:
		r.syncDone(e.sync)
	}
	return true
}

// Standing is how a server of an ensemble stands.
type Standing struct {
	Role    peerwire.ServerState
	Leader  ensemble.ServerID // NoServer: there is none
	Epoch   wire.Epoch        // in which it serves
	Serving bool
	Resting string // why it takes no part, empty if it does
	// Abstains says why this server is no candidate for leader and promises no
	// epoch, empty if it is and does: its disk has not answered for too long.
	Abstains string
	// ReadOnly: without a quorum, clients that accept that are served.
	ReadOnly bool
	// Handed: the role came from the leader before, without a vote.
	Handed bool
}

// Standing returns how this server stands in its ensemble; nil if it is alone.
func (r *Replica) Standing() *Standing {
	m := r.member
	if m == nil {
		return nil
	}
	s := &Standing{Role: m.role, Leader: peerwire.NoServer, Epoch: m.epoch, Serving: m.serving, Resting: m.resting, Abstains: r.stall.reason(), ReadOnly: m.readers.serves}
	if m.role != peerwire.Looking {
		s.Leader, s.Handed = m.decision.Vote.Leader, m.decision.Ending == election.Handed
	}
	return s
}

// Stranded reports whether no write can be answered before something changes
// among the servers: there is no leader, or this server leads and too few follow.
func (r *Replica) Stranded() bool {
	m := r.member
	return m != nil && (!m.serving || m.leader != nil && m.leader.Deserted())
}

// Elections returns the last elections of this server, oldest first, the
// running one last.
func (r *Replica) Elections() []election.Record {
	if r.member == nil {
		return nil
	}
	return r.member.election.Records()
}

// PendingSyncs is how many syncs wait for their answer at this leader.
func (r *Replica) PendingSyncs() int {
	if r.member == nil || r.member.leader == nil {
		return 0
	}
	return r.member.leader.PendingSyncs()
}

// Learners describes the learners of a leader; nil where this is none.
func (r *Replica) Learners() []zab.LearnerStatus {
	if r.member == nil || r.member.leader == nil {
		return nil
	}
	return r.member.leader.Learners()
}
