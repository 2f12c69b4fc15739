package blackbox

import (
	"testing"

	"bellwether/interop/target"
)

// TestMixedOneOfOurs is one Bellwether server among two of Apache.
func TestMixedOneOfOurs(t *testing.T) {
	mixed(t, target.Apache, target.Apache, target.Bellwether)
}

// TestMixedTwoOfOurs is one Apache server among two of Bellwether.
func TestMixedTwoOfOurs(t *testing.T) {
	mixed(t, target.Bellwether, target.Bellwether, target.Apache)
}

// mixedMax bounds how many leaders are killed until each kind has led.
const mixedMax = 8

// mixed kills the leader until each kind has led the other and was killed;
// writes go on through every server in between. What our learners and leaders
// add to the packets of discovery is thus read by Apache's, both ways.
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
