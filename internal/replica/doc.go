// Package replica is one server's whole mind: its role, the order of its
// sessions, and the two cores below it (the tree, and for an ensemble the
// election and Zab). It is a pure state machine: Step takes one event with
// its time, Ready hands out the duties that have come of all steps since the
// last Ready. The server and the simulator are two drivers of the same mind.
//
// A standalone server is an ensemble of one: it proposes to itself, its own
// synced log is the quorum, and it commits what is synced. Nothing is
// implemented twice.
//
// A write travels so: Request ▸ tree.Prepare ▸ Ready.Append ▸ (the driver's
// log writer) ▸ Synced ▸ commit ▸ tree.Apply, which queues the watch events on
// the connections ▸ Ready.Replies. Several proposals may be in flight; they
// are prepared over each other.
//
// The order of a Ready's duties is the rule that keeps promises: see Ready.
// One goroutine owns a Replica. The package starts none, holds no lock and
// knows no clock: time comes in with each event.
package replica
