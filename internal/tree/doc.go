// Package tree is the replicated state of one server: znodes with their
// stats, ACLs and quotas, sessions and their ephemerals, and the watches of
// this server's connections.
//
// Three doors lead in:
//
//   - Prepare, called by the leader, turns a request into a transaction: it
//     checks the request against the committed state and everything prepared
//     before it that is not applied yet (the pending changes), and fills in
//     versions, the sequence number and the tree digest. A request that must
//     fail becomes an error transaction. Discard drops what is pending.
//   - Apply carries out a committed (or replayed) transaction, identically on
//     every server and harmlessly over a fuzzy snapshot, queues the watch
//     events it causes, and returns what its reply will say.
//   - The reads (GetData, Exists, Children, …) answer at once. Under one read
//     lock each looks, registers its watch, and calls Client.Reserve, which
//     fixes the reply's place among the connection's events. Results alias
//     the tree's immutable byte slices; nothing is encoded under the lock.
//
// Each family of operations is one file with its check, prepare, apply and
// result: create.go, delete.go, data.go, acl.go, session.go, multi.go, and so on.
//
// The package is pure: no clock, file, socket, goroutine or randomness. Time
// and the hash seed are handed in. Determinism: the same transactions over
// the same snapshot give the same tree, digest, and order of events for each
// connection.
//
// Locks, always taken in this order: Tree.mu (RWMutex over znodes, sessions,
// quotas), then the mutex of one shard of the watch table, then that of one
// watcher. Client.Notify and Client.Reserve are called with Tree.mu held;
// neither may call back into the tree nor block. Prepare and Apply are called
// by one goroutine, the owner of the replica, which reads without the lock
// what it alone changes; reads by any, those of one client one at a time.
//
// Read tree.go and node.go first, then create.go as an example of a family.
package tree
