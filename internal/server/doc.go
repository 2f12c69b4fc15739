// Package server drives a replica with real sockets, a real disk and real clocks. [New]
// takes [Options], and [Server.Run] serves until its context ends.
//
// The goroutines, and what each owns:
//
//   - The loop (loop.go) owns the replica. It takes everything that waits in the inbox
//     and works in the order that driver.Batch gives: it steps each event, passes what must
//     be logged to the log writer, sends, applies what is committed, and flushes the
//     connections that have output. It never waits, neither for the disk nor for a client,
//     except that on a standalone server it waits until a restored history is durable
//     (restore.go).
//   - The log writer (journal.go, logwriter.go, load.go) changes the history on disk: the
//     log, the epochs, truncations and installed snapshots. driver.Journal gives the order
//     and the groups.
//   - During a load, a goroutine (load.go) logs now and then how much was read. The transactions of a long log are
//     applied by a goroutine (applier.go) while the loading one reads the next ones.
//   - The snapshotter (snapshotter.go) writes snapshots and purges old files.
//   - The disk watch (disk.go) measures how long the disk leaves a call unanswered, and
//     tells the loop. A hung disk blocks the goroutine that called it, so this needs a
//     goroutine of its own. It also reports a batch of the loop that takes long (busy.go).
//   - One accepter for each listener (listen.go).
//   - One reader for each connection (conn.go) owns the connection's input. It answers
//     reads itself, under the tree's read lock, while no earlier request of the connection
//     is with the loop. It passes everything else to the loop.
//   - In an ensemble, the goroutines of package peer leave events in the inbox. A link's
//     reader fills the tree of a snapshot that a leader sends (member.go). While a learner
//     waits for an old part of the log, a goroutine reads it. Another one opens or closes the
//     quorum port. A login by Kerberos runs on the goroutine of package peer that dials, and
//     each request to the KDC on a goroutine that may outlive the server (tickets.go).
//   - The loop starts a flusher (pendingflush.go) for each connection that has output. It
//     ends when that is written.
//   - While readers wait for memory, one goroutine (claim.go) closes connections whose
//     clients do not read.
//
// Two places decide what a client may see, and in which order. replica.Next returns the
// effects of writes, and says when a read that waits behind a write gets its turn. output
// holds one queue for each connection, in which Client.Reserve keeps a read's place among the
// events; the queue is extended under the tree's lock. The loop carries out a read that came behind a
// write, between that write and whatever is applied next, so that a pipeline takes effect
// in the order in which it was sent. Only the encoding of that read is left to the
// flusher.
//
// In an ensemble (memberloop.go) the loop also passes votes and packets to package peer,
// wakes the replica when it asks for that, and publishes the server's status. A client
// that connects while there is no leader waits in its handshake. A reader answers a ping
// only within the lease that the loop publishes. When the history is rebuilt the server
// gets another tree. All connections with a session are closed before that. If a reader is
// still carrying out a read then, its reply is dropped, because the output accepts nothing more.
// Snapshots and old logs may be written and read at the same time, but not while the history is cut
// or replaced (historylock.go).
//
// Long replies (longreply.go) are not copied. The names of many children are encoded once for
// all readers, and data is written directly from the tree's memory. Goroutines that encode
// or write much take turns (turns.go), so that the loop and small requests get a
// processor.
//
// # How a connection ends
//
// Each step has one name (close.go). A connection takes the first two, then either the
// third or the fourth, then the last two:
//
//   - logEnd: the reader logs why it stops reading. It does so only after a handshake, or
//     if no handshake arrives.
//   - finish: the output accepts nothing more, and what is queued is written. The reader
//     calls finish, which blocks. The loop calls finishLater, which leaves the writing to a
//     flusher. finishUnanswered does the same in the middle of a read that gets no reply.
//   - halfClose: everything is written. The server closes its side of the socket, and the
//     reader drains the input.
//   - abort: the output is dropped and the socket is closed at once, because a write failed
//     or timed out, the client does not read, or the socket cannot be half-closed.
//   - unlist: operators no longer see the connection, and done is closed. The reader then
//     tells the loop with a Disconnected. halfClose and abort both call it.
//   - drainInput: the reader drops input until the client has closed its side, then closes
//     the socket. Then connTable.remove forgets the connection, and it no longer counts towards
//     the limits on connections.
//
// When the server stops, stopReading makes the reader begin these steps.
//
// # Limits and memory
//
// Limits: budget.go and claim.go (memory for replies and input), throttle.go (requests in
// process), ratelimits.go (requests of an address or for a path), connthrottle.go (new
// connections), attempts.go (failed logins), heavyqueue.go (large requests at the
// replica), input.go (frames), listen.go (connections), inbox.go (packets from other
// servers). An idle connection uses memory for its struct, the 512 bytes of its input, and
// the stack of a goroutine. It borrows larger buffers from pools only while data moves.
//
// A process that runs a server should let the garbage collector run more often than Go's default,
// because most of a tree is long-lived. cmd/bellwether collects at half of the default
// growth, with a ballast so that a small server does not collect all the time.
// docs/performance.md says how much memory a znode then uses.
//
// While a disk hangs, the loop, the connections and the links continue. What may wait for
// the disk is bounded. Only data is held back for it, never a control packet (inbox.go).
// The end of a server waits for a hung disk for at most endMax.
//
// # Locks
//
//   - historyLock.mu is held while files are written, only by goroutines that do nothing else.
//   - member.port is held while the quorum port is opened or closed.
//   - member.mu and tickets.mu: no lock is taken under them.
//   - output.mu of a connection may be taken under the tree's locks. Under it only
//     pendingFlush.mu, budget.mu, connTable.mu and the atomics of stats may be used.
//   - diskWatch.mu: inbox.mu may be taken under it.
//   - fanOuts.mu may be taken under the tree's locks.
//   - connTable.mu, inbox.mu, journal.mu, pendingFlush.mu, budget.mu, attempts.mu,
//     connThrottle.mu, rateLimits.mu, milestones.mu, tracer.mu and fanOuts.mu: no lock is taken under them.
//
// Only historyLock.mu and member.port are held during a write to a socket or a disk.
//
// The package decides nothing about znodes, sessions or transactions, does not know the
// texts of four-letter words (Options.Words supplies them), and reads no configuration
// file. Read server.go first, then loop.go and conn.go.
package server
