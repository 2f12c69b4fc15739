package blackbox

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/zk"
)

// usual are ZooKeeper's default limits, for scenes that measure the time without a leader.
var usual = map[string]string{"tickTime": "2000", "initLimit": "10", "syncLimit": "5"}

// gapMax is the longest allowed time without a write. The target is 3 s. Servers that elect again
// and again a candidate that cannot lead have no leader for 30 s and longer.
const gapMax = 12 * time.Second

// meter writes through some servers, one write at a time, and records the longest time without an
// acknowledged write.
type meter struct {
	done sync.WaitGroup
	stop context.CancelFunc

	mu      sync.Mutex
	last    time.Time
	longest time.Duration
	writes  int
}

// measure starts a meter that writes values of this size through servers.
func (s *scene) measure(size int, servers ...int) *meter {
	s.t.Helper()
	var addrs []string
	for _, i := range servers {
		addrs = append(addrs, s.e.Servers[i].Addr)
	}
	return s.measureBy(s.client(strings.Join(addrs, ","), longSession), size)
}

// measureFrom starts a meter at a server; its client may use any server later.
func (s *scene) measureFrom(size, server int) *meter {
	s.t.Helper()
	c := s.client(s.e.Servers[server].Addr, longSession)
	s.must(c.SetServers(s.e.Addrs()))
	return s.measureBy(c, size)
}

func (s *scene) measureBy(c *zk.Client, size int) *meter {
	s.t.Helper()
	ctx, stop := context.WithCancel(s.t.Context())
	path := fmt.Sprintf("/measured-%v", c.Session().ID)
	_, _, err := c.Create(ctx, path, nil)
	s.must(err)
	m := &meter{stop: stop, last: time.Now()}
	data := make([]byte, size)
	m.done.Go(func() {
		for ctx.Err() == nil {
			if _, err := c.Set(ctx, path, data, zk.AnyVersion); err == nil {
				m.acknowledged()
			}
		}
	})
	s.t.Cleanup(m.end)
	return m
}

func (m *meter) end() {
	m.stop()
	m.done.Wait()
}

func (m *meter) acknowledged() {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.longest, m.last = max(m.longest, now.Sub(m.last)), now
	m.writes++
}

// read returns the number of writes and the longest time without one so far.
func (m *meter) read() (writes int, longest time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.writes, max(m.longest, time.Since(m.last))
}

// goesOn waits for further writes and fails if no write is acknowledged for gapMax.
func (m *meter) goesOn(t testing.TB) {
	t.Helper()
	from, longest := m.read()
	for n := from; n < from+20; n, longest = m.read() {
		if longest > gapMax {
			t.Fatalf("no write was acknowledged for %v", longest)
		}
		<-time.After(10 * time.Millisecond)
	}
	t.Logf("longest time without an acknowledged write: %v", longest.Round(time.Millisecond))
}

// awaitSlowDisk waits until a server reports its disk in a four-letter word.
func (s *scene) awaitSlowDisk(server int) {
	s.t.Helper()
	var text string
	for end := time.Now().Add(waitMax); ; <-time.After(20 * time.Millisecond) {
		text, _ = s.e.Servers[server].Word("srvr")
		if strings.Contains(text, "the disk does not answer: ") && strings.Contains(text, " in "+s.e.Servers[server].Data+"/version-2 is unanswered since ") {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("server %d does not name its disk: %s", server+1, text)
		}
	}
}

// leadElsewhere makes a server other than this one the leader, and returns it.
func (s *scene) leadElsewhere(than int) int {
	s.t.Helper()
	leader := s.awaitWhole()
	for ; leader == than; leader = s.awaitWhole() {
		s.must(s.e.Servers[than].Stop())
		s.awaitLeader(than)
		s.restart(than)
	}
	return leader
}

// TestHungDiskOfHighestVoter freezes the disk of server 5, whose vote wins every election, and
// restarts the leader. Another server must lead soon. Server 5 must report its disk, and return
// when the disk answers.
func TestHungDiskOfHighestVoter(t *testing.T) {
	disks, before := onDisks(t, 4)
	s := begin(t, setting{kinds: ours(5), extra: usual, before: before})
	leader := s.leadElsewhere(4)
	thaw := disks.freeze(0)
	m := s.measure(100, s.others(4, leader)...)
	s.must(s.e.Servers[leader].Stop())
	m.goesOn(t)
	s.awaitSlowDisk(4)
	s.restart(leader)
	m.goesOn(t)
	thaw()
	m.end()
	s.finish()
}

// hungScene is an ensemble of three servers, one of which has a disk that hangs.
type hungScene struct {
	*scene
	leader, hung int
	freeze, thaw func()
}

// beginHung starts the scene; the disk of the leader or of a follower will hang.
func beginHung(t *testing.T, ofLeader bool) *hungScene {
	disks, before := onDisks(t, 0, 1, 2)
	s := &hungScene{scene: begin(t, setting{extra: usual, before: before}), thaw: func() {}}
	s.leader = s.awaitWhole()
	if s.hung = s.leader; !ofLeader {
		s.hung = s.others(s.leader)[0]
	}
	s.freeze = func() { s.thaw = disks.freeze(s.hung) }
	return s
}

