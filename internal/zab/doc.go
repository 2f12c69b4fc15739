// Package zab keeps the histories of an ensemble's servers equal. It implements the
// three phases of Zab (discovery of a new epoch, synchronisation of each learner,
// broadcast of transactions) with the packets of Apache ZooKeeper 3.8 and 3.9.
//
// A [Leader] or a [Learner] (follower or observer) is one server's part in one term.
// Each is a pure state machine: Step takes an [Event] with its time; [Ready] returns
// duties for the disk, packets, and what the rest of the server must know. Both use
// the server's [Log], the newest transactions in memory, which outlives the term.
// When Ready.GiveUp is set, the term is over; the next term gets a new machine.
//
//	learner                                    leader
//	FOLLOWERINFO ▸                             a quorum of accepted epochs ▸ SaveAccepted
//	      ◂ LEADERINFO
//	SaveAccepted ▸ ACKEPOCH ▸                  a quorum of promises
//	      ◂ DIFF | TRUNC | SNAP, committed transactions, NEWLEADER, outstanding ones
//	Append, Sync | Install ▸ SaveCurrent ▸ ACK ▸        a quorum of ACKs
//	      ◂ UPTODATE                           both serve
//	      ◂ PROPOSAL; Append, Sync ▸ ACK ▸     a quorum of ACKs ▸ COMMIT, INFORM
//	FITNESS ▸ (fit.go)                         whether leadership may be transferred to it
//	DIGEST ▸ ◂ DIGEST (trees.go)               whether a quorum has the same tree
//	      ◂ HANDOVER (transfer.go)             all is committed, and the next leader has it
//
// The package looks at the zxids of transactions, not at what they mean; internal/tree
// does that. It opens no file or socket, reads no clock, starts no goroutine and holds
// no lock: each event brings the time, in milliseconds of a monotonic clock. No packet
// makes it panic. One goroutine at a time may use a machine and its log. What Ready
// returns belongs to the caller, except that transactions and packets are shared and
// must not be changed.
//
// In this package a native peer is a server of this project, which agrees on
// extensions of the protocol; a compatible peer is one of Apache ZooKeeper.
//
// Read event.go first, then log.go, commitment.go, learner.go, leader.go, choose.go.
package zab
