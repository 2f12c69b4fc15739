package blackbox

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"bellwether/zk"
)

// usual are ZooKeeper's waits, for scenes about the time without a leader.
var usual = map[string]string{"tickTime": "2000", "initLimit": "10", "syncLimit": "5"}

// gapMax separates servers that elect another leader from servers that elect one
// that cannot lead again and again. The target is 3 s; before there was a rule for
// it, nobody led for 30 s and longer.
const gapMax = 12 * time.Second

// meter writes through some servers, one write at a time, and keeps the longest
// time without an acknowledgement.
type meter struct {
	done sync.WaitGroup
	stop context.CancelFunc

	mu      sync.Mutex
	last    time.Time
	longest time.Duration
	writes  int
}

// measure begins to write values of this size through servers.
func (s *scene) measure(size int, servers ...int) *meter {
	s.t.Helper()
	var addrs []string
	for _, i := range servers {
		addrs = append(addrs, s.e.Servers[i].Addr)
	}
	c := s.client(strings.Join(addrs, ","), longSession)
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

// read returns the number of writes, and the longest time without one so far.
func (m *meter) read() (writes int, longest time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.writes, max(m.longest, time.Since(m.last))
}

// goesOn waits for further writes and fails where there was none for gapMax.
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

// awaitSlowDisk waits until a server names its disk, by a word.
func (s *scene) awaitSlowDisk(server int) {
	s.t.Helper()
	var text string
	for end := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) {
		text, _ = s.e.Servers[server].Word("srvr")
		if strings.Contains(text, "the disk does not answer: ") && strings.Contains(text, " in "+s.e.Servers[server].Data+"/version-2 is unanswered since ") {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("server %d does not name its disk: %s", server+1, text)
		}
	}
}

// lead has another server than this one lead, and returns which.
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

// TestHungDiskOfHighestVoter freezes the disk of server 5, whose vote wins every
// election, and restarts the leader: another one leads soon, and server 5, which
// says what its disk does, comes back when that answers.
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

// TestHungDiskOfLeader freezes the leader's disk under load: it gives up, another
// one leads, and it follows when its disk answers.
func TestHungDiskOfLeader(t *testing.T) {
	disks, before := onDisks(t, 0, 1, 2)
	s := begin(t, setting{extra: usual, before: before})
	leader := s.awaitWhole()
	m := s.measure(100, s.others(leader)...)
	large := s.measure(900<<10, s.others(leader)...)
	thaw := disks.freeze(leader)
	s.awaitLeader(leader)
	m.goesOn(t)
	s.awaitSlowDisk(leader)
	thaw()
	large.end()
	m.end()
	s.finish()
}

// TestHungDiskOfFollower freezes a follower's disk: the leader stays, and writes
// through the others go on as if nothing had happened.
func TestHungDiskOfFollower(t *testing.T) {
	disks, before := onDisks(t, 0, 1, 2)
	s := begin(t, setting{extra: usual, before: before})
	leader := s.awaitWhole()
	follower := s.others(leader)[0]
	m := s.measure(100, s.others(follower)...)
	thaw := disks.freeze(follower)
	s.awaitSlowDisk(follower)
	m.goesOn(t)
	if now := s.awaitLeader(follower); now != leader {
		t.Errorf("server %d leads after server %d, because of a follower's disk", now+1, leader+1)
	}
	thaw()
	m.end()
	s.finish()
}

// TestServerWithHungDiskStops ends a follower by SIGTERM whose disk hangs: its ports
// are closed in bounded time. The process itself ends when the disk answers: no
// process can end before, whose thread waits in the kernel.
func TestServerWithHungDiskStops(t *testing.T) {
	disks, before := onDisks(t, 0, 1, 2)
	s := begin(t, setting{extra: usual, before: before})
	leader := s.awaitWhole()
	follower := s.others(leader)[0]
	thaw := disks.freeze(follower)
	s.awaitSlowDisk(follower)
	s.signal(follower, 15)
	for end := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) {
		if _, err := s.e.Servers[follower].Word("ruok"); err != nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the server still answers")
		}
	}
	thaw()
	_ = s.e.Servers[follower].Stop() // it may have ended already
	s.finish()
}

// TestFilteredQuorumPort filters the quorum port of the server whose vote wins every
// election, both ways and one way, while its election port stays open, and kills
// the leader: another one leads soon.
func TestFilteredQuorumPort(t *testing.T) {
	for _, way := range []string{"to %s ipproto tcp dport 2888", "from %s ipproto tcp sport 2888"} {
		t.Run(strings.Fields(way)[0], func(t *testing.T) {
			s := begin(t, setting{kinds: ours(3), extra: usual})
			leader := s.leadElsewhere(2)
			s.Filter(fmt.Sprintf(way, s.hosts[2].addr))
			m := s.measure(100, s.others(2, leader)...)
			s.e.Servers[leader].Kill()
			<-time.After(500 * time.Millisecond) // both others look, and elect server 3
			s.restart(leader)
			m.goesOn(t)
			m.end()
			s.finish()
		})
	}
}
