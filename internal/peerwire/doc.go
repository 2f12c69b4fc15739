// Package peerwire holds the messages that servers exchange: the packets between a
// leader and its learners, the notifications of an election, the message that opens
// an election connection, and the packets by which servers authenticate each other.
//
// Its records are coded as those of package wire. A [Notification] fills a frame,
// see [ReadElectionFrame]. A [QuorumPacket] has no frame, see [ReadPacket]; its data
// is another record of this package or of internal/record, as its [PacketType] says.
//
// The package decides nothing, opens nothing and starts no goroutine; its values are
// safe for concurrent reading. Read packet.go first, then learner.go and election.go.
package peerwire
