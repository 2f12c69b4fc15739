// Package zk is a client of Apache ZooKeeper, Bellwether and every other
// server that speaks ZooKeeper's protocol. It needs the standard library alone.
//
// Call [Connect] first. It returns once the client has a session:
//
//	c, err := zk.Connect(ctx, "zk1,zk2:2181,[fd00::3]:2181/app", nil)
//	if err != nil { … }
//	defer c.Close(context.Background())
//	path, stat, err := c.Create(ctx, "/jobs/n-", data, zk.Ephemeral, zk.Sequential)
//
// A [Client] has one session at a time over one connection, for any number of
// goroutines: their requests share writes, and answers are matched in order.
// Each call takes a context. When the context ends, the call stops waiting; a request
// that was sent may still be carried out.
//
// What a caller should know:
//
//   - Each error is an [OpError] around a code of the protocol ([ErrNoNode], …)
//     or another reason. A write whose answer was lost gives an [UnknownOutcomeError]: it may
//     have been carried out. After every other error the write was not carried out.
//   - While no server can be reached, calls wait. Reads that were in flight are
//     sent again on the next connection.
//   - State changes are values that follow each other: [Client.State], [Status.Next] and
//     [Client.States] see every one in order.
//   - [Options.TLSFiles] encrypts connections, and [Options.SASL] logs in at each server
//     before anything is sent to it. Package zk/kerberos has the login by Kerberos.
//   - A watch is a value too: [Watch] for one event, [Stream] for many. Both
//     survive a reconnect; both end when the session expires.
//   - After its session has expired the client opens a new one by itself, unless
//     [Options.OneSession] is set. The client never assumes that a session has expired: only a
//     server can say so. While no server can be reached the state stays Connecting. [Lease]
//     says how long the session is sure to live.
//
// The package has no recipes: elections and locks are in package recipe.
//
// Goroutines of a client: one that dials, then writes (run.go), and while
// connected one that reads (link.go). On a read-only server a third one looks for
// a server with a quorum. An attempt to connect has one of its own, and so has the Logger while
// records wait for it. A cancelled CreateProtected may leave one that cleans up.
// Close first calls the functions given to OnClose, and then waits for all goroutines. It waits
// only 100 ms for a function of the Options that does not return, because that function may
// have called Close.
//
// Locks: Client.mu guards everything that callers, reader and writer share. Stream.mu guards
// one stream's events and is taken after Client.mu. Neither is held across I/O or a callback.
//
// An idle session costs about 16 KiB (two stacks, a 4 KiB read buffer).
//
// Read client.go first, then run.go and link.go.
package zk
