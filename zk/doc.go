// Package zk is a client of Apache ZooKeeper, Bellwether and every other
// server that speaks ZooKeeper's protocol. It needs the standard library alone.
//
// Call [Connect] first. It returns once a session stands:
//
//	c, err := zk.Connect(ctx, "zk1,zk2:2181,[fd00::3]:2181/app", nil)
//	if err != nil { … }
//	defer c.Close(context.Background())
//	path, stat, err := c.Create(ctx, "/jobs/n-", data, zk.Ephemeral, zk.Sequential)
//
// A [Client] is one session at a time over one connection, for any number of
// goroutines: their requests share writes, and answers are matched in order.
// Each call takes a context; ending it ends the wait, not the request.
//
// What a caller should know:
//
//   - Each error is an [OpError] around a code of the protocol ([ErrNoNode], …)
//     or another reason. A write whose answer was lost is an [UnknownOutcomeError]: it may
//     have happened. Every other error of a write means that it did not.
//   - While no server can be reached calls wait. Reads that were in flight are
//     sent again on the next connection.
//   - State changes are values in a chain: [Client.State], [Status.Next] and
//     [Client.States] see every one in order.
//   - A watch is a value too: [Watch] for one event, [Stream] for many. Both
//     survive a reconnect; both end when the session expires.
//   - After an expiry the client opens a new session by itself, unless
//     [Options.OneSession] is set. Expiry is never guessed: only a server's word
//     counts, so with all servers away the state stays Connecting. [Lease] is
//     what tells how long the session is sure to live.
//
// The package has no recipes: elections and locks are in package recipe.
//
// Goroutines of a client: one that dials, then writes (run.go), and while
// connected one that reads (link.go). On a read-only server a third looks for
// a better one. An attempt to connect has one of its own, and so has the Logger while
// records wait for it. A cancelled CreateProtected may leave one that cleans up
// behind it. Close waits for all of them, after the functions given to OnClose have
// returned, which it calls itself; but for 100 ms at most where a function of the
// Options does not return, which may be what has called Close. Client.mu guards everything that
// callers, reader and writer share; Stream.mu guards one stream's events and is
// taken after it. Neither is held across I/O or a callback. An idle session
// costs about 16 KiB (two stacks, a 4 KiB read buffer).
//
// Read client.go first, then run.go and link.go.
package zk
