// Package claim holds the steps of the recipes as state machines, and the
// names under which recipes of this and other libraries stand in line.
//
// A [Line] is one bid in a line of bids, from its creation to its removal; it
// leads, or holds a lock, for at most one term. Its [Rule] says which bids
// ahead it has to wait for. An [Election] is a Line whose first publishes
// itself; a [Semaphore] is two Lines, one after the other.
//
// [Line.Step] takes one [Event] with the moment it happened: what the session
// does, the replies of the server, a watch that fired, the wish to resign.
// [Line.Ready] hands out what has come of it: one [Request] to send, when to
// step next at the latest, and happenings for the log. [Line.State] says how
// things stand.
//
//	create bid ▸ list, look at own bid ▸ watch the nearest bid in the way ▸ its event ▸ list, look …
//	                                   ▸ none in the way, session proven alive: lead ▸ publish at LEADER
//
// [Site] and [Coordinator] are the parts in one transaction of two phases, and
// are driven in the same way; commit.go is what they have in common. They need
// no lease: all they act on is a znode that is created once. [Serving] says in
// which transactions a site takes part, and when.
//
// [Barrier] and [Member] are the parts in a barrier and in a double barrier.
// [Registrant] keeps an ephemeral znode, from one session to the next; [Removal]
// removes one.
// [Sharing] is a member of those who share parts, or do tasks: it asks nothing of
// a server itself, but has its driver register, follow and bid; [Task] is one task.
// In the same way [Several] takes several locks, and holds all or none.
// [Announce] announces a leader's configuration, [Announcements] follows it,
// [Leaders] who leads.
//
// [Backoff] says how long a machine, or its driver, waits before the next try.
//
// [Course] says by which requests of the protocol a driver carries out an operation.
//
// What a client can prove about its session is a [Lease]; its deadline is
// when a term ends, whatever else the Line knows. [Stay] follows it for what has no Line: the claim
// of an item, a member of a barrier.
//
// The names that a recipe finds at its path may be those of another one: resident.go tells.
// Items that are not due yet stand apart from the others: later.go.
//
// [ParseBid], [ParseBids] and [Naming] know the names of bids: ours and those of
// Curator, kazoo, go-zookeeper and Apache's own recipe. [Notice] is the
// content of the LEADER znode.
//
// [Cache] is a copy of a tree that follows it. What the watch of a tree tells is
// stepped as [Told], as much at a time as has come, and before the Reply to
// what was answered later; its end as [WatchOver]. The reads of a Cache are
// one Request, which may be one to the server, in whichever session there is.
//
// The package is pure: it knows no clock, socket, goroutine or randomness.
// One goroutine at a time uses a Line. Package recipe drives it over a
// client, the tests over a model of servers. Read line.go first, then
// join.go, look.go, publish.go, leave.go in the order of a term; of a
// transaction site.go, coordinator.go, then commit.go.
package claim
