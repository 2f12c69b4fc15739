// Package ensemble describes which servers belong to an ensemble, and when a set of them
// is a quorum.
//
// A [Membership] is an immutable value: each [Server] with its addresses and role, the
// groups and weights, and the version of the configuration. [New] makes one, or [Parse]
// (from the text that servers exchange and that is in /zookeeper/config), or
// [FromProperties] (from the lines of a file). It prints itself in the canonical form,
// which other servers compare.
//
// [Membership.HasQuorum] is the only quorum test of this project: a majority of the
// voters or, if groups are given, more than half of the weight in more than half of the
// groups.
//
// [Membership.Apply] makes the membership after a reconfiguration, or says which rule it
// breaks. The texts of dynamic configuration files, and of the static file that names one,
// are in change.go too.
//
// The package also parses Java properties text, because the configuration text between
// servers follows its rules, as zoo.cfg does.
//
// It opens nothing, resolves no name, starts no goroutine and takes no lock. Its values
// are safe for concurrent reading. Read server.go first, then membership.go and
// quorum.go.
package ensemble
