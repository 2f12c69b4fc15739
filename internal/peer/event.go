package peer

import (
	"net"

	"time"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
)

// Event is what happens between servers: one of the types below.
type Event interface{ event() }

// Heard is a notification from another server.
type Heard struct {
	From    ensemble.ServerID
	Address string // the other end of its connection
	// First: this is the first message on its connection. The server may have sent it
	// before, and resends it.
	First        bool
	Notification peerwire.Notification
}

// Up says that an election connection to a server exists, perhaps a new one instead of an
// older one.
type Up struct{ Server ensemble.ServerID }

// Down says that a dial was refused, or that a server has closed its connection and
// cannot be reached any more, or resets new connections. It is reported for each dial
// that ends so, but not for timeouts and connections that are replaced.
type Down struct{ Server ensemble.ServerID }

// RoundTrip is the newest measured round-trip time to a server.
type RoundTrip struct {
	Server ensemble.ServerID
	Took   time.Duration
}

// Opened says that a learner has connected from Address and has sent its first bytes.
type Opened struct {
	Link    peerwire.LinkID
	Address string
	Conn    net.Conn // what Options.Secure made of the connection; the receiver must not read or write
}

// Linked says that the server that Dial or DialMaster named has accepted a link, at Address.
type Linked struct {
	Server  ensemble.ServerID
	Link    peerwire.LinkID
	Address string
}

// Received carries one or more packets of a link, in order. They belong to the receiver. A
// SNAP packet is reported after the snapshot that follows it has been read.
type Received struct {
	Link    peerwire.LinkID
	Packets []*peerwire.QuorumPacket
}

// Progress says that a part of a snapshot has arrived.
type Progress struct{ Link peerwire.LinkID }

// Closed is the last event of a link, whichever side ended it.
type Closed struct {
	Link peerwire.LinkID
	Why  string
}

func (Heard) event()     {}
func (Up) event()        {}
func (Down) event()      {}
func (RoundTrip) event() {}
func (Opened) event()    {}
func (Linked) event()    {}
func (Received) event()  {}
func (Progress) event()  {}
func (Closed) event()    {}
