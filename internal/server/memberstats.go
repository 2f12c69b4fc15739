package server

import (
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"bellwether/internal/election"
	"bellwether/internal/metrics"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/replica"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// quorumStats are the figures about the traffic between servers. A standalone server
// shows them too, as in ZooKeeper, because dashboards ask every server for the same
// names. On a standalone server all of them but shown stay 0.
type quorumStats struct {
	lookings, diffs, prefers *metrics.Counter
	givesWay                 *metrics.Counter // transfers because another server should lead
	replaced                 *metrics.Counter // snapshots that have replaced the wrong tree of this server
	proposals, commits       *metrics.Counter // received from a leader
	revalidations            *metrics.Counter // sessions that learners asked a leader about
	queued                   *metrics.Counter // commits
	electionTime             *metrics.Summary
	unavailable, leaderless  *metrics.Summary // time until the server serves, and until it leads
	followed, observed       *metrics.Summary // ms until a follower, or an observer, is caught up
	snapping, diffing        *metrics.Summary // number of learners being synchronised, observed at each start and end

	// Times of a transaction in ms of the wall clocks, all from when the leader made it:
	// until it arrives at a follower, is durable, is committed by a quorum, is known by a
	// learner to be committed, and is applied.
	arrived, durable, agreed, told, shown *metrics.Summary
	applied                               *metrics.Summary // time to apply one transaction
}

func newQuorumStats(r *metrics.Registry) quorumStats {
	return quorumStats{
		lookings: r.Counter("looking_count"), diffs: r.Counter("diff_count"), prefers: r.Counter("preferred_transfer_count"), givesWay: r.Counter("unfit_leader_transfer_count"), replaced: r.Counter("tree_replaced_count"),
		proposals: r.Counter("learner_proposal_received_count"), commits: r.Counter("learner_commit_received_count"),
		revalidations: r.Counter("revalidate_count"), queued: r.Counter("request_commit_queued"),
		electionTime: r.Basic("election_time"), unavailable: r.Basic("unavailable_time"), leaderless: r.Basic("leader_unavailable_time"),
		followed: r.Basic("follower_sync_time"), observed: r.Basic("observer_sync_time"),
		snapping: r.Basic("inflight_snap_count"), diffing: r.Basic("inflight_diff_count"),
		arrived: r.Advanced("proposal_latency"), durable: r.Advanced("proposal_ack_creation_latency"),
		agreed: r.Advanced("quorum_ack_latency"), told: r.Advanced("commit_propagation_latency"),
		shown: r.Advanced("propagation_latency"), applied: r.Advanced("write_final_proc_time_ms"),
	}
}

// memberStats are the figures of a server of an ensemble.
type memberStats struct {
	*quorumStats
	snaps *metrics.Counter

	queueSize, queueTime *metrics.Keyed // packets on their way to each learner

	refused    *metrics.Counter // connections of other servers that were refused
	pingLate   *metrics.Summary // from when a leader's pings are due until they are sent
	pingAnswer *metrics.Summary // from when a leader's ping arrives until its answer is sent

	proposal lastMinMax   // bytes of the proposals that a leader sends
	leads    atomic.Int64 // the server's clock when it began to lead; -1: it does not lead
	// The following fields belong to the loop.
	serves  bool
	last    wire.Zxid               // zxid of the last proposal counted
	lost    int64                   // the clock when it stopped serving
	syncing map[string]zab.SyncMode // learners by name
}

// keysMax bounds the number of servers for which separate figures are kept.
const keysMax = 64

func newMemberStats(s *Server) *memberStats {
	r := s.stats.registry
	t := &memberStats{
		quorumStats: &s.stats.quorum, snaps: s.stats.snapSyncs,
		queueSize: r.BasicKeyed("learner_handler_qp_size", keysMax), queueTime: r.AdvancedKeyed("learner_handler_qp_time_ms", keysMax),
		refused:  r.Counter("peer_connections_refused"),
		pingLate: r.Basic("heartbeat_late_ms"), pingAnswer: r.Basic("heartbeat_answer_ms"),
		syncing: map[string]zab.SyncMode{},
	}
	t.proposal.reset()
	t.leads.Store(-1)
	while := func(holds func() bool, name string, f func() int64) {
		r.Gauge(name, func() float64 {
			if !holds() {
				return math.NaN()
			}
			return float64(f())
		})
	}
	leading := func(name string, f func() int64) { while(t.leading, name, f) }
	count := func(counts func(l zab.LearnerStatus) bool) func() int64 {
		return func() (n int64) {
			for _, l := range s.Learners() {
				if counts(l) {
					n++
				}
			}
			return n
		}
	}
	learners := func(name string, counts func(l zab.LearnerStatus) bool) { leading(name, count(counts)) }
	voter := func(l zab.LearnerStatus) bool { return s.members().IsVoter(l.Server) }
	r.Gauge("quorum_size", func() float64 { return float64(len(s.members().Voters())) })
	learners("learners", func(zab.LearnerStatus) bool { return true })
	learners("synced_followers", func(l zab.LearnerStatus) bool { return l.Synced && !l.Observer })
	learners("synced_non_voting_followers", func(l zab.LearnerStatus) bool { return l.Synced && !l.Observer && !voter(l) })
	while(func() bool { return t.leading() || s.servesObservers() }, "synced_observers", count(func(l zab.LearnerStatus) bool { return l.Synced && l.Observer }))
	leading("pending_syncs", s.pendingSyncs)
	r.Gauge("leading", func() float64 {
		if t.leading() {
			return 1
		}
		return 0
	})
	r.KeyedGauge("learner_lag_txns", func() map[string]float64 {
		if !t.leading() {
			return nil
		}
		return s.learnerLags()
	})
	r.Gauge("observer_master_id", func() float64 {
		if st := s.ReplicaStatus(); st != nil && st.Serving && st.Role == peerwire.Observing {
			return float64(st.Master)
		}
		return math.NaN()
	})
	leading("leader_uptime", func() int64 { return (s.clock() - t.leads.Load()) / int64(time.Millisecond) })
	leading("last_proposal_size", t.proposal.last.Load)
	leading("max_proposal_size", t.proposal.most)
	leading("min_proposal_size", t.proposal.least)
	return t
}

// sent counts the proposals among the messages that a leader sends, each proposal once.
func (t *memberStats) sent(send []zab.Message) {
	for _, m := range send {
		if p := m.Packet; p.Type == peerwire.PacketProposal && p.Zxid > t.last {
			t.last = p.Zxid
			t.proposal.size(int64(len(p.Data)))
		}
	}
}

// leading reports whether this server leads and serves.
func (t *memberStats) leading() bool { return t.leads.Load() >= 0 }

// heard counts packets from other servers. Until UPTODATE arrives, proposals are old and
// are not timed. wall is the current time.
func (t *memberStats) heard(p *peerwire.QuorumPacket, wall int64) {
	switch {
	case !t.serves:
	case p.Type == peerwire.PacketProposal:
		t.proposals.Add(1)
		if made, ok := madeAt(p.Data); ok {
			t.arrived.Observe((wall-made)*metrics.Unit, 1)
		}
	case p.Type == peerwire.PacketCommit, p.Type == peerwire.PacketInform:
		t.commits.Add(1)
	case p.Type == peerwire.PacketRevalidate && t.leading():
		t.revalidations.Add(1)
	}
}

// committed records transactions that have been committed and applied.
func (t *memberStats) committed(txns []*record.Txn, wall int64) {
	t.queued.Add(int64(len(txns)))
	known := t.told
	if t.leading() {
		known = t.agreed
	}
	for _, x := range txns {
		known.Observe((wall-x.Time)*metrics.Unit, 1)
		t.shown.Observe((wall-x.Time)*metrics.Unit, 1)
	}
}

// statusChanged records a change of the server's status.
func (t *memberStats) statusChanged(before, now *replica.Status, clock int64) {
	leads, led := now.Serving && now.Role == peerwire.Leading, t.leading()
	served := before != nil && before.Serving
	switch {
	case before == nil && !now.Serving, served && !now.Serving:
		t.lost = clock
	case !served && now.Serving:
		t.unavailable.Observe(micro(clock-t.lost), 1)
		if leads {
			t.leaderless.Observe(micro(clock-t.lost), 1)
		}
	}
	t.serves = now.Serving
	switch {
	case leads && !led:
		t.leads.Store(clock)
	case !leads && led:
		t.leads.Store(-1)
	}
}

// peerState returns a status in the form of zk_peer_state.
func peerState(st *replica.Status) string {
	role := map[peerwire.ServerState]string{peerwire.Following: "following", peerwire.Leading: "leading", peerwire.Observing: "observing"}[st.Role]
	switch {
	case role == "":
		return "looking"
	case st.Serving:
		return role + " - broadcast"
	}
	return role + " - synchronization"
}

// mode returns a role in the form of the four-letter word srvr.
func mode(st *replica.Status) string {
	switch {
	case st == nil || st.Role == peerwire.Looking:
		return "looking"
	case st.Role == peerwire.Leading:
		return "leader"
	case st.Role == peerwire.Following:
		return "follower"
	case st.Role == peerwire.Observing:
		return "observer"
	}
	return fmt.Sprint(st.Role)
}

// level returns the level at which an observation about servers is logged. It also
// updates figures.
func (t *memberStats) level(h replica.Observation) slog.Level {
	switch e := h.(type) {
	case election.Began:
		t.lookings.Add(1)
	case election.Decided:
		if e.Ending != election.LeadershipTransferred {
			t.electionTime.Observe(e.TookMS*metrics.Unit, 1)
		}
	case zab.GaveUp:
		clear(t.syncing)
		if !e.Transferred {
			return slog.LevelWarn
		}
	case replica.GivesWay:
		t.givesWay.Add(1)
	case replica.Prefers:
		t.prefers.Add(1)
	case replica.TreeReplaced:
		t.replaced.Add(1)
		return slog.LevelWarn
	case zab.WrongTree, zab.Outvoted:
		return slog.LevelError
	case zab.LearnerFitness:
		if e.Why != "" {
			return slog.LevelWarn
		}
	case election.Settling, election.LaterRound, zab.Unexpected:
		return slog.LevelDebug
	case election.Refused, election.Barred, election.Restated, election.Abandoned, election.Withdrawn, election.ElectsAgain, replica.ReconfigRefused, replica.TermFailed, replica.Undone, zab.OldEpoch, zab.HistoryAhead:
		return slog.LevelWarn
	case zab.SyncBegan:
		t.synchronises(e)
	case zab.LearnerServes:
		t.synchronised(e.Learner)
	case zab.LearnerLost:
		t.synchronised(e.Learner)
		if !e.Returns {
			return slog.LevelWarn
		}
	case zab.ServesUnder:
		if e.Observer {
			t.observed.Observe(e.InAllMS*metrics.Unit, 1)
		} else {
			t.followed.Observe(e.InAllMS*metrics.Unit, 1)
		}
	}
	return slog.LevelInfo
}

// synchronises counts a learner whose synchronisation starts.
func (t *memberStats) synchronises(e zab.SyncBegan) {
	if e.How == zab.Snap {
		t.snaps.Add(1)
	} else {
		t.diffs.Add(1)
	}
	t.syncing[e.Learner] = e.How
	t.countSyncing(e.How)
}

// synchronised counts a learner that is caught up or gone.
func (t *memberStats) synchronised(learner string) {
	if how, is := t.syncing[learner]; is {
		delete(t.syncing, learner)
		t.countSyncing(how)
	}
}

// countSyncing records how many learners are being synchronised in one way.
func (t *memberStats) countSyncing(how zab.SyncMode) {
	snapping, diffing := int64(0), int64(0)
	for _, h := range t.syncing {
		if h == zab.Snap {
			snapping++
		} else {
			diffing++
		}
	}
	if how == zab.Snap {
		t.snapping.Observe(snapping*metrics.Unit, 1)
	} else {
		t.diffing.Observe(diffing*metrics.Unit, 1)
	}
}
