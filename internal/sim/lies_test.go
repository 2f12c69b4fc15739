package sim

import (
	"slices"
	"strings"
	"testing"

	"bellwether/internal/driver"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/machine"
	"bellwether/wire"
)

// liar brings an ensemble of three to the point at which a write is acknowledged by the
// leader and by a follower whose disk lies. If third is false, the third server is cut off
// and does not have the write. Then the follower loses power and starts again.
func liar(t *testing.T, seed uint64, third bool) (s *scene, leader, liar *server) {
	s = newScene(t, Options{Seed: seed, Voters: 3, KeepClients: 1})
	leader, liar = s.leader(), s.other()
	last := s.without(leader, liar)[0]
	c := s.client(leader)
	s.carried(c.Ask(c.Creation("/a")))
	s.until("all have the znode", 5*machine.Second, func() bool { return s.allEqual() == "" })
	s.Do(Act{Kind: Lie, A: int(liar.id)})
	if !third {
		s.cut(last)
	}
	s.carried(c.Ask(c.Write("/a")))
	s.carried(c.Ask(c.Write("/a")))
	if third {
		s.until("all have the write", 5*machine.Second, func() bool { return s.allEqual() == "" })
		s.RunFor(machine.Second) // the third server may have applied it before its disk has it
	}
	s.Do(Act{Kind: PowerOff, A: int(liar.id)})
	return s, leader, liar
}

// lostByALiar ends the leader after the follower has lost what it acknowledged. The other
// two servers then elect a leader without the acknowledged write.
func lostByALiar(t *testing.T, seed uint64) *scene {
	s, leader, liar := liar(t, seed, false)
	s.Do(Act{Kind: PowerOff, A: int(leader.id)})
	s.Do(Act{Kind: Start, A: int(liar.id)})
	s.Do(Act{Kind: Heal, A: 1})
	s.RunUntil(func() bool { return s.ended() }, 20*machine.Second)
	return s
}

// TestALyingDiskCanLoseAnAcknowledgedWrite checks that the run reports a write that only a
// lying disk and the old leader had, and that this is not a failure.
func TestALyingDiskCanLoseAnAcknowledgedWrite(t *testing.T) {
	for seed := uint64(1); seed <= 10; seed++ {
		s := lostByALiar(t, seed)
		if s.failed != nil || !s.over || s.reached[situationSuspended] == 0 || s.reached[situationAckedLost] == 0 {
			t.Errorf("seed %d: failed: %v, over: %v, notes %q", seed, s.failed, s.over, s.notes)
		}
		if r := s.result(); !r.Over || len(r.Notes) < 2 || !strings.Contains(r.Notes[0], "acknowledged writes may be lost") || !strings.Contains(r.Notes[1], "the run ended") {
			t.Errorf("seed %d: the result does not say so: %+v", seed, r.Notes)
		}
	}
}

// TestALyingDiskLosesNothingThatOthersHave checks that nothing is suspended, and nothing is
// lost, if every quorum has a server with an honest disk that has the write.
func TestALyingDiskLosesNothingThatOthersHave(t *testing.T) {
	for seed := uint64(1); seed <= 10; seed++ {
		s, leader, liar := liar(t, seed, true)
		s.Do(Act{Kind: PowerOff, A: int(leader.id)})
		s.Do(Act{Kind: Start, A: int(liar.id)})
		s.until("another server leads", 20*machine.Second, func() bool { return s.leader() != nil && s.leader() != leader })
		s.Do(Act{Kind: Start, A: int(leader.id)})
		s.whole()
		if s.reached[situationLied] == 0 || s.reached[situationRegained] == 0 {
			t.Errorf("seed %d: the disk has lost nothing, or has not regained it", seed)
		}
		if s.reached[situationSuspended] > 0 {
			t.Errorf("seed %d: %q", seed, s.notes)
		}
	}
}

