// Package claim holds the steps of the recipes as state machines, and the
// names under which recipes of this and other libraries stand in line.
//
// An [Election] is one bid for leadership, from its creation to its removal;
// it leads at most one term. [Election.Step] takes one [Event] with the
// moment it happened: what the session does, the replies of the server, a
// watch that fired, the wish to resign. [Election.Ready] hands out what has
// come of it: one [Request] to send, when to step next at the latest, and
// happenings for the log. [Election.State] says how things stand.
//
//	create bid ▸ sync, list, look at own bid ▸ watch the nearest bid ahead ▸ its event ▸ sync, list, …
//	                                         ▸ none ahead, session proven alive: lead ▸ publish at LEADER
//
// What a client can prove about its session is a [Lease]; its deadline is
// when a leading Election stops leading, whatever else it knows.
//
// [ParseBid], [ParseBids] and [Naming] know the names of bids: ours and those of
// Curator, kazoo, go-zookeeper and Apache's own recipe. [Notice] is the
// content of the LEADER znode.
//
// The package is pure: it knows no clock, socket, goroutine or randomness.
// One goroutine at a time uses an Election. Package recipe drives it over a
// client, the tests over a model of servers. Read election.go first, then
// join.go, look.go, publish.go, leave.go in the order of a term.
package claim
