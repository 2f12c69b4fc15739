package zab

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// TestNativeOnlyRefusesZooKeeper: with NativeOnly, a leader closes the link of a ZooKeeper server, and a
// learner leaves a ZooKeeper leader. Both name this setting as the reason. Neither promises or raises an
// epoch because of the other.
func TestNativeOnlyRefusesZooKeeper(t *testing.T) {
	for _, only := range []bool{true, false} {
		g := logOf(t, "1.1", "1.2")
		start := TermStart{ID: 5, Accepted: 1, Current: 1, Committed: configuration(zx("1.0"), "1 2 3 4 5"), TickMS: 1000, InitLimit: 10, SyncLimit: 5}
		l := NewLeader(0, LeaderOptions{NativeOnly: only, TermStart: start}, g)
		l.Step(0, Synced{g.Last(), l.generation})
		introduce(l, 1, 1, 4)
		rd := l.Ready()
		if closed := slices.Contains(rd.Close, LinkID(1)); closed != only || only != strings.Contains(fmt.Sprint(rd.Observations), "sessionSecretFile") {
			t.Errorf("leader, native only %v: link closed %v, %v", only, closed, rd.Observations)
		}
		if only && l.epoch > 2 {
			t.Errorf("a refused server has raised the epoch to %d", l.epoch)
		}

		start.ID = 1
		r := NewLearner(0, LearnerOptions{Link: 1, Leader: 3, NativeOnly: only, TermStart: start}, logOf(t, "1.1", "1.2"))
		r.Step(0, Received{1, &peerwire.QuorumPacket{Type: peerwire.PacketLeaderInfo, Zxid: zx("2.0"), Data: wire.Append(nil, &peerwire.LeaderInfo{Version: peerwire.QuorumVersion})}})
		lr := r.Ready()
		if ended := strings.Contains(lr.GiveUp, "sessionSecretFile"); ended != only || (lr.SaveAccepted == 0) != only {
			t.Errorf("learner, native only %v: ended %q, accepts epoch %d", only, lr.GiveUp, lr.SaveAccepted)
		}
	}
}
