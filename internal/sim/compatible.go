package sim

import (
	"bellwether/internal/peerwire"
	"bellwether/internal/zab"
)

// A compatible server stands in for one of Apache ZooKeeper. Its replica offers and
// accepts no extension, gives its leader up only after syncLimit ticks of silence,
// pings each half tick, and closes all its clients when the leader changes. The
// simulator adds what a native replica never does:
//
//   - The server always waits 200 ms for a better vote: it measures no round trips, and
//     does not know whether a vote is fresh (see meet, hear).
//   - A leader sends what it has proposed and not committed before NEWLEADER; a native
//     one sends it after.
//   - The server answers pings by itself as long as it serves, even if its leader is
//     gone. A client has to allow for that (candidate.attached).

// inZooKeeperOrder puts what a leader sends into the order in which a leader of Apache
// ZooKeeper sends it.
func inZooKeeperOrder(out []zab.Message) {
	for i, m := range out {
		if m.Packet.Type != peerwire.PacketNewLeader {
			continue
		}
		at := i
		for j := i + 1; j < len(out); j++ {
			switch {
			case out[j].Link != m.Link:
			case out[j].Packet.Type != peerwire.PacketProposal:
				j = len(out) // what follows relies on what was sent before it
			default:
				out[at], out[j] = out[j], out[at]
				at = j
			}
		}
	}
}
