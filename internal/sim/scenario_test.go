package sim

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/sim/client"
	"bellwether/internal/sim/machine"
	"bellwether/internal/store"
	"bellwether/wire"
)

// scene is an ensemble without faults, except those of a scenario.
type scene struct {
	*Sim
	t *testing.T
}

func newScene(t *testing.T, o Options) *scene {
	t.Helper()
	o.Clients, o.Candidates = -1, -1
	if o.Seed == 0 {
		o.Seed = 1
	}
	if o.Compatible == 0 {
		o.Compatible = -1
	}
	if o.Observers == 0 {
		o.Observers = -1
	}
	if o.Groups == 0 {
		o.Groups = -1
	}
	if o.Priorities == 0 {
		o.Priorities = -1
	}
	if o.Busy == 0 {
		o.Busy = -1
	}
	if o.Careless == 0 {
		o.Careless = -1
	}
	if o.Focus == 0 {
		o.Focus = -1
	}
	o.TickMS, o.SessionTicks = 500, 8
	if o.LocalSessions == 0 {
		o.LocalSessions = -1
	}
	if o.CounterMax == 0 {
		o.CounterMax = 1 << 30
	}
	s := &scene{New(o), t}
	s.until("all serve", 10*machine.Second, func() bool { return s.allServe() == "" })
	return s
}

// until waits for a condition. The test ends if the condition does not hold in time or a
// rule is broken.
func (s *scene) until(what string, within int64, holds func() bool) {
	s.t.Helper()
	if !s.RunUntil(holds, within) {
		s.t.Fatalf("not in time: %s (%v)\n%s", what, s.Failed(), strings.Join(s.trace.lines(), "\n"))
	}
}

// client connects a scripted client.
func (s *scene) client(only *server) *client.Client {
	s.t.Helper()
	c := s.scripted(only)
	s.until("a client is connected", 10*machine.Second, func() bool { return c.Attached })
	return c
}

// carried waits for an answer without an error.
func (s *scene) carried(k *client.Call) {
	s.t.Helper()
	s.until(fmt.Sprintf("%v %s is answered", k.Op, k.Path), 20*machine.Second, func() bool { return k.Done != 0 })
	if k.Err != wire.OK {
		s.t.Fatalf("%v %s: %v", k.Op, k.Path, k.Err)
	}
}

// allEqual says what is still under way. It returns an empty text if nothing is.
func (s *Sim) allEqual() string { return s.allDone(s.now, s.history.Last().Zxid) }

// syncing returns a sync request.
func syncing(path string) *client.Call {
	return &client.Call{Op: wire.OpSync, Path: path, Body: wire.Append(nil, &wire.PathRequest{Path: path})}
}

// other returns a server that does not lead.
func (s *scene) other() *server {
	for _, v := range s.servers {
		if v != s.leader() {
			return v
		}
	}
	return nil
}

// cut cuts a server off from all other servers, but not from clients.
func (s *scene) cut(v *server) {
	for _, o := range s.servers {
		if o != v {
			s.Do(Act{Kind: Cut, A: int(v.id), B: int(o.id)})
		}
	}
}

// TestZK4537SyncsAndWritesOfOneClient checks that a single client that pipelines syncs and
// writes is answered although no other client sends anything (ZOOKEEPER-4537).
func TestZK4537SyncsAndWritesOfOneClient(t *testing.T) {
	for seed := range uint64(10) {
		s := newScene(t, Options{Seed: seed + 1, Voters: 3})
		for _, v := range s.servers {
			c := s.client(v)
			var last *client.Call
			c.Ask(c.Creation(fmt.Sprint("/a", v.id)))
			for range 10 {
				c.Ask(syncing("/"))
				c.Ask(c.Write(fmt.Sprint("/a", v.id)))
				last = c.Ask(syncing("/"))
			}
			s.carried(last)
		}
	}
}

