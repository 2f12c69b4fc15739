package zk

import "bellwether/wire"

// The types of package wire that appear in this package's API, so that a program
// needs to import only zk.
type (
	// Stat holds what the ensemble keeps about a znode besides its data: the
	// transactions that created and changed it, times, versions and counts.
	Stat = wire.Stat
	// Zxid is the number of a transaction. It prints in hex.
	Zxid = wire.Zxid
	// SessionID is the number of a session. It prints in hex.
	SessionID = wire.SessionID
	// Code is an error code of the protocol. It is an error: compare it with errors.Is.
	Code = wire.Code
	// OpCode is the number of an operation, for Hooks. It prints as a name.
	OpCode = wire.OpCode
	// ACL is one entry of an access-control list: an identity and its permissions.
	ACL = wire.ACL
	// ID is an identity: a scheme, such as "digest", and a name within it.
	ID = wire.ID
	// EventType says what a watch reports.
	EventType = wire.EventType
	// WatchMode is the mode of a watch that AddWatch sets.
	WatchMode = wire.AddWatchMode
	// ClientInfo is an identity of the connection, as WhoAmI returns it.
	ClientInfo = wire.ClientInfo
)

// The types of an Event.
const (
	// NodeCreated: the znode was created.
	NodeCreated = wire.EventNodeCreated
	// NodeDeleted: the znode was deleted.
	NodeDeleted = wire.EventNodeDeleted
	// NodeDataChanged: the data of the znode was set.
	NodeDataChanged = wire.EventNodeDataChanged
	// NodeChildrenChanged: a child of the znode was created or deleted.
	NodeChildrenChanged = wire.EventNodeChildrenChanged
	// Reconnected: the connection was lost and is back. Only a Stream delivers it;
	// events may have been missed, see Event.
	Reconnected = wire.EventNone
)

// The modes of AddWatch.
const (
	// WatchPersistent reports the events of the znode, and children that are
	// created or deleted.
	WatchPersistent = wire.WatchPersistent
	// WatchPersistentRecursive reports the events of every znode of the subtree.
	WatchPersistentRecursive = wire.WatchPersistentRecursive
)

// The permissions of an ACL. Combine them with a bitwise or.
const (
	// PermRead allows reading the data and listing the children.
	PermRead = wire.PermRead
	// PermWrite allows setting the data.
	PermWrite = wire.PermWrite
	// PermCreate allows creating children.
	PermCreate = wire.PermCreate
	// PermDelete allows deleting children.
	PermDelete = wire.PermDelete
	// PermAdmin allows changing the ACL.
	PermAdmin = wire.PermAdmin
	// PermAll is all permissions.
	PermAll = wire.PermAll
)

// ErrNoWatcher is the error of Watch.Wait after Watch.Remove.
const ErrNoWatcher = wire.ErrNoWatcher

// OpenACL allows everything to everybody. Create does so by default.
func OpenACL() ACLs { return wire.OpenACL() }

// ReadACL allows everybody to read, and nobody to write.
func ReadACL() ACLs { return wire.ReadACL() }

// CreatorACL allows everything to the identities that the client has shown to the
// server (Options.Auth, AddAuth), and nothing to others.
func CreatorACL() ACLs { return wire.CreatorACL() }
