package tree

import "bellwether/wire"

// Client is one client connection of this server as the tree sees it: its identities, and
// the output in which its events and replies are ordered. Its dynamic type must be a
// pointer, because the watch table compares Clients by identity.
type Client interface {
	// Session returns the id of the session to which the connection is attached.
	Session() wire.SessionID
	// Identities returns the identities that the connection has proved so far. The
	// returned slice is never changed in place.
	Identities() []wire.ID
	// Notify queues an event. The tree's lock is held: for writing, or within this
	// client's own setWatches for reading. So Notify must not block and must not call the
	// tree.
	Notify(e Event)
	// Overflow says that the connection has asked for more watches than WatchBytesMax allows.
	// The last one is not set, and the connection must be closed, because its client
	// would rely on that watch. The read lock is held.
	Overflow()
	// Reserve fixes the position of the reply that is being built among the events of
	// this connection. z is the last applied transaction, for the reply's header. The
	// read lock is held. Each read calls Reserve exactly once.
	Reserve(z wire.Zxid)
}

// Event holds what a watch delivers. Zxid is that of the transaction that caused the event;
// it is -1 if setWatches found that the event had happened before.
type Event struct {
	Type wire.EventType
	Path string
	Zxid wire.Zxid
}

// Request is a write of a client, or of the server itself (Session 0), as the leader gets
// it.
type Request struct {
	Session    wire.SessionID
	Cxid       int32
	Op         wire.OpCode
	Body       []byte // the encoded record; it must not change, because the transaction keeps parts of it
	Identities []wire.ID
	// Multi is the decoded Body of a multi that the caller has decoded already; nil: Prepare
	// decodes it.
	Multi *wire.MultiRequest
	// Local says that a session which is not open in the tree is a local session, which
	// exists on this server only. It may do everything but own ephemerals.
	Local bool
	// Reconfigure makes the text of the membership that a reconfig asks for, at the zxid z.
	// permitted says that the request may write the configuration znode. If the text is empty
	// and the code is OK, nothing is proposed now. nil: the server is standalone.
	Reconfigure func(r *wire.ReconfigRequest, permitted bool, z wire.Zxid) (text string, code wire.Code)
	// WithoutStat is set by Prepare. It says which operations of a multi are creates
	// whose results have no stat; nil: there are none. RestoreCreateTypes needs it.
	WithoutStat []bool
}

// Result holds what the reply to a transaction says.
type Result struct {
	Zxid wire.Zxid
	// Err is the code of the reply's header. For a failed multi it is OK, and the codes
	// are in Multi.
	Err wire.Code
	// Response is the record after the header, nil if there is none.
	Response wire.Record
}
