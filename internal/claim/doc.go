// Package claim holds the vocabulary and the common parts of the state machines of all recipes. The
// machines themselves are in the packages below it, one for each family of recipes:
//
//	lines     elections, locks, semaphores, multi-locks
//	commit    two-phase commit
//	queues    queues and their items
//	barrier   barriers and double barriers
//	registry  registrations
//	value     values, counters, configurations of a leader, current leaders
//	share     parts and tasks that members share
//	cache     copies of trees
//
// The method Step of a machine takes an [Event] and the [Moment] at which it happened. Events are changes
// of the session, replies of the servers, watches that fired, and the caller's request to resign. The
// method Ready returns what the driver must do: send one [Request] to the servers, begin long-running
// operations, call Step again after a given time, and log observations. An [Op] is one operation of a
// request, or one long-running operation. A [Plan] turns an Op into requests of the protocol. The
// machines, the driver in package recipe and the simulator use the same types.
//
// [Requester] is the common part of machines that make one request at a time. [Backoff] computes the pause
// before the next try. A [Lease] is a client's proof that its session is alive. A term always ends at the
// deadline of its lease. [Stay] tracks the session for recipes that have no bids.
//
// [ParseBid], [ParseBids] and [Naming] parse the names of bids: those of this project, Curator, kazoo,
// go-zookeeper and Apache's own recipe. [Notice] is the content of the LEADER znode. A [Kind] is a recipe,
// as its znodes show it. [OtherRecipeError] reports that another recipe uses a path.
//
// The packages are pure: they use no clock, socket, goroutine or random source. Only one goroutine at a
// time may use a machine. Read event.go and op.go first, then the doc.go of a family.
package claim
