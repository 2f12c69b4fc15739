// Package election implements fast leader election: the servers of an ensemble exchange
// votes until a quorum holds the same one.
//
// An [Election] is one server's part, a pure state machine. Step takes one [Event] with
// its time: Look (begin), Heard (a notification), Up, Down and RoundTrip (the connections
// to others), Joined and Established (whether the decision succeeds), Configured,
// Appointed and Transferred (a role without a vote), Tick. Ready returns notifications to
// send, a membership to adopt, a [Decision], or the advice to give one up. [Record]
// describes an election, for the log, the recorder and the tests.
//
//	Look ▸ vote for itself, sent to all voters ▸ Heard: better? adopt and send; later round? join; earlier? answer
//	     ▸ a quorum holds the vote ▸ wait for a better vote, if one may come ▸ Decision
//	     ▸ or: a quorum follows a leader that says itself that it leads ▸ Decision
//
// A server without a vote decides only in the second way (Election.elector says why).
//
// The order of votes is (peerEpoch, zxid, id). A round, the logical clock of the
// protocol, separates elections from each other; it is not durable. Winning an election
// does not yet make a leader: two servers may both think that they lead. Zab's discovery,
// which follows, ensures that one epoch has one leader.
//
// The package knows no address, socket, file, lock or clock: each event brings the time,
// in milliseconds of a monotonic clock. Notifications may be wrong, and no input makes it
// panic. One goroutine at a time may use an Election. What Ready returns belongs to the
// caller. Read event.go first, then election.go, look.go, count.go, role.go.
package election