// TestALiarThatLosesNoPowerKeepsItsWord checks that a process that is only killed loses
// nothing, and that a disk that no longer lies has everything.
func TestALiarThatLosesNoPowerKeepsItsWord(t *testing.T) {
	s, _, liar := liar(t, 1, true)
	s.Do(Act{Kind: Start, A: int(liar.id)})
	s.whole()
	lost := s.reached[situationLied]
	s.write(s.leader(), 3)
	s.Do(Act{Kind: Kill, A: int(liar.id)})
	s.Do(Act{Kind: Start, A: int(liar.id)})
	s.whole()
	s.Do(Act{Kind: EndLie, A: int(liar.id)})
	s.Do(Act{Kind: PowerOff, A: int(liar.id)})
	s.Do(Act{Kind: Start, A: int(liar.id)})
	s.whole()
	if n := s.reached[situationLied]; n != lost {
		t.Errorf("the disk fell back %d times, want %d", n, lost)
	}
}

// TestOnlyLossIsExcused checks that a rule which lying disks cannot break fails a run in any
// case, and that acknowledged writes must not be lost while promises hold.
func TestOnlyLossIsExcused(t *testing.T) {
	lost := check.Established{Server: 1, Role: peerwire.Leading, Epoch: 99}
	early := check.Promised{Server: 2, ByLearner: true, Packet: &peerwire.QuorumPacket{Type: peerwire.PacketAck, Zxid: wire.MakeZxid(99, 1)}}
	for _, c := range []struct {
		name      string
		suspended bool
		see       any
		rule      string
	}{
		{"a loss while promises hold", false, lost, "Leadership"},
		{"a loss while promises are suspended", true, lost, ""},
		{"an acknowledgement of nothing", true, early, "Durability"},
	} {
		s := newScene(t, Options{Voters: 3})
		k := s.client(nil)
		s.carried(k.Ask(k.Creation("/a")))
		if c.suspended {
			s.suspended = "a test says so"
		}
		s.see(c.see)
		switch {
		case c.rule == "" && (s.failed != nil || !s.over):
			t.Errorf("%s: failed %v, over %v", c.name, s.failed, s.over)
		case c.rule != "" && (s.failed == nil || s.failed.Rule != c.rule):
			t.Errorf("%s: %v", c.name, s.failed)
		}
	}
}

// TestEpochsCanBeForgotten checks that promises are suspended if a quorum has promised to
// follow a leader and another quorum does not know its epoch any more.
func TestEpochsCanBeForgotten(t *testing.T) {
	s := newScene(t, Options{Voters: 3})
	one, two := s.servers[0], s.servers[1]
	epoch := one.saved.Accepted + 1
	one.accepts(epoch)
	two.accepts(epoch)
	two.claims, two.saved.Accepted = promise{accepted: epoch}, epoch-1
	two.forgot(two.durable())
	if !strings.Contains(s.suspended, "another leader of epoch") {
		t.Errorf("servers 2 and 3 do not know epoch %d: %q", epoch, s.suspended)
	}
	s.servers[2].accepts(epoch)
	if s.suspended != "" {
		t.Errorf("servers 1 and 3 know epoch %d: %s", epoch, s.suspended)
	}
	s.checkers = slices.DeleteFunc(s.checkers, func(c check.Checker) bool { return c.Name() == "Quorums" }) // the epoch is on no disk
	twice := check.Established{Server: 1, Role: peerwire.Leading, Epoch: epoch, Zxid: s.history.Last().Zxid}
	s.see(twice)
	if twice.Server = 3; s.ended() {
		t.Fatal("the first leader ends the run")
	}
	if s.see(twice); !s.over {
		t.Errorf("server 3 may have promised epoch %d to a second leader: %v", epoch, s.failed)
	}
}

