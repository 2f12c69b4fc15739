// Package election is fast leader election: how the servers of an ensemble
// agree on who leads, by exchanging votes until a quorum holds the same one.
//
// An [Election] is one server's part in it, a pure state machine. Step takes
// one [Event] with its time: Look (begin), Heard (a notification), Up, Down and
// RoundTrip (what is known of the ways to others), Joined and Established (how
// the decision fares), Configured, Appointed and HandedOver (a role without a
// vote), Tick. Ready hands out the duties: notifications to send, a membership
// to adopt, a [Decision], or the advice to give one up. [Record] tells how an
// election went, for the log, the recorder and the tests alike.
//
//	Look ▸ vote for itself, told to all voters ▸ Heard: better? adopt and tell; later round? join; earlier? answer
//	     ▸ a quorum holds the vote ▸ wait, or not ▸ Decision
//	     ▸ or: a quorum follows a leader that says itself that it leads ▸ Decision
//
// The order of votes is (peerEpoch, zxid, id). A round, the logical clock of
// the protocol, separates elections from each other; it is not durable. Winning
// means nothing yet: two servers may both think they lead. That one epoch has
// one leader is the work of Zab's discovery, which follows.
//
// The package knows no address, socket, file, lock or clock: time comes in as
// milliseconds of a monotonic clock with each event. It trusts no notification
// further than the rules let it, and no input makes it panic. One goroutine at
// a time uses an Election; what Ready hands out belongs to the caller. Read
// event.go first, then election.go, look.go, count.go, role.go.
package election
