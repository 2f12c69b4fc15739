// Package tree is the replicated state of one server: znodes with their
// stats, ACLs and quotas, sessions and their ephemerals, and the watches of
// this server's connections.
//
// There are three kinds of calls:
//
//   - Prepare, called by the leader, turns a request into a transaction. It checks the
//     request against the committed state and everything prepared that is not applied yet
//     (the pending changes), and fills in versions, the sequence number and the tree digest.
//     A request that must fail becomes an error transaction. Discard drops what is pending.
//   - Apply carries out a committed (or replayed) transaction, in the same way on every
//     server, and without harm over a fuzzy snapshot. It queues the watch events that the
//     transaction causes, and returns what the reply will say.
//   - The reads (GetData, Exists, Children, …) answer at once. Under one read lock each
//     of them looks up the znode, sets the watch, and calls Client.Reserve, which fixes the
//     position of the reply among the connection's events. Results alias the tree's
//     immutable byte slices; nothing is encoded under the lock.
//
// Each family of operations is one file with its check, prepare, apply and result:
// create.go, delete.go, data.go, acl.go, session.go, multi.go, and so on.
//
// The package is pure: it has no clock, file, socket, goroutine or randomness. Time and
// the hash seed are arguments. The same transactions over the same snapshot give the same
// tree, digest, and order of events for each connection.
//
// Locks are always taken in this order: Tree.mu (a RWMutex over znodes, sessions,
// quotas), the mutex of one shard of the watch table, the mutex of one watcher.
// Client.Notify and Client.Reserve are called with Tree.mu held; they must not call the
// tree and must not block. One goroutine, the owner of the replica, calls Prepare and
// Apply. That goroutine may read without the lock any field that only Prepare and Apply
// change. Any goroutine may call the reads; one client's reads must come one at a time.
//
// Read tree.go and node.go first, then create.go as an example of a family.
package tree
