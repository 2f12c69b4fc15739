package tree

import "bellwether/wire"

// Options set the behaviour of a tree; the zero value is ZooKeeper's default.
type Options struct {
	ExtendedTypes  bool   // TTL znodes may be created
	Emulate353TTL  bool   // owners in the form of 3.5.3 are read as TTLs too
	EnforceQuota   bool   // hard limits refuse writes
	SkipACL        bool   // nothing is checked against access-control lists
	DigestOff      bool   // no digest is computed, stored or compared
	Reconfig       bool   // reconfig is enabled in the configuration; a standalone server then answers ErrUnimplemented
	SchemeSASL     bool   // requests may put ids of scheme sasl into ACLs, and such ids give access
	SchemeX509     bool   // requests may put ids of scheme x509 into ACLs, because clients can connect over TLS
	LetAnySASLUser string // the sasl id that every sasl identity satisfies; empty: none
	X509Super      string // the subject that satisfies every x509 id; empty: none
	// ContainerMaxNeverUsedMS is after how long a container that has never had a child is
	// removed; 0: never.
	ContainerMaxNeverUsedMS int64
	// Seed is the seed of the hashes of names and paths. In a server it is random, so
	// that clients cannot choose names that collide. The order of children and of a
	// snapshot's znodes depends on it.
	Seed uint64
	// Fired, if set, is called under the tree's lock for each event that at least one
	// connection watched for. watchers is the number of these connections.
	// It must copy the path of the event if it keeps it.
	Fired func(e Event, watchers int)
	// SessionDeleted, if set, is called for each ephemeral znode that is deleted because its
	// session ended. It is called under the tree's lock.
	SessionDeleted func(session wire.SessionID, path string)
}