// TestZK1277ClientsOverARollOver lets the counter of an epoch run out under load, again and
// again. It checks that every client goes on within a short time, and that nothing is lost
// or reordered (ZOOKEEPER-1277, 2789, 4883).
func TestZK1277ClientsOverARollOver(t *testing.T) {
	for _, keep := range []int{-1, 1} {
		s := newScene(t, Options{Voters: 3, CounterMax: 25, KeepClients: keep})
		c := s.client(s.other())
		s.carried(c.Ask(c.Creation("/a")))
		slowest := int64(0)
		for range 100 {
			began := s.now
			s.until("a write over the end of an epoch", 5*machine.Second, func() bool {
				return c.Attached && len(c.Calls) == 0
			})
			k := c.Ask(c.Write("/a"))
			s.until("the client goes on", 5*machine.Second, func() bool { return len(c.Calls) == 0 && (k.Done != 0 || c.Attached) })
			slowest = max(slowest, s.now-began)
		}
		if s.leader().standing.Epoch < 4 {
			t.Errorf("the counter has not run out: epoch %d", s.leader().standing.Epoch)
		}
		if slowest > 2*machine.Second {
			t.Errorf("a client waited %d ms", slowest/machine.Millisecond)
		}
	}
}

// TestZK4541EndOfARoleInAWholeServer lets a leader lose its quorum while writes are on
// their way to a slow disk. What remains of its old role must not write into the history of
// the next one (ZOOKEEPER-4541, 4712, 4502, 4409).
func TestZK4541EndOfARoleInAWholeServer(t *testing.T) {
	for seed := range uint64(10) {
		s := newScene(t, Options{Seed: seed + 1, Voters: 3})
		old := s.leader()
		c := s.client(old)
		s.carried(c.Ask(c.Creation("/a")))
		s.Do(Act{Kind: SlowDisk, A: int(old.id), Value: 600 * machine.Millisecond})
		s.cut(old)
		for range 10 {
			c.Ask(c.Write("/a"))
			s.RunFor(50 * machine.Millisecond)
		}
		s.until("another leads", 20*machine.Second, func() bool { return s.leader() != nil && s.leader() != old })
		d := s.client(s.leader())
		s.carried(d.Ask(d.Write("/a")))
		s.Do(Act{Kind: Heal, A: 1})
		s.until("the old leader follows", 20*machine.Second, func() bool { return s.allServe() == "" })
		s.Do(Act{Kind: SlowDisk, A: int(old.id)})
		s.carried(d.Ask(d.Write("/a")))
		s.Do(Act{Kind: PowerOff, A: int(old.id)})
		s.Do(Act{Kind: Start, A: int(old.id)})
		s.until("and its disk is whole", 20*machine.Second, func() bool { return s.allServe() == "" && s.allEqual() == "" })
	}
}

// TestZK3829TheFourthLeadsAndCommits turns three servers into four, which are started one
// by one with the larger membership. The new server is first, because only then does each
// server need a quorum of four. The fourth server, which has the largest id, then leads,
// and its proposals are committed (ZOOKEEPER-3829, 3814, 3830, 3842).
func TestZK3829TheFourthLeadsAndCommits(t *testing.T) {
	s := newScene(t, Options{Voters: 3})
	c := s.client(nil)
	s.carried(c.Ask(c.Creation("/a")))
	var text bytes.Buffer
	for i := 1; i <= 4; i++ {
		fmt.Fprintf(&text, "server.%d=127.0.0.1:%d:%d:participant\n", i, 1000+i, 2000+i)
	}
	larger, err := ensemble.Parse(text.String())
	if err != nil {
		t.Fatal(err)
	}
	four := &server{sim: s.Sim, id: 4, members: larger, space: -1, fs: store.NewMem(4), snapEvery: 100, unknown: true}
	four.Host = machine.Host{Name: "server 4", Clock: machine.NewClock(0)}
	s.net.add(&four.Host)
	s.servers = append(s.servers, four)
	for _, v := range []*server{four, s.servers[0], s.servers[1], s.servers[2]} {
		v.kill()
		v.members = larger
		v.start()
		s.until("the restarted server serves", 20*machine.Second, func() bool { return v.standing.Serving && s.leader() != nil })
		s.RunFor(machine.Second)
	}
	for range 10 {
		if s.leader() == four {
			break
		}
		old := s.leader()
		old.kill()
		s.until("another leads", 20*machine.Second, func() bool { return s.leader() != nil })
		old.start()
		s.until("all serve", 20*machine.Second, func() bool { return s.allServe() == "" })
	}
	if s.leader() != four {
		t.Fatalf("server %d leads", s.leader().id)
	}
	s.until("the client is back", 20*machine.Second, func() bool { return c.Attached })
	s.carried(c.Ask(c.Write("/a")))
}

