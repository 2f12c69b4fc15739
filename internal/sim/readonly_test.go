package sim

import (
	"testing"

	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// reads connects a scripted client that accepts a server without a quorum.
func (s *scene) reads(only *server) *client {
	c := s.scripted(only)
	c.reader = true
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
		write := c.ask(c.making("/a"))
		s.carried(write)
		session := c.session
		s.alone(last)
		r := s.reads(last)
		s.until("a reader is served", 20*second, func() bool { return r.attached && r.lonely })
		read := r.ask(get("/a", true))
		s.carried(read)
		if read.zxid < write.zxid {
			t.Errorf("seed %d: shown %v, %v was seen", seed+1, read.zxid, write.zxid)
		}
		refused := r.ask(r.setting("/a"))
		s.until("a write is answered", second, func() bool { return refused.done != 0 })
		if refused.err != wire.ErrNotReadOnly {
			t.Errorf("seed %d: %v", seed+1, refused.err)
		}
		s.supervise()
		r.only = nil
		s.until("the reader has a quorum", 20*second, func() bool { return r.attached && !r.lonely })
		s.carried(r.ask(r.setting("/a")))
		s.until("the session of before goes on", 20*second, func() bool { return c.attached && c.session == session })
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
		s.carried(c.ask(c.making("/a")))
		s.cut(old)
		for range 5 {
			c.ask(c.setting("/a"))
			s.RunFor(20 * millisecond)
		}
		r := s.reads(old)
		s.until("the old leader is alone", 20*second, func() bool { return r.attached && r.lonely })
		s.carried(r.ask(get("/a", false)))
		s.Do(Act{Kind: Kill, A: int(old.id)})
		s.Do(Act{Kind: Start, A: int(old.id)})
		r.tries++
		s.RunFor(4 * second)
		if r.attached {
			s.carried(r.ask(get("/a", false)))
		}
		s.Do(Act{Kind: Heal, A: 1})
		s.until("all serve", 20*second, func() bool { return s.allServe() == "" || r.attached })
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
		s.carried(c.ask(c.making("/a")))
		s.RunFor(second) // until all have it on disk
		s.Do(Act{Kind: FullDisk, A: int(full.id)})
		for range 20 {
			s.carried(c.ask(c.setting("/a")))
		}
		s.until("its disk is full", 20*second, func() bool { return full.standing.Disabled != "" })
		r := s.reads(full)
		s.until("a reader is served", 20*second, func() bool { return r.attached && r.lonely })
		s.carried(r.ask(get("/a", false)))
		s.carried(c.ask(c.setting("/a")))
		s.Do(Act{Kind: FullDisk, A: int(full.id), Value: -1})
		s.until("it is back", 20*second, func() bool { return s.allServe() == "" && r.attached && !r.lonely })
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
	s.carried(c.ask(c.making("/a")))
	for range 120 {
		for range 4 {
			c.ask(c.setting("/a"))
		}
		s.carried(c.ask(c.setting("/a")))
	}
	s.until("it looks for a leader", 20*second, func() bool { return behind.standing.Role == peerwire.Looking })
	s.Do(Act{Kind: Heal, A: 1})
	s.until("it has a snapshot", 20*second, behind.log.Fresh)
	s.alone(behind)
	r := s.reads(behind)
	s.RunFor(6 * second)
	if r.attached || behind.standing.ReadOnly {
		t.Fatal("it is shown")
	}
	s.supervise()
	s.until("all serve", 20*second, func() bool { return s.allServe() == "" })
}
