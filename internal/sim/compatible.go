package sim

import (
	"bellwether/internal/peerwire"
	"bellwether/internal/zab"
)

// This file makes a server a compatible one, which stands for a server of Apache ZooKeeper.
// Its replica offers and accepts no extension, leaves its leader only after syncLimit ticks
// of silence, pings every half tick, and closes all client connections when the leader
// changes. The simulator adds what a native replica never does:
//
//   - The server always waits 200 ms for a better vote: it measures no round trips, and does not
//     know whether a vote is fresh (see connectElection, doubts).
//   - A leader sends the transactions that it has proposed and not committed before
//     NEWLEADER; a native one sends them after.
//   - The server answers pings by itself as long as it serves, even if its leader is gone.
//     A client must allow for that (client.Candidate).

// inZooKeeperOrder sorts the packets of a leader into the order in which a leader of Apache
// ZooKeeper sends them.
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
				j = len(out) // later packets rely on those that were sent before them
			default:
				out[at], out[j] = out[j], out[at]
				at = j
			}
		}
	}
}
