package tree

import "bellwether/wire"

// Client is one client connection of this server as the tree sees it: who it
// is, and the output on which its events and replies take their places. Its
// dynamic type must be a pointer: the watch table compares Clients by identity.
type Client interface {
	// Session is the id of the session the connection is attached to.
	Session() wire.SessionID
	// Identities are those the connection has proved so far. The slice is
	// never changed in place.
	Identities() []wire.ID
	// Notify queues an event. The tree's lock is held, for writing or, within
	// this client's own setWatches, for reading: it must not block and must
	// not call the tree.
	Notify(e Event)
	// Overflow says that the connection has asked for more watches than
	// WatchBytesMax: the last one is not set, and the connection is to be
	// closed, as its client must not believe otherwise. The read lock is held.
	Overflow()
	// Reserve fixes the place of the reply being built among the events of
	// this connection; z is the last applied transaction, for its header.
	// The read lock is held. Each read calls it exactly once.
	Reserve(z wire.Zxid)
}

// Event is what a watch delivers. Zxid is that of the transaction that
// caused it, -1 where setWatches found it to be due.
type Event struct {
	Type wire.EventType
	Path string
	Zxid wire.Zxid
}

// Request is a write of a client, or of the server itself (Session 0), as
// the leader sees it.
type Request struct {
	Session    wire.SessionID
	Cxid       int32
	Op         wire.OpCode
	Body       []byte // the encoded record; the transaction keeps parts of it: it must not change
	Identities []wire.ID
	// Local: if the session is not open it lives on one server alone, and may
	// do all but own ephemerals.
	Local bool
	// Plain is set by Prepare: which operations of a multi are creates that are
	// answered without a stat; nil: none. AsAsked takes it.
	Plain []bool
}

// Result is what a transaction's reply says.
type Result struct {
	Zxid wire.Zxid
	// Err is the code of the reply's header. A failed multi has OK here and
	// its codes in Multi.
	Err wire.Code
	// Response is the record behind the header, nil where there is none.
	Response wire.Record
}
