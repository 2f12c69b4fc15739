package server

import (
	"fmt"
	"testing"

	"bellwether/wire"
)

// TestStagesOfAWrite: the steps of a write are counted where they happen: at the leader, at the
// follower that received the write, and at the observer.
func TestStagesOfAWrite(t *testing.T) {
	g := startTestEnsemble(t, 3, 1, false)
	l, f, o := g.leader(), g.follower(), g.servers[3]
	if z := l.Status().Zxid; z != wire.MakeZxid(1, 0) {
		t.Errorf("a new epoch shows %v", z)
	}
	eventually(t, "all learners are synchronised", func() bool { return l.figure("synced_followers")+l.figure("synced_observers") == 3 })
	c := f.connect()
	c.create("/a", "x")
	f.connect().must(wire.OpGetData, &wire.PathWatchRequest{Path: "/a", Watch: true}, &wire.DataResponse{})
	c.create("/b", "")
	c.must(wire.OpDelete, &wire.PathVersionRequest{Path: "/a", Version: -1}, nil)
	g.equal()
	const writes = 5 // including the writes that open the sessions
	for _, w := range []struct {
		name string
		m    *testServer
		want float64
	}{
		{"prep_processor_request_queued", l, writes}, {"prep_processor_request_queued", f, 0},
		{"cnt_prep_process_time", l, writes}, {"proposal_count", l, writes}, {"proposal_count", f, 0},
		{"commit_count", l, writes}, {"commit_count", o, 0},
		{"sync_processor_request_queued", l, writes}, {"sync_processor_request_queued", o, writes},
		{"cnt_quorum_ack_latency", l, writes}, {"cnt_quorum_ack_latency", f, 0},
		{"cnt_commit_propagation_latency", f, writes}, {"cnt_commit_propagation_latency", o, writes},
		{"cnt_propagation_latency", l, writes}, {"cnt_propagation_latency", f, writes},
		{"cnt_proposal_latency", f, writes}, {"cnt_proposal_latency", o, 0},
		{"learner_proposal_received_count", f, writes}, {"learner_proposal_received_count", o, 0},
		{"learner_commit_received_count", f, writes}, {"learner_commit_received_count", o, writes},
		{"request_commit_queued", o, writes}, {"cnt_write_final_proc_time_ms", f, writes},
		{"cnt_updatelatency", f, writes}, {"cnt_readlatency", f, 1}, {"cnt_updatelatency", l, 0},
		{"cnt_follower_sync_time", f, 1}, {"cnt_observer_sync_time", f, 0}, {"cnt_observer_sync_time", o, 1},
		{"cnt_unavailable_time", f, 1}, {"cnt_leader_unavailable_time", f, 0}, {"cnt_leader_unavailable_time", l, 1},
		{"sum_node_deleted_watch_count", f, 1}, {"cnt_node_changed_watch_count", f, 0},
	} {
		// Steps that follow the visible effect of the write may be counted late, so the test waits for
		// them.
		eventually(t, fmt.Sprintf("%s of server %d is %v (%v)", w.name, w.m.id, w.want, w.m.figure(w.name)), func() bool {
			return w.m.figure(w.name) == w.want
		})
	}
	if got := l.figure(fmt.Sprintf("cnt_%d_learner_handler_qp_size", f.id)); got <= 0 {
		t.Errorf("the queue to the follower was measured %v times", got)
	}
	for name, m := range map[string]*testServer{"bytes_received_count": f, "response_bytes": f, "cnt_proposal_ack_creation_latency": o} {
		if got := m.figure(name); got <= 0 {
			t.Errorf("%s of server %d: %v", name, m.id, got)
		}
	}
}
