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
//   - A learner acknowledges the transactions of a DIFF, one by one, after UPTODATE.
//   - The server answers pings by itself as long as it serves, even if its leader is gone.
//     A client must allow for that (client.Candidate).
//
// In one respect a compatible server stays a native one: with an empty disk it sends zxid -1
// in its votes and promises no epoch. A server of Apache ZooKeeper takes part as if it had
// never had a history. A disk that is wiped could then lose transactions.
//
// interop/realpeers compares what a compatible server sends with what Apache ZooKeeper
// sends. docs/testing.md lists the differences.

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

// noteReceived records a packet of a leader for acknowledgeDiff.
func (l *link) noteReceived(p *peerwire.QuorumPacket) {
	switch p.Type {
	case peerwire.PacketDiff:
		l.inDiff = true
	case peerwire.PacketCommit: // outstanding transactions of a compatible leader have none, and are acknowledged when they are durable
		if l.inDiff {
			l.diff = append(l.diff, p.Zxid)
		}
	case peerwire.PacketNewLeader:
		l.inDiff = false
	case peerwire.PacketUpToDate:
		l.upToDate = true
	}
}

// acknowledgeDiff acknowledges the transactions of a DIFF after the answer to UPTODATE,
// which is an ACK of the epoch, as the answer to NEWLEADER is.
func (v *server) acknowledgeDiff(l *link, sent *peerwire.QuorumPacket) {
	if !l.upToDate || sent.Type != peerwire.PacketAck || sent.Zxid.Counter() != 0 {
		return
	}
	diff := l.diff
	l.diff = nil
	for _, z := range diff {
		v.sendPacket(zab.Message{Link: l.id, Packet: &peerwire.QuorumPacket{Type: peerwire.PacketAck, Zxid: z}})
	}
}
