package blackbox

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"bellwether/interop/target"
)

// masterPort is the observerMasterPort of every server. Each server has a host of its own.
const masterPort = "2889"

// masterOf returns the index of the server from which an observer learns; -1 if the observer does not say.
func (s *scene) masterOf(observer int) int {
	text, err := s.e.Servers[observer].Word("mntr")
	if err != nil {
		return -1
	}
	_, id, _ := strings.Cut(text, "\nzk_observer_master_id\t")
	id, _, _ = strings.Cut(id, "\n")
	n, err := strconv.ParseFloat(id, 64)
	if err != nil {
		return -1
	}
	return int(n) - 1
}

// awaitMasters waits until every observer from the given index on learns from a running server that does not lead, and
// returns these servers.
func (s *scene) awaitMasters(first int) (masters []int) {
	s.t.Helper()
	for end := time.Now().Add(waitMax); ; <-time.After(20 * time.Millisecond) {
		masters = nil
		for i := first; i < len(s.e.Servers); i++ {
			if m := s.masterOf(i); m >= 0 && s.e.Servers[m].Role() == "follower" {
				masters = append(masters, m)
			}
		}
		if len(masters) == len(s.e.Servers)-first {
			return masters
		}
		if time.Now().After(end) {
			s.t.Fatalf("observers without a master: %v, roles %q", masters, s.e.Roles())
		}
	}
}

// TestObserverMasters lets observers of both kinds learn from followers of both kinds. The master of an observer is killed, then the leader,
// and the clients of all servers must go on each time.
func TestObserverMasters(t *testing.T) {
	a, b := target.Apache, target.Bellwether
	for _, voters := range [][]target.Kind{{b, b, b}, {a, a, a}, {a, b, b}, {b, a, a}} {
		t.Run(fmt.Sprint(voters), func(t *testing.T) {
			kinds := append(append([]target.Kind(nil), voters...), b, a)
			s := begin(t, setting{kinds: kinds, observers: 2, extra: map[string]string{"observerMasterPort": masterPort}})
			for observer := 3; observer <= 4; observer++ {
				masters := s.awaitMasters(3)
				t.Logf("masters: %v, leader: %d", masters, s.awaitLeader())
				s.load.awaitWrites(5)
				gone := masters[observer-3]
				s.e.Servers[gone].Kill()
				s.awaitMasters(3)
				s.load.awaitWrites(5, s.workers(s.others(gone)...)...)
				s.restart(gone)
				s.awaitWhole()
			}
			leader := s.awaitLeader()
			s.e.Servers[leader].Kill()
			s.awaitLeader(leader)
			s.load.awaitWrites(5, s.workers(s.others(leader)...)...)
			s.restart(leader)
			s.awaitWhole()
			s.awaitMasters(3)
			s.finish()
		})
	}
}

// lossyFor is how long the links of observers lose packets.
const lossyFor = 20 * time.Second

// TestLossyObservers lets three observers with local sessions learn from followers over links that lose 6 % of the packets in both
// directions. The observers must keep up, or be cut off with a reason in the log, and the writes of the voters must
// go on as before.
func TestLossyObservers(t *testing.T) {
	s := begin(t, setting{kinds: ours(6), observers: 3, extra: map[string]string{
		"observerMasterPort": masterPort, "localSessionsEnabled": "true", "localSessionsUpgradingEnabled": "true", "syncLimit": "10"}})
	s.awaitMasters(3)
	for i := 3; i < 6; i++ {
		s.tc(i, loss("eth0", "0 0x1f", "0x41 0x1f")...)
		s.tcIn(s.router, loss(fmt.Sprintf("v%d", i+1), "0 0x1f", "0x41 0x1f")...)
	}
	before := s.load.acknowledged()
	for end := time.Now().Add(lossyFor); time.Now().Before(end); {
		s.load.awaitWrites(5, s.workers(0, 1, 2)...)
	}
	now := s.load.acknowledged()
	for i := 3; i < 6; i++ {
		log, err := os.ReadFile(s.e.Servers[i].LogPath())
		s.must(err)
		lost := strings.Count(string(log), "ends OBSERVING")
		t.Logf("observer %d: %d writes acknowledged under loss, %d packets dropped, its master lost %d times, master %d", i+1, now[i]-before[i], s.dropped(i), lost, s.masterOf(i)+1)
		if s.dropped(i) == 0 {
			t.Errorf("observer %d lost no packet", i+1)
		}
		if now[i] == before[i] && lost == 0 {
			t.Errorf("observer %d neither served nor gave a reason", i+1)
		}
		s.tcIn(s.router, fmt.Sprintf("qdisc del dev v%d root", i+1))
	}
	t.Logf("voters: %v writes before, %v after", before[:3], now[:3])
	s.finish()
}
