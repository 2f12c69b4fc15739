package peerwire

import (
	"bellwether/internal/ensemble"
	"bellwether/wire"
)

// QuorumVersion is the version of the protocol between leader and learner.
const QuorumVersion int32 = 0x10000

// NoEpoch in an EpochAck says that the learner had accepted the epoch before, so that
// this is not a promise.
const NoEpoch int32 = -1

// LearnerInfo is the data of PacketFollowerInfo and PacketObserverInfo.
type LearnerInfo struct {
	Server        ensemble.ServerID
	Version       int32 // QuorumVersion
	ConfigVersion int64 // version of the committed configuration, 0: the initial one
}

// Code encodes or decodes the fields. Learners before 3.5 leave out ConfigVersion, and
// older ones leave out Version too; a missing field is decoded as 0. Bytes behind the
// record are ignored.
func (i *LearnerInfo) Code(c *wire.Coder) {
	c.Int64((*int64)(&i.Server))
	if missing(c, 4) {
		i.Version, i.ConfigVersion = 0, 0
		return
	}
	c.Int32(&i.Version)
	if missing(c, 8) {
		i.ConfigVersion = 0
		return
	}
	c.Int64(&i.ConfigVersion)
}

// missing reports whether a decoder has fewer than n bytes left, because an older peer
// ended its record here. What an encoder writes is complete.
func missing(c *wire.Coder, n int) bool {
	if !c.Decoding() || c.Err() != nil || !c.Bounded() || c.Left() >= n {
		return false
	}
	c.NotCanonical(true)
	return true
}

// LeaderInfo is the data of PacketLeaderInfo; the new epoch is in its zxid.
type LeaderInfo struct{ Version int32 }

// Code encodes or decodes the fields.
func (i *LeaderInfo) Code(c *wire.Coder) { c.Int32(&i.Version) }

// EpochAck is the data of PacketAckEpoch: the learner's current epoch, or NoEpoch.
type EpochAck struct{ CurrentEpoch int32 }

// Code encodes or decodes the fields.
func (a *EpochAck) Code(c *wire.Coder) { c.Int32(&a.CurrentEpoch) }

// ForwardedRequest is the data of PacketRequest: a client's write or sync, or the
// opening or closing of a session, as the learner received it.
type ForwardedRequest struct {
	Session wire.SessionID
	Cxid    int32
	Op      wire.OpCode
	Body    []byte // the encoded record, up to the end of the data
}

// Code encodes or decodes the fields.
func (r *ForwardedRequest) Code(c *wire.Coder) {
	r.Session.Code(c)
	c.Int32(&r.Cxid)
	r.Op.Code(c)
	c.Tail(&r.Body)
}

// Revalidation is the data of a learner's PacketRevalidate: may this session
// be resumed here?
type Revalidation struct {
	Session   wire.SessionID
	TimeoutMS int32
}

// Code encodes or decodes the fields.
func (r *Revalidation) Code(c *wire.Coder) {
	r.Session.Code(c)
	c.Int32(&r.TimeoutMS)
}

// Revalidated is the data of the leader's PacketRevalidate.
type Revalidated struct {
	Session wire.SessionID
	Valid   bool
}

// Code encodes or decodes the fields.
func (r *Revalidated) Code(c *wire.Coder) {
	r.Session.Code(c)
	c.Bool(&r.Valid)
}

// TouchedSession is a session from which a server has heard since the last ping.
type TouchedSession struct {
	Session   wire.SessionID
	TimeoutMS int32
}

// touchedSessionLen is the encoded length of a TouchedSession in bytes.
const touchedSessionLen = 12

// Code encodes or decodes the fields.
func (s *TouchedSession) Code(c *wire.Coder) {
	s.Session.Code(c)
	c.Int32(&s.TimeoutMS)
}

// TouchedSessions is the data of a learner's PacketPing. It has as many entries as the
// data holds.
type TouchedSessions struct{ Sessions []TouchedSession }

// Code encodes or decodes the sessions.
func (t *TouchedSessions) Code(c *wire.Coder) {
	if c.Decoding() {
		t.Sessions = nil
		if !c.Bounded() {
			return
		}
		if n := c.Left() / touchedSessionLen; n > 0 {
			t.Sessions = make([]TouchedSession, n)
		}
	}
	for i := range t.Sessions {
		t.Sessions[i].Code(c)
	}
	if c.Decoding() && c.Left() > 0 {
		c.Fail(0, wire.ErrShort)
	}
}

// Activation is the data of PacketCommitActivate and PacketInformActivate: the leader
// under the new configuration and, in a PacketInformActivate, the encoded transaction, up
// to the end of the data.
type Activation struct {
	Leader ensemble.ServerID
	Txn    []byte
}

// Code encodes or decodes the fields.
func (a *Activation) Code(c *wire.Coder) {
	c.Int64((*int64)(&a.Leader))
	c.Tail(&a.Txn)
}
