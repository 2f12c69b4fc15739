// Package peer is the network between the servers of an ensemble, in the formats of
// Apache ZooKeeper 3.8 and 3.9.
//
// A [Mesh] is the election port: one connection to each other server, kept by the larger
// id, for notifications. [Links] are the quorum port: a leader listens, a learner dials,
// and packets go in both directions. Both report an [Event] to Options.Handle, and both
// are controlled by calls that do not block. The package decides nothing about votes or
// epochs.
//
//	smaller id ▸ dial, initial message ▸ larger id: closes it, dials back
//	larger id ▸ dial, initial message ▸ both keep it ▸ notifications, one slot each way
//
//	leader ▸ Listen ▸ Opened ▸ Received …            ▸ Closed
//	learner ▸ Dial ▸ Linked ▸ Send …, SNAP: ReadSnapshot ▸ Closed
//
// Only the latest notification to a server matters: a newer one replaces one that is not
// sent yet, and the last one sent is resent on a new connection. Packets are queued in
// order up to Options.QueueMax.
//
// Goroutines. Mesh: one for each server (it dials, so that no server waits for another's
// dial), a reader and a writer for each connection. Links: one while it dials, a reader
// and a writer for each link; the reader reports all events of its link, in order. Both:
// one for each listening address, one for each accepted connection until its first
// message (handshakesMax). All of these call Handle. Close and CloseAll wait for all of
// them, so Handle must not call either.
//
// Locks. Mesh.mu guards the servers and their connections, Links.mu the links, link.mu a
// queue; none is held during I/O or Handle. The locks of handshakes and ports are taken
// alone. No two locks are held at a time, except that a notice may be logged under
// Links.mu. A connection is told to end under a lock, but its reader closes it.
//
// Limits: frames peerwire.ElectionFrameMax, packets Options.PacketMax, strangers (servers
// outside the membership, which take part without a vote) strangersMax, learners
// linksMax, connections that have sent nothing handshakesMax and Options.HandshakeTimeout.
// If another machine breaks the protocol its connection is closed. That is logged once
// and then counted (package notice).
//
// Read event.go first, then options.go, mesh.go, remote.go, accept.go; for the
// quorum port links.go, link.go, send.go.
package peer
