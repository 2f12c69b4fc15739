package sim

import (
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// situation is something that a good set of seeds has to reach: that a fault
// was carried out is not enough, it has to have had its effect.
type situation int

// The situations.
const (
	situationLeader           situation = iota // a leader is established
	situationTailKept                          // a new leader commits the tail of its log
	situationRejoin                            // a server is established again in the same epoch
	situationTrunc                             // a log is cut
	situationSnap                              // a learner is sent a snapshot
	situationSnapOverTail                      // a snapshot is installed over a log
	situationDiskLog                           // a learner is synchronised from the log on disk
	situationRollOver                          // an epoch's counter is used up
	situationFull                              // a disk is full
	situationDiskError                         // a disk fails
	situationSyncFailed                        // a sync fails, and the next process of that machine goes on
	situationTorn                              // a power failure takes a part of what was not synced, and leaves what came behind it
	situationNamesLost                         // a power failure takes names that were made, changed or removed
	situationSnapshot                          // a snapshot is written while transactions are applied
	situationSlowDisk                          // a slow disk is written
	situationResumed                           // a session is taken up again
	situationMoved                             // a session moves to another server
	situationMovedLeaderless                   // and it had asked while nobody led
	situationMovedHeld                         // and the server that it left holds a write of it
	situationKept                              // a connection outlives a change of leaders
	situationKeptHeld                          // with a request under way
	situationWatchesAgain                      // watches are set again on another connection
	situationWiped                             // a wiped server is synchronised
	situationOldLink                           // bytes of an old link are read after the new one is up
	situationOneSide                           // something is sent to an end that is no more
	situationResetLoses                        // a reset takes with it what was sent
	situationStalled                           // a disk does not answer
	situationFiltered                          // the port of a leader for its learners is filtered
	situationTermFailed                        // a term ends before it served
	situationOneWay                            // a packet waits where only the other way is open
	situationStoppedAccepts                    // a connection is accepted for a process that is stopped
	situationSlotReplaced                      // a notification replaces one that was not sent yet
	situationSentAgain                         // the last notification is sent again on a new connection
	situationBatchCut                          // a batch ends in the midst of what has come
	situationPause                             // something comes between Step and Ready
	situationSlept                             // a suspended server goes on
	situationClockBack                         // a server's wall clock goes back
	situationClientSlept                       // a suspended client goes on
	situationClientClockBack                   // a client's wall clock goes back
	situationHolderStopped                     // the holder of a claim is stopped
	situationHalfOpen                          // a client vanishes, its connection stays
	situationObserver                          // an observer serves
	situationAdded                             // a voter or an observer comes
	situationPromoted                          // an observer becomes a voter
	situationDemoted                           // a voter becomes an observer
	situationRetired                           // a server goes for good
	situationMixed                             // a leader is established while servers go by different lists
	situationGroups                            // a leader is established by groups
	situationLight                             // a voter without weight serves
	situationUnderPlain                        // one of our servers follows one that is as ZooKeeper's
	situationPlainUnder                        // and the reverse
	situationCompatibleCloses                  // such a one closes its clients when the leader changes
	situationThree                             // a leader is established among 3 voters
	situationFour
	situationFive
	situationSix
	situationSeven
	situationHandOver        // a leader hands over
	situationHandedOver      // and the one it has named is established
	situationHandedOverMixed // among servers that know nothing of that
	situationHandOverVain    // the one it has named is given up
	situationHandOverLate    // it can name nobody in time
	situationReadOnly        // a client reads from a server without a quorum
	situationLocalUpgraded   // a local session becomes everybody's
	situationLocalResumed    // one is taken up again where it lives
	situationTreeAgain       // the watch of a tree is set again on another connection
	situationSince           // a cache asks what has changed since
	situationBeat            // a leader pings in the middle of a batch
	situationBeatBehind      // behind packets that the batch had not sent yet
	situationBeatLong        // a second or more after the batch began
	situationBeatAnswered    // a learner answers pings in the middle of a batch
	situations
)

var situationNames = [situations]string{
	"leader", "tail committed by the new leader", "rejoin in the same epoch", "TRUNC", "SNAP", "SNAP over a log",
	"synchronised from the disk's log", "roll-over", "disk full", "disk error", "sync failed, and succeeds at the next start",
	"write torn by a power failure", "names lost by a power failure", "snapshot of a changing tree", "slow disk written", "session resumed",
	"session moved", "session moved in leaderless time", "session moved while a write is held",
	"connection outlives a leader", "request outlives a leader", "watches set again", "wiped disk",
	"old link read after the new one is up", "sent to an end that is gone", "reset loses what was sent",
	"disk does not answer", "port for learners filtered", "term failed", "one way blocked",
	"stopped process accepts", "notification replaced in its slot", "last notification sent again", "batch cut",
	"pause between Step and Ready", "server suspended", "server's wall clock set back", "client suspended",
	"client's wall clock set back", "holder stopped", "half-open client", "observer serves", "server added",
	"observer promoted", "voter demoted", "server retired", "leader under mixed lists", "leader by groups",
	"voter without weight", "ours under ZooKeeper's", "ZooKeeper's under ours", "ZooKeeper's closes its clients",
	"3 voters", "4 voters", "5 voters", "6 voters", "7 voters",
	"hand-over", "handed over", "handed over among compatible servers", "handed over in vain", "nobody to hand over to",
	"read without a quorum", "local session upgraded", "local session resumed", "tree watched again", "asked what has changed",
	"ping in the middle of a batch", "ping behind what a batch had not sent", "ping a second into a batch", "ping answered in the middle of a batch",
}

func (s *Sim) reach(x situation) { s.reached[x]++ }

// arrived notes in which surroundings a server begins to serve.
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
			if c.outstanding > 0 {
				s.reach(situationKeptHeld)
			}
		}
		c.epoch = v.standing.Epoch
	}
}

// voterCount is how many servers vote by this server's list.
func (v *server) voterCount() int { return len(v.members.Voters()) }

// left notes that a session is elsewhere now, where another server still holds
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