// TestEtcd20418AStoppedLeaderShowsNothingOld stops a leader until another one takes over
// and commits. When the old leader goes on, it must not answer a sync with an old state
// (etcd 20418).
func TestEtcd20418AStoppedLeaderShowsNothingOld(t *testing.T) {
	for seed := range uint64(20) {
		s := newScene(t, Options{Seed: seed + 1, Voters: 3})
		old := s.leader()
		c := s.client(old)
		s.carried(c.Ask(c.Creation("/a")))
		s.Do(Act{Kind: Pause, A: int(old.id)})
		s.until("another leads", 20*machine.Second, func() bool { return s.leader() != old && s.leader() != nil })
		d := s.client(s.leader())
		write := d.Ask(d.Write("/a"))
		s.carried(write)
		c.Ask(syncing("/a"))
		read := client.Get("/a", false)
		read.Synced = true
		c.Ask(read)
		s.RunFor(s.random.Below(100 * machine.Millisecond))
		s.Do(Act{Kind: Resume, A: int(old.id)})
		s.RunFor(3 * machine.Second)
		if read.Done != 0 && read.Zxid < write.Zxid {
			t.Errorf("seed %d: the old leader shows %v, %v was answered", seed+1, read.Zxid, write.Zxid)
		}
	}
}

// TestEtcd15271AServerBehindRefuses checks that a server refuses a client that has seen
// more than the server has applied (etcd 15271).
func TestEtcd15271AServerBehindRefuses(t *testing.T) {
	s := newScene(t, Options{Voters: 3})
	behind := s.other()
	s.cut(behind)
	c := s.client(s.leader())
	s.carried(c.Ask(c.Creation("/a")))
	for range 5 {
		s.carried(c.Ask(c.Write("/a")))
	}
	if !behind.standing.Serving {
		t.Fatal("the server behind does not serve any more: too late for the scenario")
	}
	c.Only = behind.id
	c.Drop()
	refused := false
	s.until("the server is up to date", 20*machine.Second, func() bool {
		refused = refused || !c.Attached && c.At == behind.id
		if s.net.blocked != nil && s.now%machine.Second == 0 {
			s.Do(Act{Kind: Heal, A: 1})
		}
		if c.Attached && behind.seen.zxid < c.Seen {
			t.Fatalf("attached at %v, has seen %v", behind.seen.zxid, c.Seen)
		}
		if !behind.standing.Serving {
			s.Do(Act{Kind: Heal, A: 1})
		}
		return c.Attached
	})
	if !refused {
		t.Error("it was never refused")
	}
}

// TestKeeper121361ReadsKeepASessionAlive checks that the reads of a follower's client keep
// its session alive, without any ping (ClickHouse Keeper 121361).
func TestKeeper121361ReadsKeepASessionAlive(t *testing.T) {
	s := newScene(t, Options{Voters: 3, Observers: 1})
	for _, v := range s.servers {
		c := s.client(v)
		for end := s.now + 4*int64(c.TimeoutMS)*machine.Millisecond; s.now < end; {
			k := c.Ask(client.Get("/", false))
			s.carried(k)
			s.RunFor(int64(c.TimeoutMS) * machine.Millisecond / 5)
		}
		if _, lives := s.leader().tree.Session(c.Session); !lives || !c.Attached {
			t.Errorf("the session of a client of server %d, which reads, has expired", v.id)
		}
	}
}

