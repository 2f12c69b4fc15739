package peer

import (
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

// Opened says that a learner has connected from Address, and sent something.
type Opened struct {
	Link    peerwire.LinkID
	Address string
}

// Linked says that the leader that Dial named has accepted a link, at Address.
type Linked struct {
	Leader  ensemble.ServerID
	Link    peerwire.LinkID
	Address string
}

// Received are packets of a link in order, at least one. They belong to the receiver. A
// SNAP comes after the snapshot behind it has been read.
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
