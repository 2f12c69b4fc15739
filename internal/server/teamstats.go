package server

import (
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"bellwether/internal/election"
	"bellwether/internal/ensemble"
	"bellwether/internal/metrics"
	"bellwether/internal/replica"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// teamStats are the figures of a server of an ensemble.
type teamStats struct {
	lookings, diffs, snaps    *metrics.Counter
	proposals, commits        *metrics.Counter // received from a leader
	electionTime, unavailable *metrics.Summary

	proposal lastMinMax   // bytes of proposals, as a leader sends them
	leads    atomic.Int64 // the server's clock when it began to lead; -1: it does not
	last     wire.Zxid    // the loop's: of the last proposal counted
	lost     int64        // the loop's: the clock when it stopped serving
}

func newTeamStats(s *Server) *teamStats {
	r := s.stats.registry
	t := &teamStats{
		lookings: r.Counter("looking_count"), diffs: r.Counter("diff_count"), snaps: s.stats.snapSyncs,
		proposals: r.Counter("learner_proposal_received_count"), commits: r.Counter("learner_commit_received_count"),
		electionTime: r.Basic("election_time"), unavailable: r.Basic("leader_unavailable_time"),
	}
	t.proposal.reset()
	t.leads.Store(-1)
	leading := func(name string, f func() int64) {
		r.Gauge(name, func() float64 {
			if t.leads.Load() < 0 {
				return math.NaN()
			}
			return float64(f())
		})
	}
	learners := func(name string, counts func(l zab.LearnerStatus) bool) {
		leading(name, func() (n int64) {
			for _, l := range s.Learners() {
				if counts(l) {
					n++
				}
			}
			return n
		})
	}
	members := s.config().Ensemble.Members
	voter := func(l zab.LearnerStatus) bool { return members.IsVoter(ensemble.ServerID(l.Server)) }
	r.Gauge("quorum_size", func() float64 { return float64(len(members.Voters())) })
	learners("learners", func(zab.LearnerStatus) bool { return true })
	learners("synced_followers", func(l zab.LearnerStatus) bool { return l.Synced && !l.Observer })
	learners("synced_non_voting_followers", func(l zab.LearnerStatus) bool { return l.Synced && !l.Observer && !voter(l) })
	learners("synced_observers", func(l zab.LearnerStatus) bool { return l.Synced && l.Observer })
	leading("leader_uptime", func() int64 { return (s.clock() - t.leads.Load()) / int64(time.Millisecond) })
	leading("last_proposal_size", t.proposal.last.Load)
	leading("max_proposal_size", t.proposal.most)
	leading("min_proposal_size", t.proposal.least)
	return t
}

// sent counts the proposals among what a leader sends: each once.
func (t *teamStats) sent(send []zab.Message) {
	for _, m := range send {
		if p := m.Packet; p.Type == wire.PacketProposal && p.Zxid > t.last {
			t.last = p.Zxid
			t.proposal.size(int64(len(p.Data)))
		}
	}
}

// heard counts what comes from other servers.
func (t *teamStats) heard(p *wire.QuorumPacket) {
	switch p.Type {
	case wire.PacketProposal, wire.PacketInform:
		t.proposals.Add(1)
	case wire.PacketCommit:
		t.commits.Add(1)
	}
}

// stands notes a change of how the server stands.
func (t *teamStats) stands(before, now *replica.Standing, clock int64) {
	served := before != nil && before.Serving
	switch {
	case served && !now.Serving:
		t.lost = clock
	case !served && now.Serving && t.lost > 0:
		t.unavailable.Observe(micro(clock-t.lost), 1)
	}
	leads, led := now.Serving && now.Role == wire.Leading, t.leads.Load() >= 0
	switch {
	case leads && !led:
		t.leads.Store(clock)
	case !leads && led:
		t.leads.Store(-1)
	}
}

// peerState is a standing as zk_peer_state names it.
func peerState(st *replica.Standing) string {
	role := map[wire.ServerState]string{wire.Following: "following", wire.Leading: "leading", wire.Observing: "observing"}[st.Role]
	switch {
	case role == "":
		return "looking"
	case st.Serving:
		return role + " - broadcast"
	}
	return role + " - synchronization"
}

// mode is a role as the word srvr names it.
func mode(st *replica.Standing) string {
	switch {
	case st == nil || st.Role == wire.Looking:
		return "looking"
	case st.Role == wire.Leading:
		return "leader"
	case st.Role == wire.Following:
		return "follower"
	case st.Role == wire.Observing:
		return "observer"
	}
	return fmt.Sprint(st.Role)
}

// level is at which level a happening among servers is logged. It counts some.
func (t *teamStats) level(h replica.Happening) slog.Level {
	switch e := h.(type) {
	case election.Began:
		t.lookings.Add(1)
	case election.Decided:
		t.electionTime.Observe(e.TookMS*metrics.Unit, 1)
	case election.Settling, election.LaterRound, zab.Unexpected:
		return slog.LevelDebug
	case election.Refused, election.Barred, election.Restated, election.Abandoned, zab.GaveUp, zab.LearnerLost, replica.Undone:
		return slog.LevelWarn
	case zab.SyncBegan:
		if e.How == zab.Snap {
			t.snaps.Add(1)
		} else {
			t.diffs.Add(1)
		}
	}
	return slog.LevelInfo
}
