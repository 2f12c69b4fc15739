package sim

import (
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// situation is something that a good set of seeds must bring about. That a fault was
// carried out is not enough: it must have had its effect.
type situation int

// The situations.
const (
	situationLeader           situation = iota // a leader is established
	situationTailKept                          // a new leader commits the tail of its log
	situationRejoin                            // a server is established again in the same epoch
	situationTrunc                             // a log is truncated
	situationSnap                              // a learner gets a snapshot
	situationSnapOverTail                      // a snapshot is installed over a log
	situationDiskLog                           // a learner is synchronised from the log on disk
	situationRollOver                          // the counter of an epoch is used up
	situationFull                              // a disk is full
	situationDiskError                         // a disk fails
	situationSyncFailed                        // an fsync fails, and the next process of that machine goes on
	situationTorn                              // a power failure loses a part of what was not fsynced, and keeps a later part
	situationNamesLost                         // a power failure loses file names that were created, changed or removed
	situationSnapshot                          // a snapshot is written while transactions are applied
	situationSlowDisk                          // a slow disk is written to
	situationResumed                           // a session is resumed
	situationMoved                             // a session moves to another server
	situationMovedLeaderless                   // a session moves; its client connected while there was no leader
	situationMovedHeld                         // a session moves while the server that it left holds a write of it
	situationKept                              // a connection outlives a change of leaders
	situationKeptHeld                          // a connection that outlives a change of leaders has a request under way
	situationWatchesAgain                      // a client sets its watches again on another connection
	situationWiped                             // a wiped server is synchronised
	situationOldLink                           // bytes of an old link are read after the new link is up
	situationOneSide                           // a packet is sent to an end that no longer exists
	situationResetLoses                        // a reset loses packets that were sent
	situationStalled                           // a disk does not answer
	situationFiltered                          // the port for learners of a leader is filtered
	situationTermFailed                        // a term ends before it has served
	situationOneWay                            // a packet waits while only the other direction is open
	situationStoppedAccepts                    // the kernel accepts a connection for a process that is stopped
	situationSlotReplaced                      // a notification replaces one that was not sent yet
	situationSentAgain                         // the last notification is sent again on a new connection
	situationBatchCut                          // a batch takes only some of the waiting events
	situationPause                             // the process pauses between Step and Ready
	situationSlept                             // a suspended server goes on
	situationClockBack                         // a server's wall clock goes back
	situationClientSlept                       // a suspended client goes on
	situationClientClockBack                   // a client's wall clock goes back
	situationHolderStopped                     // the holder of a claim is stopped
	situationHalfOpen                          // a client vanishes, and its connection stays
	situationObserver                          // an observer serves
	situationAdded                             // a voter or an observer is added
	situationPromoted                          // an observer becomes a voter
	situationDemoted                           // a voter becomes an observer
	situationRetired                           // a server is removed for good
	situationMixed                             // a leader is established while servers use different lists
	situationGroups                            // a leader is established by a quorum of groups
	situationLight                             // a voter with weight 0 serves
	situationUnderPlain                        // a native server follows a compatible one
	situationPlainUnder                        // a compatible server follows a native one
	situationCompatibleCloses                  // a compatible server closes its client connections when the leader changes
	situationThree                             // a leader is established among 3 voters
	situationFour
	situationFive
	situationSix
	situationSeven
	situationTransfer          // a leader transfers leadership
	situationTransferred       // the successor that it named is established
	situationTransferredMixed  // the successor that a leader named is established, although some servers do not know transfers
	situationTransferFailed    // servers give up the named successor
	situationTransferLate      // a leader finds no successor in time
	situationReadOnly          // a client reads from a server without a quorum
	situationLocalUpgraded     // a local session becomes global
	situationLocalResumed      // a local session is resumed on its server
	situationTreeAgain         // the watch of a tree is set again on another connection
	situationSince             // a cache asks what has changed since a zxid
	situationHeartbeat         // a leader pings in the middle of a batch
	situationHeartbeatBehind   // a leader pings in the middle of a batch, and before the pings it sends the packets of the batch so far
	situationHeartbeatLong     // a leader pings a second or more after its batch began
	situationHeartbeatAnswered // a learner answers pings in the middle of a batch
	situationUserTimeout       // a connection ends because what was sent stays unacknowledged
	situationClockAhead        // a server's wall clock is set forward by an hour or more
	situationJumped            // the monotonic clock of a server jumps
	situationClientClockAhead  // a client's wall clock is set forward by an hour or more
	situationClientJumped      // the monotonic clock of a client jumps
	situationSnapOfChanges     // a leader applies transactions while it reads the snapshot that it sends
	situationSnapSlow          // a snapshot is sent for a second or more
	situationSnapCut           // the link ends in the middle of a snapshot
	situationRackOff           // several servers lose power in the same moment, because a rack does
	situationSwitchOff         // several servers lose their links at once, because a switch fails
	situationFullTogether      // the disks of several servers are full at the same time
	situationRotFallback       // a server uses an older snapshot, because the newest one has decayed
	situationRotRefused        // a server refuses to start, because its disk has decayed
	situationUnreadable        // a server refuses to start, because a sector cannot be read
	situationRotNotSent        // a leader sends a snapshot, because its log has decayed
	situationDiskLost          // a disk is lost although the others cannot do without it
	situationWaits             // an ensemble waits, because too few voters have a history
	situationLied              // a server has lost what its lying disk had promised
	situationRegained          // such a server has everything again
	situationSuspended         // because of such servers, acknowledged writes may be lost
	situationAckedLost         // acknowledged writes were lost in this way
	situationProposed          // a server has a membership in its log that it does not know to be committed
	situationReconfigured      // a reconfiguration is committed
	situationAppointed         // a reconfiguration has named another leader, which is established
	situationAdopted           // a looking server adopts a newer membership from a notification
	situationPreferred         // a leader has made a preferred server the leader
	situationLossRefused       // a server refuses to start, because its disk has lost a part of what it had promised
	situationHole              // a server starts without a part of its history in the middle, because no file shows the loss
	situationHoleFilled        // a leader replaces the tree of such a server
	situationEpochDecayed      // an epoch file decays
	situationEpochTooLarge     // a server reads a decayed currentEpoch that is too large
	situationLeaderJumped      // the monotonic clock of a leader jumps
	situationTouched           // a leader confirms to a learner the sessions for which clients wait, before its next ping
	situationHeardLate         // a client sends a ping after its session has expired and before its end is proposed
	situationRest              // clients only read for longer than their sessions would live otherwise
	situationTriedPurge        // a copy of a disk is purged
	situationTriedTruncation   // a copy of a disk is truncated
	situationTriedRead         // the log of a copy of a disk is read
	situationTriedDamage       // a start reads a copy of a disk with damage in the middle of the newest log
	situationTriedGap          // a start reads a copy of a disk on which a log is missing
	situationTriedEpochs       // a start reads a copy of a disk with a currentEpoch above acceptedEpoch
	situationTriedInstalled    // a start reads a copy of a disk on which an installed snapshot has decayed
	situationTriedFull         // a start reads a copy of a disk that is full
	situationTriedRepair       // a start reads a copy of a disk from which another start has cut off the end of a log
	situationSpoilt            // a server has got the right tree again after its tree has changed in memory
	// The healthy servers have served while others kept a lasting fault.
	situationLastingDead
	situationLastingPaused
	situationLastingIsolated
	situationLastingDeaf
	situationLastingMute
	situationLastingSluggish
	situationLastingHung
	situationLastingFull
	situationLastingFiltered
	situations
)

var situationNames = [situations]string{
	"leader", "tail committed by the new leader", "rejoin in the same epoch", "TRUNC", "SNAP", "SNAP over a log",
	"synchronised from the disk's log", "roll-over", "disk full", "disk error", "fsync failed, and succeeded at the next start",
	"write torn by a power failure", "names lost by a power failure", "snapshot of a changing tree", "slow disk written", "session resumed",
	"session moved", "session moved while there was no leader", "session moved while a write is held",
	"connection outlives a leader", "request outlives a leader", "watches set again", "wiped disk",
	"old link read after the new one is up", "packet sent to an end that no longer exists", "reset loses what was sent",
	"disk does not answer", "port for learners filtered", "term failed", "packets blocked in one direction",
	"stopped process accepts", "unsent notification replaced", "last notification sent again", "batch cut",
	"pause between Step and Ready", "server suspended", "server's wall clock set back", "client suspended",
	"client's wall clock set back", "holder stopped", "half-open client", "observer serves", "server added",
	"observer promoted", "voter demoted", "server retired", "leader while servers use different lists", "leader by groups",
	"voter without weight", "native server follows a compatible one", "compatible server follows a native one", "compatible server closes its clients",
	"3 voters", "4 voters", "5 voters", "6 voters", "7 voters",
	"leadership transfer begun", "leadership transferred", "leadership transferred in a mixed ensemble", "leadership transfer failed", "leadership transfer without a successor",
	"read without a quorum", "local session upgraded", "local session resumed", "tree watched again", "asked what has changed",
	"ping in the middle of a batch", "ping sent after earlier packets of a batch", "ping a second into a batch", "ping answered in the middle of a batch",
	"connection timed out", "server's wall clock set forward", "server's monotonic clock jumped", "client's wall clock set forward",
	"client's monotonic clock jumped", "SNAP of a changing tree", "slow SNAP", "SNAP cut in the middle",
	"rack without power", "switch out of order", "several disks full",
	"older snapshot used because one has decayed", "start refused because of decay", "start refused because of a read error", "decayed log not sent to a learner",
	"disk lost that others need", "too few voters have a history", "lying disk loses what it promised", "lost promise regained", "promises suspended", "acknowledged writes lost",
	"membership proposed", "membership changed", "leader named by a reconfiguration", "membership adopted from a notification",
	"preferred server leads",
	"start refused because a part of a promise is lost", "start with a hole in the history", "hole in the history filled", "epoch file decayed", "decayed currentEpoch too large", "leader's monotonic clock jumped",
	"sessions confirmed before the next ping", "ping of an expired session before its end", "clients that only read keep their sessions",
	"copy of a disk purged", "copy of a disk truncated", "log of a copy of a disk read", "copy of a disk with damage in its log", "copy of a disk without a log", "copy of a disk with mixed epochs",
	"copy of a disk with a decayed snapshot of a leader", "copy of a full disk", "copy of a repaired disk",
	"tree that has changed in memory replaced",
	"served while others are dead", "served while others are paused", "served while others are isolated", "served while others are deaf",
	"served while others are mute", "served while others are sluggish", "served while the disks of others hang", "served while the disks of others are full",
	"served while the ports of others are filtered",
}

func (s *Sim) reach(x situation) { s.reached[x]++ }

// arrived records the circumstances in which a server begins to serve.
func (s *Sim) arrived(v *server) {
	r := &s.roster
	switch {
	case v.standing.Role == peerwire.Leading:
		if n := v.voterCount(); n >= votersMin && n <= votersMax {
			s.reach(situationThree + situation(n-votersMin))
		}
		if r.groups > 0 {
			s.reach(situationGroups)
		}
		if s.mixed() {
			s.reach(situationMixed)
		}
	case v.standing.Role == peerwire.Observing:
		s.reach(situationObserver)
	}
	if v.id == r.light {
		s.reach(situationLight)
	}
	if l := s.server(v.standing.Leader); l != nil && l.compatible != v.compatible {
		if l.compatible {
			s.reach(situationUnderPlain)
		} else {
			s.reach(situationPlainUnder)
		}
	}
	for _, c := range v.conns {
		if c.session != 0 && c.epoch != 0 && c.epoch != v.standing.Epoch {
			s.reach(situationKept)
			c.from = c.epoch
			if c.outstanding > 0 {
				s.reach(situationKeptHeld)
			}
		}
		c.epoch = v.standing.Epoch
	}
}

// voterCount returns how many servers vote by this server's list.
func (v *server) voterCount() int { return len(v.members.Voters()) }

// left records that a session has moved to another server while its old server still holds
// a write of it.
func (s *Sim) left(id wire.SessionID, now *conn) {
	for _, v := range s.servers {
		if !v.up || v.standing.Serving {
			continue
		}
		for _, c := range v.conns {
			if c != now && c.session == id && c.outstanding > 0 {
				s.reach(situationMovedHeld)
			}
		}
	}
}
