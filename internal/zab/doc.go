// Package zab keeps the histories of an ensemble's servers equal: discovery of
// a new epoch, synchronisation of each learner, broadcast of transactions, in
// the packets of Apache ZooKeeper 3.8 and 3.9.
//
// A [Leader] or a [Learner] (follower or observer) is one server's part in
// that for one term, a pure state machine: Step takes an [Event] with its time,
// [Ready] hands out duties for the disk, packets, and what the rest of the
// server must know. Both work on the server's [Log], its memory of the newest
// transactions, which outlives the term. When Ready.GiveUp is set the term is
// over; the next one gets a new machine.
//
//	learner                                    leader
//	FOLLOWERINFO ▸                             a quorum of accepted epochs ▸ SaveAccepted
//	      ◂ LEADERINFO
//	SaveAccepted ▸ ACKEPOCH ▸                  a quorum of promises
//	      ◂ DIFF | TRUNC | SNAP, committed transactions, NEWLEADER, outstanding ones
//	Append, Sync | Install ▸ SaveCurrent ▸ ACK ▸        a quorum of ACKs
//	      ◂ UPTODATE                           both serve
//	      ◂ PROPOSAL; Append, Sync ▸ ACK ▸     a quorum of ACKs ▸ COMMIT, INFORM
//	      ◂ HANDOVER (handover.go)             all is committed, and the next leader has it
//
// The package knows transactions by their zxids alone; what they mean is the
// tree's affair. It opens nothing, reads no clock, starts no goroutine and
// holds no lock: time comes in as milliseconds of a monotonic clock with each
// event. No packet makes it panic. One goroutine at a time uses a machine and
// its log; what Ready hands out belongs to the caller, except that transactions
// and packets are shared and must not be changed.
//
// Read event.go first, then log.go, learner.go, leader.go, choose.go.
package zab
