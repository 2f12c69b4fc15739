package sim

import (
	"testing"

	"bellwether/internal/sim/client"
	"bellwether/internal/sim/machine"
	"bellwether/wire"
)

// everybodys returns the number of servers whose tree contains the session.
func (s *scene) everybodys(id wire.SessionID) (n int) {
	for _, v := range s.servers {
		if _, ok := v.tree.Session(id); ok {
			n++
		}
	}
	return n
}

// TestLocalSessionsStayWithTheirServer checks that a local session, its connection and its
// watches outlive a change of leaders. The session cannot move to another server, and ends
// with its server.
func TestLocalSessionsStayWithTheirServer(t *testing.T) {
	for seed := range uint64(10) {
		s := newScene(t, Options{Seed: seed + 1, Voters: 3, KeepClients: 1, LocalSessions: 1})
		at := s.other()
		c := s.client(at)
		session, tries := c.Session, c.Connections
		s.carried(c.Ask(c.Creation("/a")))
		s.carried(c.Ask(client.Get("/a", true)))
		s.Do(Act{Kind: Kill, A: int(s.leader().id)})
		s.carried(c.Ask(c.Write("/a")))
		if c.Session != session || c.Connections != tries || s.everybodys(session) != 0 {
			t.Errorf("seed %d: session %v, before %v; connection %d, before %d", seed+1, c.Session, session, c.Connections, tries)
		}
		s.Do(Act{Kind: Kill, A: int(at.id)})
		s.supervise()
		s.until("it has another session", 20*machine.Second, func() bool { return c.Attached && c.Session != session })
	}
}

// TestUpgradesWhileTheLeaderEnds ends the leader at some moment while a session becomes
// global. It checks that the create is carried out once, and that the session lives on all
// servers as long as its ephemeral.
func TestUpgradesWhileTheLeaderEnds(t *testing.T) {
	for seed := range uint64(40) {
		s := newScene(t, Options{Seed: seed + 1, Voters: 3, KeepClients: 1 - 2*int(seed%2), LocalSessions: 1})
		c := s.client(s.other())
		s.carried(c.Ask(c.Creation("/a")))
		session := c.Session
		k := c.Ask(c.EphemeralCreation("/e"))
		s.RunFor(s.random.Below(10 * machine.Millisecond))
		s.Do(Act{Kind: Kill, A: int(s.leader().id)})
		s.supervise()
		s.until("the client is served", 20*machine.Second, func() bool { return s.allServe() == "" && (k.Done != 0 || c.Connections > 1) })
		if c.Session != session {
			t.Fatalf("seed %d: session %v, before %v", seed+1, c.Session, session)
		}
		again := c.Ask(c.EphemeralCreation("/e2"))
		s.carried(again)
		s.until("everybody knows the session", machine.Second, func() bool { return s.everybodys(session) == 3 })
		s.carried(c.Ask(&client.Call{Op: wire.OpCloseSession}))
		if left := s.history.Tree.EphemeralsBySession(); len(left) != 0 {
			t.Errorf("seed %d: left behind: %v", seed+1, left)
		}
	}
}

// TestNoRequestAfterTheEndOfAnUpgradedSession lets a session become global and move while
// its old server is cut off. It checks that requests which the old server forwards for the
// session after its end are not carried out.
func TestNoRequestAfterTheEndOfAnUpgradedSession(t *testing.T) {
	for seed := range uint64(10) {
		s := newScene(t, Options{Seed: seed + 1, Voters: 3, LocalSessions: 1})
		old := s.other()
		c := s.client(old)
		s.carried(c.Ask(c.Creation("/a")))
		s.carried(c.Ask(c.EphemeralCreation("/e")))
		s.Do(Act{Kind: Block, A: int(s.leader().id), B: int(old.id)})
		c.Ask(c.Write("/a"))
		s.RunFor(50 * machine.Millisecond)
		d := s.scripted(s.leader())
		d.Session, d.TimeoutMS, d.Xid = c.Session, c.TimeoutMS, 1000
		s.until("the session has moved", 10*machine.Second, func() bool { return d.Attached })
		s.carried(d.Ask(&client.Call{Op: wire.OpCloseSession}))
		c.Xid = 2000 // the second connection of the client begins to number anew
		c.Ask(c.Write("/a"))
		s.RunFor(2 * machine.Second)
		if s.Failed() != nil {
			t.Fatal(s.Failed())
		}
	}
}
