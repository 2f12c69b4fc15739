package replica

import "testing"

// TestStallIsReported: a stall of the disk is reported once and appears in Status while it
// lasts, and its end is reported too.
func TestStallIsReported(t *testing.T) {
	h := newCluster(t, 3, true)
	h.run(100)
	s := h.servers[0]
	told := func() (texts []string) {
		for _, w := range s.r.Ready().Observations {
			texts = append(texts, w.String())
		}
		return texts
	}
	s.r.Step(h.now, DiskStalled{Since: h.now.Mono - 1200, Duty: "fsync of log.1"})
	s.r.Step(h.now, DiskStalled{Since: h.now.Mono - 1200, Duty: "fsync of log.1"})
	if got := s.r.Status().Abstains; got != "the disk does not answer: fsync of log.1" {
		t.Errorf("Abstains is %q", got)
	}
	if got := told(); len(got) != 1 {
		t.Errorf("reported %q", got)
	}
	s.r.Step(h.now, DiskAnswered{})
	s.r.Step(h.now, DiskAnswered{})
	if got := s.r.Status().Abstains; got != "" {
		t.Errorf("Abstains is %q after the disk has answered", got)
	}
	if got := told(); len(got) != 1 {
		t.Errorf("reported %q", got)
	}
}

// hang makes the disk of a server answer nothing more, and reports that as the driver
// does.
func (h *cluster) hang(s *server) {
	h.silent = map[*server]bool{s: true}
	s.inbox = append(s.inbox, DiskStalled{Since: h.now.Mono - 1000, Duty: "fsync of log.1"})
}

// TestStalledLeaderTransfersLeadership: a leader whose disk stalls transfers leadership
// to a follower that has the whole history, if the others have a quorum without it. It
// then follows, and counts towards quorums again when its disk has answered.
func TestStalledLeaderTransfersLeadership(t *testing.T) {
	h := newCluster(t, 3, true)
	h.run(500)
	old := h.leader()
	_, c := h.connect(old, 0)
	h.hang(old)
	h.create(old, c, 1, "/x")
	h.run(300)
	next := h.leader()
	if next == old {
		t.Fatal("the stalled leader still leads")
	}
	if st := next.r.Status(); !st.Appointed {
		t.Errorf("%+v, by an election", st)
	}
	h.run(5000)
	if st := old.r.Status(); st.Serving || st.Abstains == "" || h.leader() != next {
		t.Errorf("%+v: the server has promised an epoch that it could not save", st)
	}
	h.answer(old)
	h.run(3000)
	if st := old.r.Status(); !st.Serving || st.Abstains != "" {
		t.Errorf("%+v when the disk has answered", st)
	}
}

// TestStalledLeaderStaysWhereItIsNeeded: a stalled leader with one follower of three
// needs itself for the quorum. It keeps leading, and transfers leadership when the third
// server is back.
func TestStalledLeaderStaysWhereItIsNeeded(t *testing.T) {
	h := newCluster(t, 3, true)
	h.run(500)
	h.connect(h.leader(), 0) // so that the histories are not empty
	h.kill(h.servers[0])
	h.run(500)
	old := h.leader()
	h.hang(old)
	h.run(5000)
	if h.leader() != old {
		t.Fatal("the stalled leader has given up, and nobody can take its place")
	}
	h.start(h.servers[0])
	h.run(3000)
	if h.leader() == old {
		t.Error("the stalled leader still leads, although the others have a quorum")
	}
}

// TestStalledLeaderStaysWhereAllDisksAreSlow: if the followers acknowledge nothing
// either, the leader keeps leading, because a change would not help.
func TestStalledLeaderStaysWhereAllDisksAreSlow(t *testing.T) {
	h := newCluster(t, 3, true)
	h.run(500)
	old := h.leader()
	_, c := h.connect(old, 0)
	h.silent = map[*server]bool{}
	for _, s := range h.servers {
		h.silent[s] = true
	}
	h.create(old, c, 1, "/x")
	h.run(300)
	old.inbox = append(old.inbox, DiskStalled{Since: h.now.Mono - 1000, Duty: "fsync of log.1"})
	h.run(500)
	if st := old.r.Status(); !st.Serving || h.leader() != old || st.Abstains == "" {
		t.Errorf("%+v: the leader has given up for a follower that is as slow", st)
	}
}

// TestStalledServerBecomesCandidateAgain: a server that looks for a leader abstains while
// its disk does not answer, and is a candidate again when it does.
func TestStalledServerBecomesCandidateAgain(t *testing.T) {
	h := newCluster(t, 3, true)
	h.run(500)
	h.kill(h.servers[2])
	h.kill(h.servers[1])
	h.hang(h.servers[0])
	h.run(500)
	h.start(h.servers[1])
	h.run(5000)
	if st := h.servers[1].r.Status(); st.Serving {
		t.Fatalf("%+v: the server was elected with the vote of a server that abstains", st)
	}
	h.answer(h.servers[0])
	h.run(3000)
	if st := h.leader().r.Status(); !st.Serving {
		t.Errorf("%+v", st)
	}
}

// TestStallNamesADuty: a driver that does not say which duty is late is told about some duty of the log writer.
func TestStallNamesADuty(t *testing.T) {
	h := newCluster(t, 1, true)
	h.run(100)
	r := h.servers[0].r
	r.Step(h.now, DiskStalled{Since: h.now.Mono - 1000})
	if got := r.Status().Abstains; got != "the disk does not answer: a task of the log writer" {
		t.Errorf("%q", got)
	}
}
