// Package claim is what the state machines of all recipes have in common. The machines themselves stand in the
// folders below it, one for each family of recipes:
//
//	lines     elections, locks, semaphores, several locks
//	commit    transactions of two phases
//	queues    queues and their items
//	barrier   barriers and double barriers
//	registry  registrations
//	value     values, counters, configurations of a leader, who leads
//	share     parts and tasks that members share
//	cache     copies of trees
//
// A machine takes an [Event] by Step, with the moment at which it happened: what the session does, the replies
// of the servers, a watch that fired, the wish to resign. Its Ready returns what has to be done: one [Request]
// to the servers, operations that take their own time, when to step next at the latest, and what the log says.
// An [Op] is one operation of either; a [Plan] says by which requests of the protocol it is carried out. Machines,
// the driver in package recipe and the simulator share this vocabulary.
//
// [Requester] is what machines have in common that make one request at a time. [Backoff] says how long a machine
// or its driver waits before the next try. What a client can prove about its session is a [Lease]; its deadline is
// when a term ends, whatever else the machine knows. [Stay] follows a session for recipes that have no line.
//
// [ParseBid], [ParseBids] and [Naming] know the names of bids: those of this project, Curator, kazoo, go-zookeeper
// and Apache's own recipe. [Notice] is the content of the LEADER znode. A [Kind] is a recipe as its znodes show
// it; [OtherRecipeError] says that a path is in use by another one.
//
// The packages are pure: they know no clock, socket, goroutine or random source. One goroutine at a time uses a
// machine. Read event.go and op.go first, then the doc.go of a family.
package claim
