package zab

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// promisedLeader returns leader 3 of three voters, to which follower 1 has promised epoch 2. Its log ends
// at 1.2, and the disk has not answered yet whether the log is durable. Earlier roles of the server have
// used generations up to 4.
func promisedLeader(t *testing.T) *Leader {
	t.Helper()
	l := NewLeader(0, LeaderOptions{TermStart: TermStart{
		ID: 3, Accepted: 1, Current: 1, Generation: 4, Committed: configuration(0, "1 2 3"), TickMS: 1000, InitLimit: 10, SyncLimit: 5,
	}}, logOf(t, "1.1", "1.2"))
	hello(l, 1)
	l.Step(0, Saved{Accepted: 2, Generation: l.generation})
	promise(l, 1)
	if out := l.Ready(); !out.Joined || out.SaveCurrent != 0 {
		t.Fatalf("joined %v, saves epoch %d before the log is durable", out.Joined, out.SaveCurrent)
	}
	return l
}

// TestCurrentEpochWaitsForTheLog: a leader saves currentEpoch only after the disk has made the whole log
// of this role durable. Answers to the duties of an earlier role say nothing about this log.
func TestCurrentEpochWaitsForTheLog(t *testing.T) {
	for _, c := range []struct {
		name  string
		event Synced
		want  wire.Epoch
	}{
		{"answer to an earlier role", Synced{Zxid: zx("1.2"), Generation: 4}, 0},
		{"a part of the log", Synced{Zxid: zx("1.1"), Generation: 5}, 0},
		{"the whole log", Synced{Zxid: zx("1.2"), Generation: 5}, 2},
	} {
		l := promisedLeader(t)
		l.Step(0, c.event)
		if out := l.Ready(); out.SaveCurrent != c.want {
			t.Errorf("%s: saves epoch %d, want %d", c.name, out.SaveCurrent, c.want)
		}
	}
}

// TestNewerConfigurationIsRefused: a leader refuses a learner whose configuration has a later version than
// its own, even if it is later by one.
func TestNewerConfigurationIsRefused(t *testing.T) {
	for _, c := range []struct {
		version int64
		refused bool
	}{{6, false}, {7, false}, {8, true}, {9, true}} {
		l := NewLeader(0, LeaderOptions{TermStart: TermStart{
			ID: 3, Committed: configuration(7, "1 2 3"), TickMS: 1000, InitLimit: 10, SyncLimit: 5,
		}}, NewLog(0, 0))
		l.Step(0, Opened{1})
		l.Step(0, Received{1, &peerwire.QuorumPacket{
			Type: peerwire.PacketFollowerInfo,
			Data: wire.Append(nil, &peerwire.LearnerInfo{Server: 1, Version: peerwire.QuorumVersion, ConfigVersion: c.version}),
		}})
		if refused := len(l.Ready().Close) == 1; refused != c.refused {
			t.Errorf("version %d, the leader has 7: refused %v", c.version, refused)
		}
	}
}

// TestLateFollowerGetsOutstandingProposals: a follower that joins a serving leader gets the outstanding
// proposals behind NEWLEADER. Its ACK of NEWLEADER does not acknowledge them, because they are not part
// of the history.
func TestLateFollowerGetsOutstandingProposals(t *testing.T) {
	l := establishedLeader(t, 3, 2, configuration(0, "1 2 3"), logOf(t, "1.1", ""))
	l.Step(0, Propose{one("2.1")})
	l.Ready()
	greet(l, 1, 1, "1.1", false)
	if got := packets(l.Ready().Send); !strings.HasSuffix(got, "NEWLEADER 2.0, PROPOSAL 2.1") {
		t.Errorf("sent %s", got)
	}
	ack(l, "2.0", 1)
	l.Step(0, Synced{zx("2.1"), l.generation})
	if out := l.Ready(); len(out.Commit) != 0 {
		t.Errorf("committed %v, which only the leader has on its disk", zxids(out.Commit))
	}
	ack(l, "2.1", 1)
	if out := l.Ready(); len(out.Commit) != 1 {
		t.Errorf("committed %v after the ACK of 2.1", zxids(out.Commit))
	}
}

