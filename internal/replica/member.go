package replica

import (
	"fmt"

	"bellwether/internal/election"
	"bellwether/internal/ensemble"
	"bellwether/internal/fifo"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/tree"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// Member holds the options of a server in an ensemble, and what its disk holds.
type Member struct {
	// Members is the membership that is known to be committed: that of the files.
	Members *ensemble.Membership
	// Reconfig lets the membership change. Logged are then the memberships in the snapshot
	// and in the log, in their order, and VotersMin is how many voters a new membership needs
	// at least. Otherwise Members holds for ever.
	Reconfig  bool
	Logged    []*ensemble.Membership
	VotersMin int
	// Log describes the log on disk. The tree must be at Log.Applied.
	Log               *zab.Log
	Accepted, Current wire.Epoch
	// Unknown: this server may have lost history that it once acknowledged. It does not
	// vote and only joins an existing leader. Initialized: an operator's marker confirms
	// that an empty log is correct.
	Unknown, Initialized bool
	// InitLimit and SyncLimit are in ticks; 0: 10 and 5.
	InitLimit, SyncLimit int64
	// LeaseMS and HeartbeatMS are the lease and the heartbeat interval of a native leader; 0:
	// 500 and 100.
	LeaseMS, HeartbeatMS int64
	// CompatibleOnly: the server speaks ZooKeeper's protocol to all peers, without the native
	// extensions.
	CompatibleOnly bool
	// KeepClients lets client connections survive a change from one native leader to the
	// next (keep.go).
	KeepClients bool
	// ReadOnly lets clients that accept it read from a server that has had no leader for
	// a while (readonly.go).
	ReadOnly bool
	// ReadUncommitted lets a read-only server show its whole log, as ZooKeeper does, even
	// if it has not served in a term since its start.
	ReadUncommitted bool
	// LocalSessions: new sessions are local to the server that made them. UpgradeLocal: a
	// local session that creates an ephemeral becomes global.
	LocalSessions, UpgradeLocal bool
	// NoClientsWhileLeading: the server accepts no clients while it leads.
	NoClientsWhileLeading bool
	// Priorities says which servers should lead rather than others (preference.go); a server
	// that is not in it has priority 0. PreferMS is for how long a preferred server must have
	// been fit to lead; 0: 10 s.
	Priorities map[ensemble.ServerID]int
	PreferMS   int64
	// DiskLog: the driver can answer Ready.ReadLog.
	DiskLog bool
	// ObserverMasters: as a follower this server serves observers, and as an observer it
	// learns from such followers (masters.go).
	ObserverMasters bool
	// CounterMax is the last zxid counter of an epoch; 0: the highest counter but one.
	CounterMax uint32
}

// member holds what a server in an ensemble holds in addition to a Replica. Invariants: at
// most one of leader and learner is set; serving implies that one of them is set;
// saved.accepted <= accepted and saved.current <= current.
type member struct {
	opt      Member
	tickMS   int64
	election *election.Election
	log      *zab.Log
	// accepted and current are the epochs of the last duties that were handed out. saved
	// holds the epochs that are durable.
	accepted, current wire.Epoch
	saved             struct{ accepted, current wire.Epoch }
	generation        uint64

	members    Memberships // as they were passed on last
	role       peerwire.ServerState
	decision   election.Decision
	leader     *zab.Leader
	learner    *zab.Learner
	serving    bool  // the term serves clients
	served     int64 // Mono time at which it began to
	postponed  []postponed
	leaving    bool                // the server has transferred leadership and is about to stop
	decided    int64               // Mono time of the decision
	told       string              // why this server should not lead, as it has told the leader of this term
	toldTree   peerwire.TreeReport // what it has told about its tree
	link       zab.LinkID          // the learner's link to its leader
	redial     redial
	masters    masters
	failed     failedTerms
	preference preference
	epoch      wire.Epoch
	rejoined   bool       // this server had joined the present leader before, and no sync was answered since it serves again
	compatible wire.Epoch // epoch if the leader of that term was a compatible one, else 0
	above      wire.Epoch // as a leader, this server must choose an epoch above this one
	term       uint64     // counts the terms of this server, including failed ones
	disabled   string     // why this server is disabled; empty if it is not
	readers    readOnly

	wakeElection, wakeZab int64

	effects       fifo.Queue[effect]
	held          []*conn // connections that wait for a leader; some may be closed
	holdBy        int64   // Mono time at which releaseHeld is due
	joining       int64   // Mono time since which this server tries to join a leader that others follow; Never: it does not
	serverOf      map[wire.SessionID]ensemble.ServerID
	endedSessions endedSessions
	asking        map[wire.SessionID][]*conn // connections that wait for the leader's answer, oldest first
	moved         map[wire.SessionID]*conn   // connections whose session has moved here, and which still wait for their sync
	syncs         map[uint64]*conn           // by token
	token         uint64
	pings         fifo.Queue[heldPing]
	touch         uint64
	unsettled     bool
	ready         Ready
}

// effect is one consequence of a commit. Exactly one of txn, sync, confirmed and
// established is set. Effects are carried out in the order in which Zab returned them.
type effect struct {
	txn         *record.Txn
	sync        uint64
	confirmed   uint64 // the last touch that the leader has confirmed
	established *zab.Established
	term        uint64 // the term of sync, confirmed or established; in any other term the effect is dropped
}

// join starts a server of an ensemble. It looks for a leader.
func (r *Replica) join() {
	o := *r.opt.Member
	set := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
	set(&o.InitLimit, 10)
	set(&o.SyncLimit, 5)
	set(&o.PreferMS, preferMS)
	m := &member{opt: o, tickMS: r.opt.TickMS, log: o.Log, accepted: o.Accepted, current: o.Current, holdBy: Never, joining: Never}
	m.saved.accepted, m.saved.current = o.Accepted, o.Current
	m.preference = newPreference()
	if o.Reconfig {
		m.log.Configure(o.Members)
		for _, l := range o.Logged {
			m.log.Propose(l)
		}
	}
	m.members.Committed = o.Members
	m.election = election.New(election.Options{ID: r.opt.ServerID, Committed: o.Members, Reconfig: o.Reconfig})
	r.member = m
	if o.Reconfig {
		r.reconcile()
		m.ready.Members = &Memberships{m.members.Committed, m.members.Proposed}
	}
	r.reset()
	r.look("started")
}

// reset drops all state that belongs to one term.
func (r *Replica) reset() {
	m := r.member
	m.leader, m.learner, m.serving, m.wakeZab = nil, nil, false, Never
	m.postponed, m.told, m.toldTree = nil, "", peerwire.TreeReport{}
	m.redial = redial{}
	r.differs.asked = false
	m.term++
	m.serverOf, m.endedSessions = map[wire.SessionID]ensemble.ServerID{}, endedSessions{}
	m.asking, m.moved, m.syncs = map[wire.SessionID][]*conn{}, map[wire.SessionID]*conn{}, map[uint64]*conn{}
	r.creating, r.ending = map[wire.SessionID]*conn{}, map[wire.SessionID]bool{}
	r.doomed, r.turns = map[wire.SessionID]tree.Overdue{}, fifo.Queue[wire.SessionID]{}
}

// leads reports whether this server is an established leader.
func (m *member) leads() bool { return m.leader != nil && m.serving }

// refusesClients reports whether this server leads and accepts no clients in that role.
func (m *member) refusesClients() bool { return m.opt.NoClientsWhileLeading && m.leads() }

// native reports whether this server is native and so is its leader.
func (m *member) native() bool {
	return !m.opt.CompatibleOnly && (m.leader != nil || m.learner != nil && m.learner.Native())
}

// leaseMS returns the length of the leader's lease; 0 if it is unknown.
func (m *member) leaseMS() int64 {
	switch {
	case m.opt.CompatibleOnly:
		return 0
	case m.learner != nil:
		return m.learner.LeaseMS()
	case m.leader != nil:
		return m.leader.LeaseMS()
	}
	return 0
}

// stepMember takes the events that only a server of an ensemble receives.
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
		r.closeAll() // their watches are in the old tree
		r.locals.dropUpgrading()
	case LogFull:
		m.disabled = fmt.Sprintf("no space for the transaction log after %v", e.Zxid)
	case LogFree:
		if m.disabled != "" {
			m.disabled = ""
			r.observe(WritesResumed{})
			r.look("there is space for the log again")
		}
	case NoRoom, Room:
		_, r.health.noRoom = e.(NoRoom)
	case TransferLeadership:
		r.transferLeadership(e)
	case Wake:
		r.wake()
	}
}

