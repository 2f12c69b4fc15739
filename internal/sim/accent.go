package sim

import (
	"bellwether/internal/peerwire"
	"bellwether/internal/zab"
)

// Servers that are plain stand in for those of Apache ZooKeeper. Their replica
// offers and takes no extension, gives its leader up after syncLimit ticks of
// silence and not before, pings each half tick and closes all its clients when
// the leader changes. What else such a server does, which a replica of ours
// never would, its driver does here:
//
//   - it waits 200 ms for a better vote in any case: round trips are not
//     measured, and no vote is known to be fresh (see meet, hear);
//   - a leader sends what it has proposed and not committed in front of
//     NEWLEADER, ours behind it;
//   - a server answers pings by itself as long as it serves, whatever has become
//     of its leader: a client has to allow for that, see candidate.attached.

// accent puts what a leader sends into the order of Apache ZooKeeper's.
func accent(out []zab.Message) {
	for i, m := range out {
		if m.Packet.Type != peerwire.PacketNewLeader {
			continue
		}
		at := i
		for j := i + 1; j < len(out); j++ {
			switch {
			case out[j].Link != m.Link:
			case out[j].Packet.Type != peerwire.PacketProposal:
				j = len(out) // what follows counts on what was told
			default:
				out[at], out[j] = out[j], out[at]
				at = j
			}
		}
	}
}