// TestNoRequestBeforeUpToDate: a learner may send requests when it was told to serve. A leader that does
// not serve yet closes the link of a learner that sends one before, and does not pass the request on.
func TestNoRequestBeforeUpToDate(t *testing.T) {
	l := promisedLeader(t)
	ack(l, "2.0", 1)
	if k := l.linkOf(1); k.state != linkSynced || l.Serving() {
		t.Fatalf("link state %d, serving %v", k.state, l.Serving())
	}
	l.Ready()
	body := wire.Append(nil, &peerwire.ForwardedRequest{Session: 7, Op: wire.OpDelete})
	l.Step(0, Received{1, &peerwire.QuorumPacket{Type: peerwire.PacketRequest, Data: body}})
	if out := l.Ready(); len(out.Inputs) != 0 || len(out.Close) != 1 {
		t.Errorf("passed on %v, closed %v", out.Inputs, out.Close)
	}
}

// TestLeaderNoticesLostQuorumBetweenLinkChecks: each tick a leader checks that it has heard from a quorum
// within syncLimit, also when the next check of the links is not due.
func TestLeaderNoticesLostQuorumBetweenLinkChecks(t *testing.T) {
	l := establishedLeader(t, 3, 2, configuration(0, "1 2 3"), logOf(t, "1.1", "")) // syncLimit is 10,000 ms
	greet(l, 1, 1, "1.1", false)
	ack(l, "2.0", 1)
	for _, now := range []int64{2000, 4000, 6000, 8000} {
		l.Step(now, Tick{})
	}
	l.now = 8000
	ack(l, "2.0", 1) // heard from at 8000
	for _, now := range []int64{10_000, 12_000, 14_000, 16_000, 17_950} {
		l.Step(now, Tick{})
	}
	if l.Ready(); !l.Serving() || l.nextLinkCheck <= 18_001 || l.nextQuorumCheck > 18_001 {
		t.Fatalf("serving %v, link check at %d, quorum check at %d", l.Serving(), l.nextLinkCheck, l.nextQuorumCheck)
	}
	l.Step(18_001, Tick{})
	if out := l.Ready(); !strings.Contains(out.GiveUp, "heard from") {
		t.Errorf("gave up %q after a silence of 10,001 ms", out.GiveUp)
	}
}

// TestLeaseCountsFromTheAnsweredPing: a lease counts from when the last ping that a quorum has answered
// was sent. It does not matter when the answer arrives, or whether later pings are unanswered. A suspend
// of the machine makes all earlier pings older, whether they are answered or not.
func TestLeaseCountsFromTheAnsweredPing(t *testing.T) {
	l := establishedLeader(t, 3, 2, configuration(0, "1 2 3"), logOf(t, "1.1", ""))
	greet(l, 1, 1, "1.1", false)
	ack(l, "2.0", 1)
	l.linkOf(1).native = true
	answer := Received{1, pack(peerwire.PacketPing, "0", nil)}
	const lease = 500
	for i, c := range []struct {
		now   int64
		event Event
		want  int64
	}{
		{1000, Tick{}, -1}, // each tick sends a ping
		{1100, Tick{}, -1},
		{1250, answer, 1000 + lease},
		{1260, answer, 1100 + lease},
		{1300, Tick{}, 1100 + lease},
		{1350, Slept{5000}, 1100 - 5000 + lease},
		{1400, Tick{}, 1100 - 5000 + lease},
		{1420, answer, 1300 - 5000 + lease},
		{1430, answer, 1400 + lease},
	} {
		if l.Step(c.now, c.event); l.Lease() != c.want {
			t.Errorf("event %d, %T at %d: lease until %d, want %d", i, c.event, c.now, l.Lease(), c.want)
		}
	}
}