// wake lets the election, Zab and the waiting connections act on the deadlines that have
// passed.
func (r *Replica) wake() {
	m := r.member
	m.election.Step(r.now.Mono, election.Tick{})
	m.step(r.now.Mono, zab.Tick{})
	r.redialEnds()
	r.releaseHeld()
	r.release()
}

// step passes an event to the leader or learner of this term. It returns false if there
// is none.
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

// stepZab takes an event for Zab: about a link or about the disk.
func (r *Replica) stepZab(e zab.Event) {
	m := r.member
	switch e := e.(type) {
	case zab.Saved:
		m.saved.accepted = max(m.saved.accepted, e.Accepted)
		m.saved.current = max(m.saved.current, e.Current)
	case zab.Refused:
		m.accepted, m.current = m.saved.accepted, m.saved.current
		if m.opt.Reconfig {
			m.members.Committed = nil // its files may not be written
		}
		if !m.step(r.now.Mono, e) && m.log.Refuse(e) {
			m.ready.Duties = append(m.ready.Duties, Duty{Rebuild: true, Generation: m.generation})
		}
		return
	case zab.Closed:
		if r.endedAtOnce(e) {
			return
		}
	}
	m.step(r.now.Mono, e)
}

// readyMember returns the duties of all steps since the last call. The election and Zab
// are asked in turn until neither has anything new, because the duties of one can be
// events for the other.
func (r *Replica) readyMember() Ready {
	m := r.member
	m.unsettled = false
	r.reconcile()
	for r.electionReady() || r.zabReady() || r.takePostponed() {
		r.reconcile()
	}
	r.reviseReadOnly()
	rd := m.ready
	m.ready = Ready{}
	rd.Listen = m.role == peerwire.Leading && m.leader != nil
	rd.ListenObservers = m.learner != nil && m.learner.ServesObservers() && !r.differs.doubted()
	rd.Dial = peerwire.NoServer
	if m.role != peerwire.Looking && m.role != peerwire.Leading && m.learner == nil && m.disabled == "" && r.now.Mono >= m.redial.at {
		rd.Dial, rd.DialMaster = r.dials()
	}
	rd.NextHeartbeat = Never
	if m.leader != nil {
		rd.NextHeartbeat = m.leader.NextHeartbeat()
	}
	rd.Wake = min(m.wakeElection, m.wakeZab, r.holdUntil(), r.postponedUntil(), m.redialWake(r.now.Mono), m.mastersWake(r.now.Mono), r.readOnlyWake())
	return rd
}

