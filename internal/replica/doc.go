// Package replica is the whole core of one server: its role, the order of requests in
// its sessions, and the three cores below it, which are the election, Zab and the tree.
// It is a pure state machine with three methods. Step takes one event with its time.
// Ready returns the duties of all steps since the last Ready. Next returns the effects of
// committed transactions, one by one and in the order in which clients may see them. The
// server and the simulator both drive a Replica in this cycle:
//
//	Step, Step, … ▸ Ready ▸ Next, Next, … until there is none ▸ again from Ready while Unsettled
//
// A standalone server is an ensemble of one. It proposes to itself, and a transaction is
// committed when it is durable in the server's own log. It needs neither an election nor
// epochs; the rest of the code is the same.
//
// A server of an ensemble ([Options].Member) looks for a leader, leads, follows or
// observes (member.go, role.go):
//
//	Look ▸ election ▸ Decision ▸ Leading: zab.Leader, Ready.Listen
//	                           ▸ else: Ready.Dial ▸ Linked ▸ zab.Learner
//	▸ Established: clients are served ▸ GiveUp: clients are kept or closed, Look again
//	                                  ▸ or, after a leadership transfer (transfer.go), the next role at once
//
// A write on the leader: Request ▸ tree.Prepare ▸ zab.Propose ▸ Ready.Duties, Ready.Send ▸
// a quorum acknowledges ▸ commit ▸ Next: tree.Apply, which queues the watch events on the
// connections, then the Reply. A follower forwards the Request and answers it when it
// applies the transaction; transactions are matched to requests by session and cxid, in
// the order of the session. On a standalone server the event Synced commits. Several
// proposals may be in flight; each is prepared on top of those before it.
//
// A connection answers its reads itself, without the replica, unless an earlier request
// of the connection is unanswered. Then the driver steps the read as a Request. The read
// keeps its place among the writes of its connection: Next returns it as a Turn after the
// write before it has been applied and before any later write is. So a connection that
// pipelines set, get, set, get reads each of its own writes, and all writes share one fsync.
//
// In an ensemble a session is resumed with a session-move transaction (attach.go). A
// server that has applied it has also applied all requests of the session's earlier
// connections, so the result of such a request cannot be mistaken for the answer to a
// request of the new connection.
// Every server closes the connections that the client has left, so that the remaining
// ones can survive a change of leaders (keep.go). A ping is answered only under the
// leader's lease (ping.go).
//
// A local session is known to one server only (local.go). It is made without a
// transaction and expires on that server. It cannot own ephemerals until it becomes a
// global session (upgrade.go).
//
// A server without a quorum can answer reads (readonly.go), on local sessions.
//
// Each field of Ready, Duty and Output states what must be done before it. The promises
// to clients and other servers rest on that. One goroutine owns a Replica. The package
// starts none, holds no lock and reads no clock: the time comes with each event. Read
// event.go first, then replica.go.
package replica
