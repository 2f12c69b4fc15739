// Package recipe lets the clients of a ZooKeeper ensemble, or of Bellwether,
// agree on who does what. It needs the standard library alone.
//
// An [Election] elects one leader among the candidates of a path. Candidates
// in other languages can stand in the same election, see [Naming].
//
//	e, err := recipe.NewElection(client, "/app/scheduler", "host-a", nil)
//	if err != nil { … }
//	err = e.Lead(ctx, func(ctx context.Context, h *recipe.Handle) error {
//		// We lead. Stop when ctx ends. Guard what must not be done twice:
//		_, err := h.Do(ctx, zk.SetOp("/app/state", state, version))
//		return err
//	})
//
// Leading is a [Handle]. Three things protect what a leader does, each against
// more than the one before:
//
//   - Its context ends before the server can have given leadership away, as far as
//     the session can be proven alive; [Handle.Proof] says whether it can.
//     No clock helps a process that is stopped between looking and acting.
//   - [Handle.Token] grows with each leader. Who is given it with each request
//     can refuse those of an older leader.
//   - [Handle.Do] writes to the ensemble only while the leader's bid stands,
//     checked in the same transaction.
//
// What is elected here is observed with [Election.Observe] and
// [Election.Leader] through one znode, LEADER, without waking the candidates.
//
// A [Lock] is held by one at a time, a [ReadWriteLock] by readers or a writer, the
// leases of a [Semaphore] by a number, a [MultiLock] is several locks at once.
// What is held is a [Hold], of which the same is true as of a Handle; a
// [TokenGate] stands before what a lock protects.
//
// A [Coordinator] and its sites, each a [Site], commit a transaction together or
// not at all. A [Barrier] holds back, a [DoubleBarrier] lets many begin and end
// together. A [Queue] hands out items, a [WorkQueue] those that come back from the
// dead.
//
// A [Registration] keeps an ephemeral znode across sessions; the members of a
// [Group] and the instances of a [Discovery] are such. A [Cache] is a copy of a subtree
// that follows it. A [Value], a [Counter] and [IDs] change by compare and set. A
// [Partitioner] and [Work] share parts and tasks among members, each under an
// election of its own; [PublishConfig] is the word of a leader.
//
// Each recipe needs a path of its own; an [OtherRecipeError] says which other one stands there.
// The options of all of them have a Logger and an Observer, see [Observation].
//
// # How it works
//
// The steps of each recipe are a state machine in internal/claim. This package reads clocks, makes requests and
// waits: driver.go has the one loop that carries requests and events between a machine and zk.Client, and
// says which goroutines it starts and how it ends.
//
// The loop of a bid runs on a goroutine of its own until the bid is gone. Resign and Release wait for it; closing the
// client ends it. So do the loops of a Registration and of a Cache, until Close, and those of an Item and of a
// DoubleBarrier between Enter and Leave, which follow the session. The loops of other recipes run on
// the caller's goroutine, or end before the call returns. Where the context of a call has ended, its loop goes on in the
// background until what the call has made is removed, or until the session ends.
//
// A transaction calls the application on one goroutine, which ends before Commit or Join returns. Site.Serve has one
// goroutine for each transaction. A Logger and an Observer are called by one goroutine for each recipe, which
// ends when nothing waits.
//
// Locks, in the order in which they are taken where two are held at once: Election.mu guards which candidacy is the
// present one, candidacy.mu its bid and whether it has ended, driver.mu the machine. The driver of a MultiLock
// asks the drivers of its locks. No lock is held across I/O.
//
// Read election.go first, then driver.go, and term.go and bidder.go, which elections and locks share.
package recipe
