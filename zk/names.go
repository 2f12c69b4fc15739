package zk

import "bellwether/wire"

// The types of package wire that this package's API is made of, so that a
// program needs to import only zk.
type (
	Stat       = wire.Stat         // what the tree knows of a znode beside its data
	Zxid       = wire.Zxid         // the number of a transaction
	SessionID  = wire.SessionID    // the number of a session
	Code       = wire.Code         // an error as the protocol numbers it
	OpCode     = wire.OpCode       // an operation, for Options.Trace
	ACL        = wire.ACL          // permissions of one identity
	ID         = wire.ID           // an identity: a scheme and what it means there
	EventType  = wire.EventType    // what a watch tells of
	WatchMode  = wire.AddWatchMode // of a Stream
	ClientInfo = wire.ClientInfo   // an identity, as WhoAmI tells it
)

// The types of an Event.
const (
	NodeCreated         = wire.EventNodeCreated
	NodeDeleted         = wire.EventNodeDeleted
	NodeDataChanged     = wire.EventNodeDataChanged
	NodeChildrenChanged = wire.EventNodeChildrenChanged
	// Reconnected comes in a Stream alone: events may have been missed, see Event.
	Reconnected = wire.EventNone
)

// The modes of AddWatch.
const (
	// WatchPersistent tells of the znode and of children that come or go.
	WatchPersistent = wire.WatchPersistent
	// WatchPersistentRecursive tells of every znode of the subtree.
	WatchPersistentRecursive = wire.WatchPersistentRecursive
)

// The permissions of an ACL, which are added up.
const (
	PermRead   = wire.PermRead
	PermWrite  = wire.PermWrite
	PermCreate = wire.PermCreate // of children
	PermDelete = wire.PermDelete // of children
	PermAdmin  = wire.PermAdmin  // to change the ACL
	PermAll    = wire.PermAll
)

// ErrNoWatcher is what Watch.Wait returns after Watch.Remove.
const ErrNoWatcher = wire.ErrNoWatcher

// OpenACL allows everything to everybody, which is what Create does by default.
func OpenACL() ACLs { return wire.OpenACL() }

// ReadACL allows everybody to read, and nobody to write.
func ReadACL() ACLs { return wire.ReadACL() }

// CreatorACL allows everything to the identities that the client has shown to the
// server (Options.Auth, AddAuth), and nothing to others.
func CreatorACL() ACLs { return wire.CreatorACL() }
