package blackbox

import (
	"encoding/json"
	"strings"
	"testing"

	"bellwether/interop/target"
)

// TestMixedOneBellwether runs one Bellwether server with two of ZooKeeper.
func TestMixedOneBellwether(t *testing.T) {
	mixed(t, target.Apache, target.Apache, target.Bellwether)
}

// TestMixedTwoBellwether runs two Bellwether servers with one of ZooKeeper.
func TestMixedTwoBellwether(t *testing.T) {
	mixed(t, target.Bellwether, target.Bellwether, target.Apache)
}

// mixedMax is the largest number of leaders that are killed until each kind has led.
const mixedMax = 8

// mixed kills leaders until each kind of server has led and was killed; in between, writes must
// succeed through every server. So ZooKeeper's servers receive, in both roles, the packets of
// discovery that Bellwether's learners and leaders extend.
func mixed(t *testing.T, kinds ...target.Kind) {
	s := begin(t, setting{kinds: kinds})
	led := map[target.Kind]int{}
	for range mixedMax {
		leader := s.awaitWhole()
		led[kinds[leader]]++
		s.load.awaitWrites(10)
		s.e.Servers[leader].Kill()
		s.awaitLeader(leader)
		s.load.awaitWrites(10, s.workers(s.others(leader)...)...)
		s.restart(leader)
		s.load.awaitWrites(5)
		if len(led) == 2 {
			break
		}
	}
	if len(led) != 2 {
		t.Errorf("only one kind led: %v", led)
	}
	s.finish()
}

// transferWord requests a leadership transfer to any suitable server.
const transferWord = "hand\x80\x00\x00\x00\x00\x00\x00\x00"

// TestMixedTransfer transfers leadership back and forth between two Bellwether servers in an
// ensemble with one ZooKeeper server. The ZooKeeper server loses its leader and finds the next one
// from notifications. Writes must continue through all servers.
func TestMixedTransfer(t *testing.T) {
	s := begin(t, setting{
		kinds: []target.Kind{target.Apache, target.Bellwether, target.Bellwether},
		extra: map[string]string{"4lw.commands.whitelist": "*,hand"},
	})
	leader := s.awaitWhole()
	if leader == 0 {
		s.e.Servers[0].Kill()
		leader = s.awaitLeader(0)
		s.restart(0)
		s.awaitWhole()
	}
	handed := 0
	for range 4 {
		s.load.awaitWrites(10)
		text, err := s.e.Servers[leader].Word(transferWord)
		if err != nil {
			t.Fatal(err)
		}
		var h struct {
			From, To int
			TookMS   int64 `json:"took_ms"`
			Error    string
		}
		if err := json.Unmarshal([]byte(text), &h); err != nil || h.From != leader+1 || h.To != 4-leader {
			t.Fatalf("%s (%v)", strings.TrimSpace(text), err)
		}
		now := s.awaitWhole()
		if h.Error != "" { // on a busy machine the transfer can fail, and an election follows
			t.Log(h.Error)
			if leader = now; leader == 0 {
				break
			}
			continue
		}
		if handed++; now != h.To-1 {
			t.Fatalf("server %d leads, %+v", now+1, h)
		}
		t.Logf("%+v", h)
		leader = now
		s.load.awaitWrites(10)
	}
	if handed == 0 {
		t.Error("there was no leadership transfer")
	}
	s.finish()
}