// TestFullDiskPromisesNothing checks that an epoch for which the disk has no space counts as neither promised nor current.
func TestFullDiskPromisesNothing(t *testing.T) {
	s := newScene(t, Options{Voters: 3})
	v := s.servers[0]
	before, epoch := v.saved, v.saved.Accepted+5 // the files of the next epoch are written ahead
	save := func() {
		for _, kind := range []driver.Kind{driver.SaveAccepted, driver.SaveCurrent} {
			v.writer.carryOut(&driver.Action{Kind: kind, Epoch: epoch})
		}
	}
	s.Do(Act{Kind: FullDisk, A: int(v.id)})
	if save(); v.saved != before || s.promised[epoch] != 0 {
		t.Errorf("without space: %+v, promised by %b", v.saved, s.promised[epoch])
	}
	s.Do(Act{Kind: FullDisk, A: int(v.id), Value: -1})
	if save(); v.saved.Accepted != epoch || v.saved.Current != epoch || s.promised[epoch] == 0 {
		t.Errorf("with space: %+v, promised by %b", v.saved, s.promised[epoch])
	}
}

// TestFoundersCanForgetAnEpoch checks that a server whose disk was wiped is counted among those that can elect another
// leader of an epoch only if no voter has a transaction: it votes again then.
func TestFoundersCanForgetAnEpoch(t *testing.T) {
	for _, written := range []bool{false, true} {
		s := newScene(t, Options{Voters: 3})
		if written {
			c := s.client(nil)
			s.carried(c.Ask(c.Creation("/a")))
			s.until("all have the znode", 5*machine.Second, func() bool { return s.allEqual() == "" })
		}
		one, two, three := s.servers[0], s.servers[1], s.servers[2]
		epoch := one.saved.Accepted + 1
		three.unknown, three.saved.Current = true, 0
		one.accepts(epoch)
		two.accepts(epoch)
		two.claims, two.saved.Accepted = promise{accepted: epoch}, epoch-1
		two.forgot(two.durable())
		if forgotten := strings.Contains(s.suspended, "another leader of epoch"); forgotten == written {
			t.Errorf("with a transaction: %v; promises are suspended because of %q", written, s.suspended)
		}
	}
}

// TestLeadersCanBeForgotten checks that a leader of an earlier epoch may commit its own last transactions after a quorum has
// forgotten a later leader that had committed nothing, and only then.
func TestLeadersCanBeForgotten(t *testing.T) {
	for _, forgets := range []bool{true, false} {
		s := newScene(t, Options{Voters: 3})
		c := s.client(nil)
		s.carried(c.Ask(c.Creation("/a")))
		s.until("all have the znode", 5*machine.Second, func() bool { return s.allEqual() == "" })
		last := s.history.Last().Zxid
		s.ledEpoch = last.Epoch() + 1
		for _, v := range s.servers[:2] { // the quorum of the later leader
			v.saved.Accepted, v.saved.Current = s.ledEpoch, s.ledEpoch
		}
		if forgets {
			two := s.servers[1]
			two.claims, two.saved.Current = promise{current: s.ledEpoch}, last.Epoch()
			two.forgot(two.durable())
		}
		if s.suspended != "" {
			t.Errorf("nothing can be lost: %s", s.suspended)
		}
		if excused := s.excuses(check.Committed{Txn: &record.Txn{TxnHeader: record.TxnHeader{Zxid: last + 1}}}, "PrimaryIntegrity", "too late"); excused != forgets {
			t.Errorf("server 2 has forgotten the leader of epoch %d: %v, the rule is excused: %v", s.ledEpoch, forgets, excused)
		}
	}
}

