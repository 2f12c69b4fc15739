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
	Address string // where its connection goes
	// First: the first message on its connection, which a server may have sent
	// before and sends again.
	First        bool
	Notification peerwire.Notification
}

// Up: an election connection to a server exists, perhaps instead of an older one.
type Up struct{ Server ensemble.ServerID }

// Down: a dial was refused, or a server closed its connection and cannot be
// reached any more, or resets what is dialled then. It comes again with each dial
// that ends so. Time-outs and connections that are replaced do not bring it.
type Down struct{ Server ensemble.ServerID }

// RoundTrip is the newest measured time to a server and back.
type RoundTrip struct {
	Server ensemble.ServerID
	Took   time.Duration
}

// Opened: a learner has connected and sent something. Address is where from.
type Opened struct {
	Link    peerwire.LinkID
	Address string
}

// Linked: the leader that Dial named has accepted a link, at Address.
type Linked struct {
	Leader  ensemble.ServerID
	Link    peerwire.LinkID
	Address string
}

// Received are packets of a link in order, at least one. They belong to the
// receiver. A SNAP comes when the snapshot behind it has been read.
type Received struct {
	Link    peerwire.LinkID
	Packets []*peerwire.QuorumPacket
}

// Progress: a part of a snapshot has arrived.
type Progress struct{ Link peerwire.LinkID }

// Closed is the last event of a link, whoever ended it.
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
