package peerwire

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"bellwether/internal/ensemble"
	"bellwether/wire"
)

// ElectionFrameMax is the longest frame of an election connection in bytes.
const ElectionFrameMax = 512 << 10

// ReadElectionFrame is [wire.ReadFrame] for an election connection, where an empty
// frame is an error too.
func ReadElectionFrame(r io.Reader, buf []byte) ([]byte, error) {
	b, err := wire.ReadFrame(r, buf, ElectionFrameMax)
	if err == nil && len(b) == 0 {
		err = &wire.FrameError{Max: ElectionFrameMax}
	}
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("election connection: %w", err)
	}
	return b, err
}

// ServerState is the state of a server in its ensemble.
type ServerState int32

// The states.
const (
	Looking   ServerState = 0
	Following ServerState = 1
	Leading   ServerState = 2
	Observing ServerState = 3
)

func (s ServerState) String() string {
	switch s {
	case Looking:
		return "LOOKING"
	case Following:
		return "FOLLOWING"
	case Leading:
		return "LEADING"
	case Observing:
		return "OBSERVING"
	}
	return "state " + strconv.Itoa(int(s))
}

// NoServer is the leader in the vote of an observer, which votes for nobody; the vote's
// zxid and peer epoch are the same number.
const NoServer ensemble.ServerID = math.MinInt64

// NotificationVersion is the version of the form that a Notification has.
type NotificationVersion int32

// The forms. A receiver treats both forms without a configuration as version 0, and
// versions above 2 as NotificationConfig.
const (
	NotificationBare   NotificationVersion = 0 // before 3.4: no peer epoch either
	NotificationPlain  NotificationVersion = 1 // no configuration
	NotificationConfig NotificationVersion = 2 // the present form
)

// Lengths of the forms without a configuration in bytes.
const (
	notificationBareLen  = 28
	notificationPlainLen = 40
)

// Notification is the message of an election: the sender's state and vote. It fills one
// frame.
type Notification struct {
	State         ServerState
	Leader        ensemble.ServerID // who is voted for, or followed
	Zxid          wire.Zxid         // the last zxid in the log of Leader, as far as the sender knows
	ElectionEpoch wire.Epoch        // the sender's round
	PeerEpoch     wire.Epoch        // the current epoch of Leader
	Version       NotificationVersion
	// Config is the sender's committed configuration. It must name a participant: after a
	// configuration without participants a ZooKeeper server may ignore all further
	// notifications. A server that has no configuration sends a NotificationPlain.
	Config string
}

// Code encodes or decodes the fields. A decoder finds out the form by the length of its input: an
// input as long as a Plain or Bare notification has that form, whatever version it names.
func (n *Notification) Code(c *wire.Coder) {
	if !c.Bounded() {
		return
	}
	size := c.Left()
	c.Int32((*int32)(&n.State))
	if c.Decoding() && c.Err() == nil && (n.State < Looking || n.State > Observing) {
		c.Fail(4, wire.ErrValue)
	}
	c.Int64((*int64)(&n.Leader))
	n.Zxid.Code(c)
	n.ElectionEpoch.Code(c)
	if c.Decoding() {
		n.decodeForm(c, size)
		return
	}
	if n.Version == NotificationBare {
		return
	}
	n.PeerEpoch.Code(c)
	c.Int32((*int32)(&n.Version))
	if n.Version >= NotificationConfig {
		c.String(&n.Config)
	}
}

// decodeForm decodes the fields that not all versions of a notification have.
func (n *Notification) decodeForm(c *wire.Coder, size int) {
	n.Config = ""
	if size == notificationBareLen {
		n.Version = NotificationBare
		n.PeerEpoch = wire.Epoch(n.Zxid >> 32)
		return
	}
	n.PeerEpoch.Code(c)
	c.Int32((*int32)(&n.Version))
	if size > notificationPlainLen && n.Version >= NotificationConfig {
		c.String(&n.Config)
		return
	}
	c.NotCanonical(n.Version != NotificationPlain)
	n.Version = NotificationPlain
}
