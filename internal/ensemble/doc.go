// Package ensemble knows who belongs to an ensemble and when a set of its
// servers is a quorum.
//
// A [Membership] is an immutable value: each [Server] with its addresses and
// role, the groups and weights, and the version of the configuration. It is
// made by [New], by [Parse] (the text that servers exchange and that stands in
// /zookeeper/config) or by [FromProperties] (the lines of a file), and it
// prints itself in the canonical form, which other servers compare.
//
// [Membership.HasQuorum] is the one quorum test of the code base: a majority of
// the voters, or, where groups are given, more than half of the weight in more
// than half of the groups.
//
// The package also holds the reader of Java properties text, because the
// configuration text between servers follows its rules as zoo.cfg does.
//
// It opens nothing, resolves no name, starts no goroutine and takes no lock;
// its values are safe for concurrent reading. Read server.go first, then membership.go and quorum.go.
package ensemble