// end thaws the disk and checks the final state.
func (s *hungScene) end(meters ...*meter) {
	s.t.Helper()
	s.thaw()
	for _, m := range meters {
		m.end()
	}
	s.finish()
}

// TestHungDiskOfLeader freezes the leader's disk under load. The leader must give up, another
// server must lead, and the old leader must follow when its disk answers. Clients of the hung
// server must move to the others, even if their timeout is long.
func TestHungDiskOfLeader(t *testing.T) {
	s := beginHung(t, true)
	m := s.measure(100, s.others(s.hung)...)
	large := s.measure(900<<10, s.others(s.hung)...)
	moves := s.measureFrom(100, s.hung)
	s.freeze()
	s.awaitLeader(s.hung)
	m.goesOn(t)
	moves.goesOn(t)
	s.awaitSlowDisk(s.hung)
	s.end(large, m, moves)
}

// TestHungDiskOfFollower freezes a follower's disk. The leader must stay, and writes through the
// other servers must continue without interruption.
func TestHungDiskOfFollower(t *testing.T) {
	s := beginHung(t, false)
	m := s.measure(100, s.others(s.hung)...)
	s.freeze()
	s.awaitSlowDisk(s.hung)
	m.goesOn(t)
	if now := s.awaitLeader(s.hung); now != s.leader {
		t.Errorf("server %d leads after server %d, because of a follower's disk", now+1, s.leader+1)
	}
	s.end(m)
}

// TestServerWithHungDiskStops sends SIGTERM to a follower whose disk hangs. Its ports must close
// in bounded time. The process itself can end only when the disk answers, because one of its
// threads waits in the kernel.
func TestServerWithHungDiskStops(t *testing.T) {
	s := beginHung(t, false)
	s.freeze()
	s.awaitSlowDisk(s.hung)
	s.signal(s.hung, 15)
	for end := time.Now().Add(waitMax); ; <-time.After(20 * time.Millisecond) {
		if _, err := s.e.Servers[s.hung].Word("ruok"); err != nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the server still answers")
		}
	}
	s.thaw()
	_ = s.e.Servers[s.hung].Stop() // an error means that the server has already ended
	s.end()
}

// filterWays select the packets to and from the quorum port of a host.
var filterWays = []string{"to %s ipproto tcp dport 2888", "from %s ipproto tcp sport 2888"}

// TestFilteredQuorumPort filters the quorum port of the server whose vote wins every election, in
// both directions and in one, while its election port stays open, and kills the leader. Another
// server must lead soon.
func TestFilteredQuorumPort(t *testing.T) {
	for _, way := range filterWays {
		t.Run(strings.Fields(way)[0], func(t *testing.T) {
			s := begin(t, setting{kinds: ours(3), extra: usual})
			leader := s.leadElsewhere(2)
			s.Filter(fmt.Sprintf(way, s.hosts[2].addr))
			m := s.measure(100, s.others(2, leader)...)
			s.e.Servers[leader].Kill()
			<-time.After(500 * time.Millisecond) // the other two look for a leader and elect server 3
			s.restart(leader)
			m.goesOn(t)
			m.end()
			s.finish()
		})
	}
}

// TestFilteredQuorumPortOfIdleServers filters the quorum port in an ensemble that has
// never had a write. Server 3 joined by a snapshot and has no more history than the
// others, so the others must elect one of themselves, also if the killed leader was a
// ZooKeeper server.
func TestFilteredQuorumPortOfIdleServers(t *testing.T) {
	for name, kinds := range map[string][]target.Kind{
		"ours":             ours(3),
		"under ZooKeeper":  {target.Bellwether, target.Apache, target.Bellwether},
		"beside ZooKeeper": {target.Bellwether, target.Bellwether, target.Apache},
	} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, setting{kinds: kinds, extra: usual, idle: true})
			s.must(s.e.Servers[2].Stop())
			leader := s.awaitLeader(2)
			s.restart(2)
			if now := s.awaitWhole(); leader != 1 || now != 1 {
				t.Fatalf("server %d leads, then %d", leader+1, now+1)
			}
			s.Filter(fmt.Sprintf(filterWays[0], s.hosts[2].addr))
			began := time.Now()
			s.e.Servers[leader].Kill()
			<-time.After(500 * time.Millisecond) // the other two look for a leader and elect server 3
			s.restart(leader)
			c := s.client(s.e.Addrs(), longSession)
			_, _, err := c.Create(t.Context(), "/written", nil)
			s.must(err)
			gap := time.Since(began)
			t.Logf("first write %v after the leader was killed", gap.Round(time.Millisecond))
			if gap > gapMax {
				t.Error("the time without a write is too long")
			}
			s.Heal()
			s.awaitWhole()
			s.awaitSameZxid()
		})
	}
}
