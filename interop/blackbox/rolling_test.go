package blackbox

import "testing"

// TestRollingRestart restarts every server in turn, the leader last, as for an update. Each must
// be back before the next one stops.
func TestRollingRestart(t *testing.T) {
	s := begin(t, setting{})
	leader := s.awaitWhole()
	for _, i := range append(s.others(leader), leader) {
		s.must(s.e.Servers[i].Stop())
		s.load.awaitWrites(10, s.workers(s.others(i)...)...)
		s.restart(i)
		s.awaitWhole()
		s.load.awaitWrites(10)
	}
	s.finish()
}