// nextMember carries out the next effect and reports whether there was one.
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

// Status describes the state of a server in its ensemble.
type Status struct {
	Role   peerwire.ServerState
	Leader ensemble.ServerID // NoServer: none
	// Master is the server from which a learner learns: the leader, or an observer master;
	// NoServer: none.
	Master   ensemble.ServerID
	Epoch    wire.Epoch // the epoch of the last term in which it served
	Serving  bool
	Disabled string // why it takes no part in the ensemble; empty if it does
	// Abstains says why this server is not a candidate for leader and promises no epoch: its
	// disk has not answered for too long. It is empty if the disk answers.
	Abstains string
	// GivesWay says why another server should lead; empty if this one can. It is also set on
	// servers that do not lead.
	GivesWay string
	// Differs says that the tree of this server is known to differ from its leader's, or that a
	// snapshot has replaced it a while ago because it did; empty if neither is the case.
	Differs string
	// Unfit names the learners of this leader that say that they should not lead, and why; empty
	// if none does.
	Unfit string
	// ReadOnly: there is no quorum, and the server serves the clients that accept that.
	ReadOnly bool
	// Appointed: the previous leader assigned the role in a leadership transfer, without a vote.
	Appointed bool
	// Prefers is the server to which this leader will transfer leadership because of its
	// priority, once that server has been fit to lead for PrefersMS; NoServer: none.
	Prefers   ensemble.ServerID
	PrefersMS int64
}

// Status returns the state of this server in its ensemble; nil if it is standalone.
func (r *Replica) Status() *Status {
	m := r.member
	if m == nil {
		return nil
	}
	s := &Status{Role: m.role, Leader: peerwire.NoServer, Master: peerwire.NoServer, Epoch: m.epoch, Serving: m.serving, Disabled: m.disabled, Abstains: r.stall.reason(), GivesWay: r.health.reason(r.now.Mono), Differs: r.differs.alarm(r.now.Mono), ReadOnly: m.readers.serves}
	s.Prefers, s.PrefersMS = r.prefers()
	if m.leads() {
		s.Unfit = m.leader.Unfit()
	}
	if m.role != peerwire.Looking {
		s.Leader, s.Appointed = m.decision.Vote.Leader, m.decision.Ending == election.LeadershipTransferred
	}
	if m.learner != nil {
		s.Master = m.master()
	}
	return s
}

// Stranded reports whether no write can be answered until servers return: there is no
// leader, or this server leads and too few servers follow it.
func (r *Replica) Stranded() bool {
	m := r.member
	return m != nil && (!m.serving || m.leader != nil && m.leader.LostQuorum())
}

// Elections returns the most recent elections of this server, oldest first. If an
// election is running, it is the last one.
func (r *Replica) Elections() []election.Record {
	if r.member == nil {
		return nil
	}
	return r.member.election.Records()
}

// PendingSyncs returns how many client syncs wait for their answer at this leader.
func (r *Replica) PendingSyncs() int {
	if r.member == nil || r.member.leader == nil {
		return 0
	}
	return r.member.leader.PendingSyncs()
}

// Learners describes the learners of this leader, or the observers of this follower.
func (r *Replica) Learners() []zab.LearnerStatus {
	switch m := r.member; {
	case m == nil:
	case m.leader != nil:
		return m.leader.Learners()
	case m.learner != nil:
		return m.learner.Observers()
	}
	return nil
}