// TestKeeper114401ASessionAskedForInBetween checks that a session which is requested while
// the leader is lost exists soon after the next leader serves (ClickHouse Keeper 114401).
func TestKeeper114401ASessionAskedForInBetween(t *testing.T) {
	for _, keep := range []int{-1, 1} {
		s := newScene(t, Options{Voters: 3, KeepClients: keep})
		v := s.other()
		s.Do(Act{Kind: PowerOff, A: int(s.leader().id)})
		c := s.scripted(v)
		s.until("another leads", 20*machine.Second, func() bool { return s.leader() != nil && s.leader().up })
		since := s.now
		s.until("the client has a session", 20*machine.Second, func() bool { return c.Attached })
		if took := s.now - since; took > 2*machine.Second {
			t.Errorf("it took %d ms", took/machine.Millisecond)
		}
	}
}

// TestKeeper116690AnUnknownSessionIsRefused checks that an unknown session is refused. In
// every run it is a failure if a client gets another session than the one that it asked for
// (ClickHouse Keeper 116690).
func TestKeeper116690AnUnknownSessionIsRefused(t *testing.T) {
	s := newScene(t, Options{Voters: 3})
	for _, v := range s.servers {
		c := s.client(v)
		real := c.Session
		c.Session = real + 12345
		c.Drop()
		s.until("refused, a new one", 20*machine.Second, func() bool { return c.Attached })
		if c.Session == real || c.Session == real+12345 {
			t.Errorf("session %v", c.Session)
		}
	}
}

// TestSessionIsCreatedOnce requests a session. Before the session is made, its server loses
// the leader and finds it again in the same epoch. The earlier request may still be carried
// out, and no session may be made twice.
func TestSessionIsCreatedOnce(t *testing.T) {
	s := newScene(t, Options{Voters: 3, LocalSessions: -1})
	f, l := s.other(), s.leader()
	for _, v := range s.servers {
		if v != f {
			s.Do(Act{Kind: SlowDisk, A: int(v.id), Value: 1800 * machine.Millisecond})
		}
	}
	end := l.log.Last()
	c := s.scripted(f)
	s.until("the leader has proposed the session", machine.Second, func() bool { return l.log.Last() > end })
	s.Do(Act{Kind: Block, A: int(l.id), B: int(f.id)})
	s.until("the follower has lost its leader", 2*machine.Second, func() bool { return !f.standing.Serving })
	s.Do(Act{Kind: Join, A: int(l.id), B: int(f.id)})
	s.until("it serves again", 10*machine.Second, func() bool { return f.standing.Serving })
	if f.standing.Epoch != 1 || s.leader() != l {
		t.Fatalf("it serves in epoch %d", f.standing.Epoch)
	}
	for _, v := range s.servers {
		s.Do(Act{Kind: SlowDisk, A: int(v.id)})
	}
	s.until("the client has a session", 20*machine.Second, func() bool { return c.Attached })
	s.RunFor(5 * machine.Second)
	if s.failed != nil {
		t.Fatal(s.failed)
	}
}

// TestSuspendedLeaderAnswersNoPing checks a leader whose machine was suspended, so that its
// clock stood still. The leader must not consider the earlier answers of a quorum as new:
// it answers no ping before it has heard from a quorum again.
func TestSuspendedLeaderAnswersNoPing(t *testing.T) {
	asked := 0
	for seed := range uint64(10) {
		s := newScene(t, Options{Seed: seed + 1, Voters: 3})
		l := s.leader()
		c := s.client(l)
		s.Do(Act{Kind: Suspend, A: int(l.id)})
		s.cut(l) // the links do not tell the leader that they have ended
		s.until("another leads", 10*machine.Second, func() bool { return s.leader() != l })
		s.Do(Act{Kind: Awake, A: int(l.id)})
		if !c.Attached {
			continue
		}
		asked++
		c.Send(&client.Call{Op: wire.OpPing, Then: func(r *client.Response) {
			if r != nil && l.leads() {
				t.Errorf("seed %d: a leader of the past has answered a ping", s.opt.Seed)
			}
		}})
		s.RunFor(machine.Second)
	}
	if asked < 5 {
		t.Errorf("%d leaders were asked", asked)
	}
}
