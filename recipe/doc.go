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
// The steps themselves are state machines in internal/claim; this package
// drives them over a zk.Client: it reads clocks, carries out requests and waits.
//
// Goroutines: a campaign runs one until its bid is gone, plus one for the
// request under way, and Lead one more that looks at its deadline. Resign
// waits for the first, which waits for the second; closing the client ends
// them. Election.mu guards which candidacy is the present one, candidacy.mu its
// bid and whether it has ended, term.mu the state machine and the handle. They are taken
// in this order, and none is held across I/O.
//
// A transaction runs its machine on one goroutine, with one for the request under
// way, one for each watch and one for the call of the application, which all end
// before Commit or Join returns, unless a cancelled one has something to take away
// and no connection: the application's does then too. Site.Serve has one for each
// transaction. A queue's wait has one for each of its watches, two at most.
// Enter and Leave of a DoubleBarrier take turns: it is one member.
//
// An Item, and a DoubleBarrier between Enter and Leave, have one that follows the session. A
// Logger or an Observer is called by one goroutine for each recipe, which ends when nothing waits.
//
// What a cancelled wait of a queue, a DoubleBarrier or a Registration has left is
// removed by one goroutine, which ends when that is done or with the session.
//
// A Registration runs one goroutine until Close, with one for the request under way and
// one for its watch; so does a Cache, which carries out its requests itself, with some
// more for reads that are not one request. Both have one mutex, not held across I/O. Run of a
// Partitioner or of Work steps its machine on the caller's goroutine, with one for each cache that
// it follows, and for each part one that leads; all end before it returns.
//
// Read election.go first, then term.go and bidder.go, which locks share.
package recipe
