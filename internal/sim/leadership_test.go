package sim

import (
	"fmt"
	"testing"

	"bellwether/internal/election"
	"bellwether/internal/peerwire"
	"bellwether/internal/replica"
	"bellwether/internal/sim/client"
	"bellwether/internal/sim/machine"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// handsOver makes the leader transfer leadership to a server (nil: to the most suitable one),
// waits until it no longer leads, and returns it.
func (s *scene) handsOver(to *server, leaving int64) (old *server) {
	s.t.Helper()
	old = s.leader()
	a := Act{Kind: TransferLeadership, A: int(old.id), Value: leaving}
	if to != nil {
		a.B = int(to.id)
	}
	s.Do(a)
	s.until("the leader has transferred leadership", machine.Second, func() bool { return !old.leads() })
	return old
}

// transferred returns the record of the election by which a server came to its role.
func (v *server) transferred() election.Record {
	all := v.replica.Elections()
	return all[len(all)-1]
}

// storm makes each client send many writes at a time.
func storm(clients []*client.Client, path string, calls *[]*client.Call) {
	for _, c := range clients {
		for range 5 {
			*calls = append(*calls, c.Ask(c.Write(path)))
		}
	}
}

// TestTransferAnswersEveryWriteOnce transfers leadership with writes in flight on every
// server. It checks that nothing is lost, and that each write is answered on the connection
// on which it came. The checker atMostOnce detects a write that is carried out twice.
func TestTransferAnswersEveryWriteOnce(t *testing.T) {
	transferred := 0
	for seed := range uint64(20) {
		s := newScene(t, Options{Seed: seed + 1, Voters: 3, Observers: 1, KeepClients: 1})
		var clients []*client.Client
		var calls []*client.Call
		for _, v := range s.servers {
			c := s.client(v)
			clients = append(clients, c)
		}
		s.carried(clients[0].Ask(clients[0].Creation("/a")))
		epoch := s.leader().standing.Epoch
		old := s.leader()
		for _, v := range s.servers { // so that many writes are outstanding
			s.Do(Act{Kind: SlowDisk, A: int(v.id), Value: 5 * machine.Millisecond})
		}
		storm(clients, "/a", &calls)
		s.until("something is outstanding", machine.Second, func() bool { return old.log.Last() > old.seen.zxid })
		s.Do(Act{Kind: TransferLeadership, A: int(old.id)})
		for range 20 {
			s.RunFor(s.random.Below(3 * machine.Millisecond))
			storm(clients, "/a", &calls)
		}
		for _, k := range calls {
			s.carried(k)
		}
		for _, c := range clients {
			if c.Connections != 1 {
				t.Errorf("seed %d: the client of server %d has connected %d times", seed+1, c.Only, c.Connections)
			}
		}
		now := s.leader()
		if now.transferred().Decision.Ending == election.LeadershipTransferred {
			transferred++
			if now == old {
				t.Errorf("seed %d: server %d leads again", seed+1, old.id)
			}
		}
		if now.standing.Epoch != epoch+1 {
			t.Errorf("seed %d: epoch %d follows epoch %d", seed+1, now.standing.Epoch, epoch)
		}
	}
	if transferred < 10 { // a connection that is reset loses the packet that names the successor
		t.Errorf("leadership was transferred in %d of 20 runs", transferred)
	}
}

// TestTransferToADeadServer ends the named successor before it leads. It checks that the others
// elect a leader within about the time that the successor had.
func TestTransferToADeadServer(t *testing.T) {
	for seed := range uint64(10) {
		s := newScene(t, Options{Seed: seed + 1, Voters: 5})
		next := s.other()
		old := s.handsOver(next, 0)
		since := s.now
		next.powerOff()
		s.until("another leads", 5*machine.Second, func() bool { return s.leader() != nil && s.leader() != next })
		if how := s.leader().transferred(); how.Decision.Ending == election.LeadershipTransferred {
			t.Errorf("seed %d: %v", seed+1, how.String())
		}
		if took := s.now - since; took > 1500*machine.Millisecond {
			t.Errorf("seed %d: it took %d ms", seed+1, took/machine.Millisecond)
		}
		if old.transferred().Why == "" {
			t.Errorf("seed %d: the old leader does not know why", seed+1)
		}
	}
}

// TestTransferEndsTheEpoch checks that a leader that has transferred leadership never
// serves in its epoch again, whichever servers are cut off from each other during the
// transfer.
func TestTransferEndsTheEpoch(t *testing.T) {
	for seed := range uint64(40) {
		s := newScene(t, Options{Seed: seed + 1, Voters: 3, KeepClients: 1})
		old := s.leader()
		epoch := old.standing.Epoch
		c := s.client(old)
		s.carried(c.Ask(c.Creation("/a")))
		s.Do(Act{Kind: TransferLeadership, A: int(old.id)})
		s.RunFor(s.random.Below(2 * machine.Millisecond))
		s.cut(s.servers[s.random.Below(3)])
		for range 5 {
			c.Ask(c.Write("/a"))
		}
		s.until("it serves no more", 5*machine.Second, func() bool { return !old.leads() })
		s.RunFor(s.random.Below(2 * machine.Second))
		s.Do(Act{Kind: Heal, A: 1})
		s.until("all serve", 20*machine.Second, func() bool {
			if old.standing.Serving && old.standing.Epoch <= epoch {
				t.Fatalf("seed %d: it serves in epoch %d again", seed+1, epoch)
			}
			return s.allServe() == ""
		})
	}
}

// TestTransferStoppedByAFollowerAhead checks that a follower with more history stops the
// named successor. Nothing that was committed is lost, and an election makes the follower
// the leader. No leader names such a successor, so the test forges the packet.
func TestTransferStoppedByAFollowerAhead(t *testing.T) {
	s := newScene(t, Options{Voters: 3})
	old := s.leader()
	var behind, ahead *server
	for _, v := range s.servers {
		switch {
		case v == old:
		case behind == nil:
			behind = v
		default:
			ahead = v
		}
	}
	s.Do(Act{Kind: Cut, A: int(old.id), B: int(behind.id)})
	c := s.client(ahead)
	s.carried(c.Ask(c.Creation("/a")))
	s.carried(c.Ask(c.Write("/a")))
	if last := behind.log.Last(); last >= ahead.log.Last() {
		t.Fatalf("nobody is behind: %v", last)
	}
	old.powerOff()
	for _, v := range []*server{behind, ahead} {
		data := wire.Append(nil, &peerwire.Handover{Leader: behind.id})
		v.push(replica.Zab{Event: zab.Received{Link: v.linked, Packet: &peerwire.QuorumPacket{Type: peerwire.PacketHandOver, Data: data}}})
	}
	s.until("it takes the role", machine.Second, func() bool { return behind.standing.Role == peerwire.Leading })
	s.until("the other leads", 5*machine.Second, func() bool { return s.leader() == ahead })
	if s.reached[situationLeader] != 2 {
		t.Errorf("%d leaders", s.reached[situationLeader])
	}
}

// TestTransferInAMixedEnsemble transfers leadership while some servers do not know the
// packet. The transfer needs a quorum of servers that know it. The others find the new
// leader by its notifications.
func TestTransferInAMixedEnsemble(t *testing.T) {
	transferred := 0
	for seed := range uint64(10) {
		s := newScene(t, Options{Seed: seed + 1, Voters: 5, Compatible: 2})
		old := s.leader()
		if old.compatible {
			t.Fatal("a compatible server leads")
		}
		began := s.now
		s.handsOver(nil, 0)
		s.until("all serve", 10*machine.Second, func() bool { return s.allServe() == "" })
		now := s.leader()
		if now.transferred().Decision.Ending != election.LeadershipTransferred {
			continue // a connection that was reset has lost the packet that names the successor
		}
		transferred++
		if now == old || now.compatible {
			t.Errorf("seed %d: server %d leads: %v", seed+1, now.id, now.transferred().Decision)
		}
		for _, v := range s.servers[:2] {
			if r := v.transferred(); r.Decision.Ending != election.Follows {
				t.Errorf("seed %d: compatible server %d: %v", seed+1, v.id, r.String())
			}
		}
		if took := s.now - began; took > 500*machine.Millisecond {
			t.Errorf("seed %d: it took %d ms", seed+1, took/machine.Millisecond)
		}
	}
	if transferred < 4 {
		t.Errorf("leadership was transferred in %d of 10 runs", transferred)
	}
}

// TestTransferNeedsAQuorumThatKnowsTransfers checks that the leader stays if the servers that know
// the packet are not a quorum: two of five, one of three, or two of three if one of them is a
// leader about to stop.
func TestTransferNeedsAQuorumThatKnowsTransfers(t *testing.T) {
	for _, o := range []struct {
		voters, plain int
		leaving       int64
	}{{5, 3, 0}, {3, 1, 1}, {3, 2, 0}} {
		s := newScene(t, Options{Voters: o.voters, Compatible: o.plain})
		old := s.leader()
		s.Do(Act{Kind: TransferLeadership, A: int(old.id), Value: o.leaving})
		s.RunFor(machine.Second)
		if s.leader() != old || s.reached[situationTransfer] != 0 {
			t.Errorf("%s: it began", fmt.Sprint(o))
		}
	}
}