// TestPromisesStaySuspendedWhileTheyCanBeBroken checks that promises stay suspended while a server of a later epoch lacks a
// committed transaction, because it wins an election against those that have it, even if the server that had forgotten the
// later epoch has regained everything.
func TestPromisesStaySuspendedWhileTheyCanBeBroken(t *testing.T) {
	s := newScene(t, Options{Voters: 3})
	leader, f := s.leader(), s.other()
	short := s.without(leader, f)[0]
	s.Do(Act{Kind: PowerOff, A: int(short.id)})
	c := s.client(leader)
	s.carried(c.Ask(c.Creation("/a")))
	short.saved.Current++
	f.forgot(f.durable())
	f.remembers()
	if f.forgetful || !strings.Contains(s.suspended, "elect a leader without") {
		t.Errorf("server %d votes with epoch %d: forgetful %v, suspended %q", short.id, short.saved.Current, f.forgetful, s.suspended)
	}
	short.saved.Current--
	if s.weigh(); s.suspended != "" {
		t.Errorf("server %d wins no election: %s", short.id, s.suspended)
	}
}

// TestALogOfAnEarlierEpochIsOutvoted checks that promises are suspended if a server has a committed transaction on
// its disk but votes with an earlier epoch, so that a server without the transaction can be elected by it.
func TestALogOfAnEarlierEpochIsOutvoted(t *testing.T) {
	s := newScene(t, Options{Voters: 3})
	first := s.leader()
	s.Do(Act{Kind: Kill, A: int(first.id)})
	s.until("another server leads", 20*machine.Second, func() bool { return s.leader() != nil && s.leader() != first })
	s.Do(Act{Kind: Start, A: int(first.id)})
	s.until("all serve again", 20*machine.Second, func() bool { return s.allServe() == "" })
	leader, f := s.leader(), s.other()
	for _, v := range s.servers {
		if v != leader && v != f {
			s.Do(Act{Kind: PowerOff, A: int(v.id)})
		}
	}
	c := s.client(leader)
	s.carried(c.Ask(c.Creation("/a")))
	f.forgot(f.durable())
	if s.suspended != "" {
		t.Errorf("the leader and server %d have everything: %s", f.id, s.suspended)
	}
	f.saved.Current--
	s.weigh()
	if !strings.Contains(s.suspended, "elect a leader without") {
		t.Errorf("server %d votes with epoch %d: %q", f.id, f.saved.Current, s.suspended)
	}
}

// TestAVoteOfALaterEpochOutvotes checks that promises are suspended if a server without a committed transaction votes with a
// later epoch than a server that has it, and the third server has lost everything.
func TestAVoteOfALaterEpochOutvotes(t *testing.T) {
	for _, later := range []wire.Epoch{0, 1} {
		s := newScene(t, Options{Voters: 3})
		short := s.other()
		has := s.leader()
		s.cut(short)
		c := s.client(has)
		s.carried(c.Ask(c.Creation("/a")))
		s.RunFor(machine.Second)
		lost := s.without(has, short)[0]
		s.Do(Act{Kind: Kill, A: int(lost.id)})
		short.saved.Current = has.saved.Current + later
		s.Do(Act{Kind: LoseDisk, A: int(lost.id)})
		if suspended := strings.Contains(s.suspended, "elect a leader without"); suspended != (later > 0) {
			t.Errorf("server %d votes with epoch %d, server %d with epoch %d: %q", short.id, short.saved.Current, has.id, has.saved.Current, s.suspended)
		}
	}
}

// TestLiesGoOnWithFullRules plays seeds in which disks lie, and checks that most of them
// reach their end with nothing lost.
func TestLiesGoOnWithFullRules(t *testing.T) {
	over, reached := 0, map[string]int{}
	const seeds = 30
	for seed := range uint64(seeds) {
		r := play(t, Options{Seed: seed + 1, Lies: 1, Events: 6000})
		if r.Over {
			over++
		}
		for name, n := range r.Reached {
			reached[name] += n
		}
	}
	for _, x := range []situation{situationLied, situationRegained, situationSuspended} {
		if reached[situationNames[x]] == 0 {
			t.Errorf("not reached: %s", situationNames[x])
		}
	}
	if t.Logf("%d of %d runs ended early", over, seeds); over > seeds/2 {
		t.Errorf("%d of %d runs ended early", over, seeds)
	}
}
