// Package replica is one server's whole mind: its role, the order of its
// sessions, and the two cores below it (the tree, and for an ensemble the
// election and Zab). It is a pure state machine with three doors: Step takes
// one event with its time; Ready hands out the duties of disk that have come
// of all steps since the last Ready; Next hands out, one by one and in the
// order clients may see them, the effects of what is committed. The server and
// the simulator are two drivers of the same mind.
//
// A standalone server is an ensemble of one: it proposes to itself, its own
// synced log is the quorum, and it commits what is synced. Nothing is
// implemented twice.
//
// A write travels so: Request ▸ tree.Prepare ▸ Ready.Append ▸ (the driver's
// log writer) ▸ Synced ▸ commit ▸ Next: tree.Apply, which queues the watch
// events on the connections, then the Reply. Several proposals may be in
// flight; they are prepared over each other.
//
// A read does not come here, unless an earlier request of its connection is
// still unanswered. Then it is handed in as a Request too, keeps its place
// among the writes of its connection, and comes back as a Turn: after the
// write before it has been applied, and before anything later is. So a
// connection that pipelines set, get, set, get reads each of its own writes,
// and all of them still share one sync.
//
// The order of duties and effects is the rule that keeps promises: see Ready
// and Output. One goroutine owns a Replica. The package starts none, holds no
// lock and knows no clock: time comes in with each event. Read event.go
// first, then replica.go.
package replica
