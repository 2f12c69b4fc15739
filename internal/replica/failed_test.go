package replica

import (
	"testing"

	"bellwether/internal/peerwire"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// ignorePromises makes every leader ignore the epochs that others have promised, as leaders of
// Apache ZooKeeper do once they serve. It returns the times at which links to a leader
// were opened.
func (h *cluster) ignorePromises() *[]int64 {
	var came []int64
	h.delay = func(_ *server, e Event) bool {
		if z, ok := e.(Zab); ok {
			if in, ok := z.Event.(zab.Received); ok && in.Packet.Type == peerwire.PacketFollowerInfo {
				in.Packet.Zxid = 0
				came = append(came, h.now.Mono)
			}
		}
		return false
	}
	return &came
}

// promised returns an ensemble of three in which a follower returns after it has promised
// a later epoch than the current one.
func promised(t *testing.T, epoch wire.Epoch) (h *cluster, s *server, came *[]int64) {
	h = newCluster(t, 3, true)
	h.run(100)
	_, c := h.connect(h.servers[2], 0)
	h.run(1)
	h.create(h.servers[2], c, 1, "/x")
	h.run(100)
	s = h.servers[0]
	h.kill(s)
	h.run(10)
	came = h.ignorePromises()
	s.acc = epoch
	h.start(s)
	return h, s, came
}

// TestFollowerPromisedLaterEpoch: a server has promised a later epoch than that of a
// leader that ignores promises. It retries once at once, and then at growing intervals.
// It does not disturb the other servers: only it looks for a leader.
func TestFollowerPromisedLaterEpoch(t *testing.T) {
	h, s, came := promised(t, 9)
	h.run(30_000)
	n := len(*came)
	if n < 30 || n > 45 {
		t.Fatalf("tried %d times in 30 s", n)
	}
	if gap := (*came)[1] - (*came)[0]; gap > 1 {
		t.Errorf("the second attempt came %d ms after the first", gap)
	}
	for i := 2; i < n; i++ {
		gap, want := (*came)[i]-(*came)[i-1], min(10<<(i-2), int64(1000))
		if gap < want || gap > want+100 {
			t.Errorf("attempt %d came %d ms after the one before, want %d", i+1, gap, want)
		}
	}
	if s.r.Status().Serving || !s.r.JoinFails() {
		t.Error("the follower serves under a leader of an earlier epoch than it has promised")
	}
	for _, o := range h.servers[1:] {
		if n := len(o.r.Elections()); n != 1 || !o.r.Status().Serving {
			t.Errorf("server %d has had %d elections", o.id, n)
		}
	}
}

// TestLinkEndsAfterAnswer: the end of a link arrives together with a message from the
// leader. The message counts: the server does not redial as if the leader had said
// nothing.
func TestLinkEndsAfterAnswer(t *testing.T) {
	h, s, came := promised(t, 9)
	ignorePromises := h.delay
	h.delay = func(to *server, e Event) bool {
		if z, ok := e.(Zab); ok && to == s {
			if in, ok := z.Event.(zab.Received); ok && in.Packet.Type == peerwire.PacketLeaderInfo {
				s.r.Step(h.now, e)
				s.r.Step(h.now, Zab{zab.Closed{Link: in.Link, Why: "end of file"}})
				return true
			}
		}
		return ignorePromises(to, e)
	}
	h.run(againMinMS - 1)
	if len(*came) != 2 || !s.r.JoinFails() {
		t.Errorf("%d attempts, joining has failed: %v", len(*came), s.r.JoinFails())
	}
}

// TestJoinsAgainForASnapshot: the leader tells a follower to cut off transactions that the leader had when it was elected. The follower
// keeps them, connects to the same leader again at once, without an election, and gets a snapshot.
func TestJoinsAgainForASnapshot(t *testing.T) {
	h := newCluster(t, 3, true)
	h.run(100)
	s, first := h.servers[0], h.servers[2]
	_, c := h.connect(s, 0)
	h.run(1)
	h.create(s, c, 1, "/x")
	h.run(100)
	h.kill(first) // the next leader is elected with a history
	h.run(1000)
	h.start(first)
	h.run(1000)
	h.kill(s)
	h.run(100)
	opened, told, again := 0, int64(0), int64(0)
	h.delay = func(to *server, e Event) bool {
		z, ok := e.(Zab)
		if !ok {
			return false
		}
		in, ok := z.Event.(zab.Received)
		switch {
		case ok && in.Packet.Type == peerwire.PacketFollowerInfo:
			opened, again = opened+1, h.now.Mono
		case ok && to == s && opened == 1 && in.Packet.Type == peerwire.PacketDiff:
			told = h.now.Mono
			in.Packet.Type, in.Packet.Zxid = peerwire.PacketTrunc, s.log[0].Zxid
		}
		return false
	}
	before := len(s.log)
	h.start(s)
	h.run(1)
	if !s.r.Status().Serving || opened != 2 || h.snapshots != 1 || len(s.r.Elections()) != 1 || s.r.JoinFails() {
		t.Errorf("serving %v, %d links, %d snapshots, elections %v", s.r.Status().Serving, opened, h.snapshots, s.r.Elections())
	}
	if again != told {
		t.Errorf("connects again at %d ms, was told to cut off at %d ms", again, told)
	}
	var stat wire.StatResponse
	if code := s.r.tree.Exists(anonymousReader{}, "/x", false, &stat); code != wire.OK || before < 2 {
		t.Errorf("/x: %v; the log had %d transactions", code, before)
	}
}

// TestPausesBeforeAttempts checks the pauses before a server joins a leader again whose terms end before they serve.
func TestPausesBeforeAttempts(t *testing.T) {
	for attempts, want := range []int64{0, 0, 10, 20, 40, 80, 160, 320, 640, 1000, 1000} {
		if got := (&failedTerm{attempts: attempts}).againMS(); got != want {
			t.Errorf("after %d attempts: %d ms, want %d", attempts, got, want)
		}
	}
	if got := (&failedTerm{attempts: 1000}).againMS(); got != 1000 {
		t.Errorf("after 1000 attempts: %d ms", got)
	}
}

// TestPauseDoesNotDelayElection: when the leader dies while a server pauses before it
// joins that leader again, the others elect with that server without delay. The next
// epoch is later than the one promised.
func TestPauseDoesNotDelayElection(t *testing.T) {
	took := map[wire.Epoch]int64{}
	for _, epoch := range []wire.Epoch{0, 9} {
		h, s, came := promised(t, epoch)
		h.run(15_000)
		if epoch != 0 && h.now.Mono-(*came)[len(*came)-1] > againMaxMS/2 {
			h.run(againMaxMS) // ends within the pause
		}
		h.delay = nil
		h.kill(h.servers[2])
		began := h.now.Mono
		serves := func(o *server) bool { st := o.r.Status(); return st.Serving && st.Leader != 3 }
		for !serves(s) || !serves(h.servers[1]) {
			if h.run(1); h.now.Mono > began+againMaxMS {
				t.Fatalf("no leader %d ms after the end of the last one", h.now.Mono-began)
			}
		}
		took[epoch] = h.now.Mono - began
		if now := s.r.Status().Epoch; now <= epoch || s.r.JoinFails() {
			t.Errorf("serves epoch %d, %d was promised", now, epoch)
		}
	}
	if took[9] > took[0]+1 {
		t.Errorf("%d ms without a leader, %d when no server pauses", took[9], took[0])
	}
}

// TestPromiseFarAhead: servers that could follow the first candidate have promised much
// later epochs than it knows of. Its term fails, and one of them leads next. All then
// serve in an epoch later than every promised one.
func TestPromiseFarAhead(t *testing.T) {
	h := newCluster(t, 3, true)
	for _, s := range h.servers {
		h.kill(s)
	}
	h.servers[0].acc, h.servers[1].acc = 200_000, 200_001
	for _, s := range h.servers {
		h.start(s)
	}
	h.run(10_000)
	for _, s := range h.servers {
		if now := s.r.Status(); !now.Serving || now.Leader == 3 || now.Epoch <= 200_001 {
			t.Errorf("server %d: %+v", s.id, now)
		}
	}
}

// TestRefusedEpochIsForgotten: the disk of a server refuses to save the epoch that the server
// accepts. The server has not promised that epoch, also in its own memory: when it joins
// the same leader again, it saves the epoch before it promises it.
func TestRefusedEpochIsForgotten(t *testing.T) {
	h := newCluster(t, 3, true)
	s := h.servers[0]
	h.refuses = map[*server]bool{s: true}
	h.run(5000)
	if len(h.refuses) != 0 || !s.r.Status().Serving {
		t.Fatalf("the disk has refused nothing, or the server does not serve: %+v", s.r.Status())
	}
	if epoch := s.r.Status().Epoch; s.acc != epoch || s.cur != epoch {
		t.Errorf("it serves in epoch %d, and its disk has accepted epoch %d and current epoch %d", epoch, s.acc, s.cur)
	}
}

// TestFailedTermsAreForgotten: a failed term counts for a minute.
func TestFailedTermsAreForgotten(t *testing.T) {
	m := &member{opt: Member{InitLimit: 10}, tickMS: 2000, failed: failedTerms{1: {times: 2, attempts: 3, at: 1000}}}
	last := int64(1000 + 60_000)
	if all := m.failedCandidates(last); len(all) != 1 || all[0].Candidate != 1 || m.candidateTimeout(1, last) != 8*dialTimeoutMS {
		t.Errorf("%+v, %d ms", all, m.candidateTimeout(1, last))
	}
	if all := m.failedCandidates(last + 1); len(all) != 0 || m.candidateTimeout(1, last+1) != dialTimeoutMS {
		t.Errorf("later: %+v, %d ms", all, m.candidateTimeout(1, last+1))
	}
}
