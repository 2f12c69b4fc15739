package sim

import (
	"testing"

	"bellwether/internal/peerwire"
	"bellwether/internal/sim/client"
	"bellwether/internal/sim/machine"
	"bellwether/wire"
)

// reads connects a scripted client that accepts a server without a quorum.
func (s *scene) reads(only *server) *client.Client {
	c := s.scripted(only)
	c.Reader = true
	return c
}

// alone ends all servers but one.
func (s *scene) alone(last *server) {
	for _, v := range s.servers {
		if v != last {
			s.Do(Act{Kind: Kill, A: int(v.id)})
		}
	}
}

// TestReadersOutliveAQuorum checks that the last of three servers answers clients which
// accept a server without a quorum, refuses writes, and shows what clients have seen
// before. When a second server is back, the reader has a quorum again, and so has the
// earlier session.
func TestReadersOutliveAQuorum(t *testing.T) {
	for seed := range uint64(10) {
		s := newScene(t, Options{Seed: seed + 1, Voters: 3, ReadOnly: 1})
		last := s.other()
		c := s.client(last)
		write := c.Ask(c.Creation("/a"))
		s.carried(write)
		session := c.Session
		s.alone(last)
		r := s.reads(last)
		s.until("a reader is served", 20*machine.Second, func() bool { return r.Attached && r.NoQuorum })
		read := r.Ask(client.Get("/a", true))
		s.carried(read)
		if read.Zxid < write.Zxid {
			t.Errorf("seed %d: shown %v, %v was seen", seed+1, read.Zxid, write.Zxid)
		}
		refused := r.Ask(r.Write("/a"))
		s.until("a write is answered", machine.Second, func() bool { return refused.Done != 0 })
		if refused.Err != wire.ErrNotReadOnly {
			t.Errorf("seed %d: %v", seed+1, refused.Err)
		}
		s.supervise()
		r.Only = 0
		s.until("the reader has a quorum", 20*machine.Second, func() bool { return r.Attached && !r.NoQuorum })
		s.carried(r.Ask(r.Write("/a")))
		s.until("the session of before goes on", 20*machine.Second, func() bool { return c.Attached && c.Session == session })
	}
}

// TestReadersSeeNothingUncommitted lets a leader without followers log transactions that no
// other server has. Neither the leader nor, after a restart, its disk may show them to a
// reader, because the others may have gone on without them.
func TestReadersSeeNothingUncommitted(t *testing.T) {
	for seed := range uint64(10) {
		s := newScene(t, Options{Seed: seed + 1, Voters: 3, ReadOnly: 1})
		old := s.leader()
		c := s.client(old)
		s.carried(c.Ask(c.Creation("/a")))
		s.cut(old)
		for range 5 {
			c.Ask(c.Write("/a"))
			s.RunFor(20 * machine.Millisecond)
		}
		r := s.reads(old)
		s.until("the old leader is alone", 20*machine.Second, func() bool { return r.Attached && r.NoQuorum })
		s.carried(r.Ask(client.Get("/a", false)))
		s.Do(Act{Kind: Kill, A: int(old.id)})
		s.Do(Act{Kind: Start, A: int(old.id)})
		r.Connections++
		s.RunFor(4 * machine.Second)
		if r.Attached {
			s.carried(r.Ask(client.Get("/a", false)))
		}
		s.Do(Act{Kind: Heal, A: 1})
		s.until("all serve", 20*machine.Second, func() bool { return s.allServe() == "" || r.Attached })
		if s.Failed() != nil {
			t.Fatal(s.Failed())
		}
	}
}

// TestReadersOfAFullDisk checks that a follower with a full disk answers readers while the
// others go on, and takes part again when the disk has space.
func TestReadersOfAFullDisk(t *testing.T) {
	for seed := range uint64(10) {
		s := newScene(t, Options{Seed: seed + 1, Voters: 3, ReadOnly: -1})
		full := s.other()
		c := s.client(s.leader())
		s.carried(c.Ask(c.Creation("/a")))
		s.RunFor(machine.Second) // until all have it on disk
		s.Do(Act{Kind: FullDisk, A: int(full.id)})
		for range 20 {
			s.carried(c.Ask(c.Write("/a")))
		}
		s.until("its disk is full", 20*machine.Second, func() bool { return full.standing.Disabled != "" })
		r := s.reads(full)
		s.until("a reader is served", 20*machine.Second, func() bool { return r.Attached && r.NoQuorum })
		s.carried(r.Ask(client.Get("/a", false)))
		s.carried(c.Ask(c.Write("/a")))
		s.Do(Act{Kind: FullDisk, A: int(full.id), Value: -1})
		s.until("it is back", 20*machine.Second, func() bool { return s.allServe() == "" && r.Attached && !r.NoQuorum })
	}
}

// TestReadersSeeNoSnapshotOfAnUnfinishedTerm gives a server the snapshot of a leader that
// has no quorum for it yet, and then isolates the server. Nobody can know whether the
// snapshot is committed, so no reader may see it.
func TestReadersSeeNoSnapshotOfAnUnfinishedTerm(t *testing.T) {
	s := newScene(t, Options{Voters: 3, ReadOnly: 1})
	behind := s.other()
	s.cut(behind)
	c := s.client(s.leader())
	s.carried(c.Ask(c.Creation("/a")))
	for range 120 {
		for range 4 {
			c.Ask(c.Write("/a"))
		}
		s.carried(c.Ask(c.Write("/a")))
	}
	s.until("it looks for a leader", 20*machine.Second, func() bool { return behind.standing.Role == peerwire.Looking })
	s.Do(Act{Kind: Heal, A: 1})
	s.until("it has a snapshot", 20*machine.Second, behind.log.Fresh)
	s.alone(behind)
	r := s.reads(behind)
	s.RunFor(6 * machine.Second)
	if r.Attached || behind.standing.ReadOnly {
		t.Fatal("it is shown")
	}
	s.supervise()
	s.until("all serve", 20*machine.Second, func() bool { return s.allServe() == "" })
}