// TestLeaderDefaults shows what counts for options that are not set. Half a tick limits heartbeats, and half of syncLimit
// the lease.
func TestLeaderDefaults(t *testing.T) {
	for _, c := range []struct {
		tick             int64
		o                LeaderOptions
		heartbeat, lease int64
		snaps, diffs     int
		counter          uint32
	}{
		{2000, LeaderOptions{}, 100, 500, 10, 100, math.MaxUint32 - 1},
		{100, LeaderOptions{}, 50, 250, 10, 100, math.MaxUint32 - 1},
		{2000, LeaderOptions{HeartbeatMS: 7, LeaseMS: 8, SnapMax: 1, DiffMax: 2, CounterMax: 3}, 7, 8, 1, 2, 3},
	} {
		o := c.o
		o.TickMS, o.SyncLimit = c.tick, 5
		o.defaults()
		if o.HeartbeatMS != c.heartbeat || o.LeaseMS != c.lease || o.SnapMax != c.snaps || o.DiffMax != c.diffs || o.CounterMax != c.counter {
			t.Errorf("a tick of %d ms, %+v: %+v", c.tick, c.o, o)
		}
	}
}

// TestCompatibleLeaderGivesNoLease: only a native leader sends a lease.
func TestCompatibleLeaderGivesNoLease(t *testing.T) {
	for native, want := range map[bool]int64{true: 500, false: 0} {
		r := &Learner{native: native, lease: 500}
		if got := r.LeaseMS(); got != want {
			t.Errorf("native %v: %d ms", native, got)
		}
	}
}

// TestEpochMax: the zxids of the highest epoch, and of the one that a leader would propose after it, are not negative, and later ones are.
func TestEpochMax(t *testing.T) {
	if wire.MakeZxid(EpochMax+1, 0xffffffff) < 0 || wire.MakeZxid(EpochMax+2, 0) >= 0 {
		t.Errorf("%v, %v", wire.MakeZxid(EpochMax+1, 0xffffffff), wire.MakeZxid(EpochMax+2, 0))
	}
}

// TestLinkOpensOnce: a link that is there already does not begin anew.
func TestLinkOpensOnce(t *testing.T) {
	l := promisedLeader(t)
	before := maps.Clone(l.links)
	for _, id := range slices.Sorted(maps.Keys(before)) {
		l.Step(1, Opened{id})
	}
	if !maps.Equal(l.links, before) || len(l.order) != len(before) {
		t.Errorf("%d links in order, %d before", len(l.order), len(before))
	}
}

// TestLeaderPingsWhileItSynchronises: a learner that takes long to synchronise hears from its leader meanwhile, or it would give up.
func TestLeaderPingsWhileItSynchronises(t *testing.T) {
	l := promisedLeader(t)
	pings := 0
	for range 30 {
		l.Step(l.now+100, Tick{})
		for _, m := range l.Ready().Send {
			if m.Link == 1 && m.Packet.Type == peerwire.PacketPing {
				pings++
			}
		}
	}
	if l.phase != synchronising || pings != 6 { // one each half tick
		t.Errorf("%d pings in 3 s, phase %v", pings, l.phase)
	}
}

// TestLeaderThatGivesUpSaysSo: what the leader tells its operator names its role, and no link to another leader.
func TestLeaderThatGivesUpSaysSo(t *testing.T) {
	l := promisedLeader(t)
	l.Step(70, Refused{Zxid: zx("1.2"), Generation: l.generation, Why: "no space"})
	want := GaveUp{Role: peerwire.Leading, Epoch: 2, Why: "the disk: no space", AfterMS: 70}
	if out := l.Ready(); !slices.Contains(out.Observations, Observation(want)) {
		t.Errorf("%+v, want %+v", out.Observations, want)
	}
}
