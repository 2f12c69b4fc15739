// Package replica is one server's whole mind: its role, the order of its
// sessions, and the three cores below it: the election, Zab and the tree. It
// is a pure state machine with three doors: Step takes one event with its
// time; Ready hands out the duties that have come of all steps since the last
// Ready; Next hands out, one by one and in the order clients may see them, the
// effects of what is committed. The server and the simulator are two drivers
// of the same mind. A driver's turn is:
//
//	Step, Step, … ▸ Ready ▸ Next, Next, … until there is none ▸ again from Ready while Unsettled
//
// A standalone server is an ensemble of one: it proposes to itself, its own
// synced log is the quorum, and it commits what is synced. It needs neither
// election nor epochs; all the rest is the same code.
//
// A server of an ensemble ([Options].Member) looks for a leader, leads, follows
// or observes (member.go, role.go):
//
//	Look ▸ election ▸ Decision ▸ Leading: zab.Leader, Ready.Listen
//	                           ▸ else: Ready.Dial ▸ Linked ▸ zab.Learner
//	▸ Established: clients are served ▸ GiveUp: clients are kept or closed, Look again
//	                                  ▸ or, handed over (handover.go), the next role at once
//
// A write on the leader: Request ▸ tree.Prepare ▸ zab.Propose ▸ Ready.Duties,
// Ready.Send ▸ a quorum ▸ commit ▸ Next: tree.Apply, which queues the watch
// events on the connections, then the Reply. On a follower the Request is
// forwarded, and answered when its transaction is applied here: matched by
// session and cxid in the order of the session. On a standalone server
// Synced commits. Several proposals may be in flight; they are prepared over
// each other.
//
// A read does not come here, unless an earlier request of its connection is
// still unanswered. Then it is handed in as a Request too, keeps its place
// among the writes of its connection, and comes back as a Turn: after the
// write before it has been applied, and before anything later is. So a
// connection that pipelines set, get, set, get reads each of its own writes,
// and all of them still share one sync.
//
// A session is taken up again in an ensemble with a mark in the history
// (attach.go): then everything that its earlier connections had asked for is
// applied here, and cannot be taken for an answer to what the new connection
// asks; and connections that their client has left are closed everywhere, so
// that the others can outlive a change of leaders (keep.go). A ping is
// answered only under the leader's lease (ping.go).
//
// A session may live on one server alone (local.go): made without a
// transaction, expired there, and without ephemerals until it becomes
// everybody's (upgrade.go).
//
// A server without a quorum can answer reads (readonly.go), on sessions that
// live on it alone (local.go).
//
// Each field of Ready, Duty and Output states what must be done before it. The
// promises to clients and other servers rest on that. One goroutine owns a Replica. The package starts none, holds no
// lock and knows no clock: time comes in with each event. Read event.go
// first, then replica.go.
package replica
