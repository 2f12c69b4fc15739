// Package server is the hands and face of one server: it drives a replica
// with real sockets, a real disk and real clocks. [New] takes [Options],
// [Server.Run] serves until its context ends.
//
// The goroutines, and what each owns:
//
//   - the loop (loop.go): the replica. It takes everything that waits in the
//     inbox and carries it out as driver.Batch says: it steps each event, hands
//     what is to be logged to the log writer, sends, applies what is committed, and
//     flushes the connections it owes something. It never waits: not for the disk,
//     not for a client.
//   - the log writer (journal.go, logwriter.go, load.go): what changes the history
//     on disk: the log, the epochs, truncations and installed snapshots, in the order
//     and the groups that driver.Journal gives.
//   - the keeper (keeper.go): writing snapshots, purging, what takes long.
//   - the disk watch (disk.go): it measures how long the disk leaves a call
//     unanswered, and tells the loop. A hung disk blocks the goroutine that
//     called it, so no other goroutine can do that.
//   - one accepter a listener (listen.go).
//   - one reader a connection (conn.go): its input. It answers reads itself,
//     under the tree's read lock, as long as nothing earlier of its connection
//     is with the loop; everything else it hands to the loop.
//   - in an ensemble those of peer, which leave events in the inbox; a link's
//     reader fills the tree of a snapshot that a leader sends (member.go). A
//     reader of old logs lives as long as a learner's question takes, who opens
//     or closes the quorum port as long as that does.
//   - flushers (dirty.go): the loop starts one for each connection it owes
//     something; it ends as soon as that is written.
//   - while readers wait for memory, one goroutine (claim.go) closes connections
//     whose clients do not read.
//
// What a client may see, and in which order, is decided in two places alone:
// replica.Next gives the effects of writes and the turns of the reads behind
// them, and output keeps one queue a connection, in which Client.Reserve
// keeps a read's place among the events (the queue is
// extended under the tree's lock). A read that came behind a write is carried
// out by the loop, between that write and whatever is applied next, so that
// a pipeline takes effect in the order it was sent; only its encoding is left
// to the flusher.
//
// In an ensemble (teamwork.go) the loop carries votes and packets to peer as
// well, wakes the replica when it asks for it, and publishes how the server
// stands. Clients that come while there is no leader wait in their handshake.
// A ping is answered by a reader only within the lease that the loop publishes.
// When the history is made anew the server gets another tree: all connections
// with a session end before, and a reader that is still at a read gives its
// reply to an output that takes none any more. Snapshots and old logs are
// written and read beside each other, never while the history is cut or
// replaced (archive.go).
//
// Long replies (long.go) are not copied: the names of many children are encoded
// once for all readers, and data is written from where the tree has it. Who
// encodes or writes much takes turns (turns.go), so that the loop and small
// requests find a processor.
//
// Limits: see budget.go and claim.go (memory for replies and input), throttle.go (what is
// in process), pace.go (large requests that the replica has), input.go (frames),
// listen.go (connections), inbox.go (what comes
// from other servers). Memory of a
// connection that is idle: its struct, the 512 bytes of its input, and a
// goroutine's stack; larger buffers are lent by pools only while data moves.
//
// A process that serves should let the collector run more often than Go's
// default, since a tree is mostly long-lived (cmd/bellwether: at half of it,
// with a ballast that leaves a small server room). What a znode then costs:
// docs/performance.md.
//
// A disk that hangs: the loop, the connections and the links go on; what may wait
// for the disk is bounded, and only data is held back for it, never a control
// packet (inbox.go). The end of a server waits for a hung disk for endMax.
//
// Locks: archive.mu, which alone is held while files are written, by the
// goroutines that do nothing else; member.port, while that is opened;
// member.mu, under which nothing is taken; output.mu of a connection, which
// may be taken under the tree's locks and takes none itself but dirty.mu,
// budget.mu, crowd.mu and stats' atomics;
// diskWatch.mu, under which inbox.mu may be taken;
// crowd.mu, inbox.mu, journal.mu, dirty.mu and budget.mu, under which nothing
// else is taken. None but the first two are held across a write to a socket or
// a disk.
//
// The package decides nothing about znodes, sessions or transactions, knows
// no text of an operator's word (those are handed in), and reads no
// configuration file. Read server.go first, then loop.go and conn.go.
package server
