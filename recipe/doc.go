// Package recipe lets the clients of a ZooKeeper or Bellwether ensemble coordinate: it elects leaders, and
// it provides locks, queues, transactions and other recipes. It needs only the standard library.
//
// An [Election] elects one leader among the candidates of a path. Candidates
// that use other libraries can take part in the same election, see [Naming].
//
//	e, err := recipe.NewElection(client, "/app/scheduler", "host-a", nil)
//	if err != nil { … }
//	err = e.Lead(ctx, func(ctx context.Context, h *recipe.Handle) error {
//		// This client leads. Stop when ctx ends. Guard writes that must not be done twice:
//		_, err := h.Do(ctx, zk.SetOp("/app/state", state, version))
//		return err
//	})
//
// A [Handle] is one term of leadership. Three mechanisms protect the work of a leader. Each also
// protects in cases that the one before does not cover:
//
//   - The context of the handle ends before the server can give leadership to another candidate, if
//     the timing of the session allows a proof of that; [Handle.Proof] says whether it does.
//     A context does not help a process that is suspended after it has checked the context.
//   - [Handle.Token] grows with each leader. A resource that receives the token with each request
//     can refuse the requests of an older leader.
//   - [Handle.Do] writes to the ensemble only while the leader's bid exists. The same
//     transaction checks the bid.
//
// [Election.Observe] and [Election.Leader] tell who leads. They read one znode, LEADER, and do not
// wake the candidates.
//
// One client at a time holds a [Lock]. Several readers or one writer hold a [ReadWriteLock]. A [Semaphore] has a
// number of leases. A [MultiLock] takes several locks at once. A [Hold] is a lock or a lease that is held; its
// context, token and guard give the same protection as those of a Handle. A [TokenGate] checks tokens for the
// resource that a lock protects.
//
// A [Coordinator] and several instances of [Site] commit a transaction together or not at all. A [Barrier] keeps
// clients waiting until it is opened. The members of a [DoubleBarrier] begin together and end together. A [Queue]
// gives each item to one consumer. A [WorkQueue] also delivers an item again if its consumer fails.
//
// A [Registration] keeps an ephemeral znode across sessions. The members of a [Group] and the instances of a
// [Discovery] are registrations. A [Cache] is a copy of a subtree that follows the changes on the servers. A
// [Value], a [Counter] and [IDs] change a number or other data by compare and set. A [Partitioner] and [Work]
// share parts and tasks among members; each part and each task has an election of its own. [PublishConfig]
// publishes a leader's configuration.
//
// Each recipe needs a path of its own. If the path belongs to another recipe, the error is an [OtherRecipeError].
// The options of every recipe have a Logger and an Observer, see [Observation]. If the client, or another argument
// that a recipe cannot do without, is nil, the error names the argument and wraps zk.ErrBadArguments.
//
// # How it works
//
// The steps of each recipe are a state machine in internal/claim. This package reads clocks, makes requests and
// waits. The file driver.go has the only loop that carries requests and events between a machine and zk.Client. The
// type driver documents the goroutines that it starts and how it ends.
//
// The loop of a bid runs on a goroutine of its own until the bid is gone. Resign and Release wait for that goroutine, and
// closing the client ends it. The loops of a Registration and of a Cache run in the same way until Close. An Item,
// and a DoubleBarrier between Enter and Leave, have a loop that follows the session. The loops of other recipes run on
// the caller's goroutine, or end before the call returns. There is one exception: if the context of a call ends, its
// loop continues in the background until everything that the call has created is removed, or until the session ends.
//
// A Coordinator or a Site calls the functions of the application on one goroutine for each transaction. That goroutine
// ends before Commit or Join returns. Site.Serve has one goroutine for each transaction. Each recipe calls its Logger
// and its Observer on one goroutine, which ends when no report waits.
//
// Where two locks are held at once, they are taken in this order. Election.mu guards the current candidacy. candidacy.mu
// guards its bid and whether it has ended. driver.mu guards the machine. The driver.mu of a MultiLock is taken before
// those of its locks. No lock is held across I/O.
//
// Read election.go first, then driver.go, and then term.go and bidder.go, which elections and locks share.
package recipe
