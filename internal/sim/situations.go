package sim

// situation is something that a good set of seeds has to reach.
type situation int

// The situations.
const (
	situationLeader          situation = iota // a leader is established
	situationTailKept                         // a new leader commits the tail of its log
	situationRejoin                           // a server is established again in the same epoch
	situationTrunc                            // a log is cut
	situationSnap                             // a learner is sent a snapshot
	situationSnapOverTail                     // a snapshot is installed over a log
	situationDiskLog                          // a learner is synchronised from the log on disk
	situationRollOver                         // an epoch's counter is used up
	situationFull                             // a disk is full
	situationDiskError                        // a disk fails
	situationSnapshot                         // a snapshot is written while the server goes on
	situationResumed                          // a session is taken up again
	situationMoved                            // a session moves to another server
	situationMovedLeaderless                  // and it had asked while nobody led
	situationWatchesAgain                     // watches are set again on another connection
	situationWiped                            // a wiped server is synchronised
	situationHandOver                         // a leader hands over
	situationHandedOver                       // and the one it has named is established
	situationHandedOverMixed                  // among servers that know nothing of that
	situationHandOverVain                     // the one it has named is given up
	situationHandOverLate                     // it can name nobody in time
	situationReadOnly                         // a client reads from a server without a quorum
	situationLocalUpgraded                    // a local session becomes everybody's
	situationLocalResumed                     // one is taken up again where it lives
	situations
)

var situationNames = [situations]string{
	"leader", "tail committed by the new leader", "rejoin in the same epoch", "TRUNC", "SNAP", "SNAP over a log",
	"synchronised from the disk's log", "roll-over", "disk full", "disk error", "snapshot", "session resumed",
	"session moved", "session moved in leaderless time", "watches set again", "wiped disk",
	"hand-over", "handed over", "handed over among Plain servers", "handed over in vain", "nobody to hand over to",
	"read without a quorum", "local session upgraded", "local session resumed",
}

func (s *Sim) reach(x situation) { s.reached[x]++ }
