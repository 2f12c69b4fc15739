package wire

// QuorumVersion is the version of the protocol between leader and learner.
const QuorumVersion int32 = 0x10000

// NoEpoch in an EpochAck: the learner had accepted the epoch before, so this
// is no vote for it.
const NoEpoch int32 = -1

// LearnerInfo is the data of PacketFollowerInfo and PacketObserverInfo.
type LearnerInfo struct {
	Server        ServerID
	Version       int32 // QuorumVersion
	ConfigVersion int64 // of the committed configuration, 0: the initial one
}

// Code lists the fields. Learners before 3.5 leave out the last one, and
// older ones Version too: these are then 0. Bytes behind the record are ignored.
func (i *LearnerInfo) Code(c *Coder) {
	i.Server.Code(c)
	if c.missing(4) {
		i.Version, i.ConfigVersion = 0, 0
		return
	}
	c.Int32(&i.Version)
	if c.missing(8) {
		i.ConfigVersion = 0
		return
	}
	c.Int64(&i.ConfigVersion)
}

// missing reports whether a decoder has fewer than n bytes left, where older
// peers end their record. What an encoder writes is complete.
func (c *Coder) missing(n int) bool {
	if !c.decoding || c.err != nil || c.endless() || c.Left() >= n {
		return false
	}
	c.lossy = true
	return true
}

// LeaderInfo is the data of PacketLeaderInfo; the new epoch is in its zxid.
type LeaderInfo struct{ Version int32 }

// Code lists the fields.
func (i *LeaderInfo) Code(c *Coder) { c.Int32(&i.Version) }

// EpochAck is the data of PacketAckEpoch: the learner's current epoch, or NoEpoch.
type EpochAck struct{ CurrentEpoch int32 }

// Code lists the fields.
func (a *EpochAck) Code(c *Coder) { c.Int32(&a.CurrentEpoch) }

// ForwardedRequest is the data of PacketRequest: a client's write, sync, or
// opening or closing of a session, as the learner got it.
type ForwardedRequest struct {
	Session SessionID
	Cxid    int32
	Op      OpCode
	Body    []byte // the encoded record, up to the end of the data
}

// Code lists the fields.
func (r *ForwardedRequest) Code(c *Coder) {
	r.Session.Code(c)
	c.Int32(&r.Cxid)
	r.Op.Code(c)
	c.tail(&r.Body)
}

// Revalidation is the data of a learner's PacketRevalidate: may this session
// be resumed here?
type Revalidation struct {
	Session   SessionID
	TimeoutMS int32
}

// Code lists the fields.
func (r *Revalidation) Code(c *Coder) {
	r.Session.Code(c)
	c.Int32(&r.TimeoutMS)
}

// Revalidated is the data of the leader's PacketRevalidate.
type Revalidated struct {
	Session SessionID
	Valid   bool
}

// Code lists the fields.
func (r *Revalidated) Code(c *Coder) {
	r.Session.Code(c)
	c.Bool(&r.Valid)
}

// TouchedSession is a session heard of since the last ping.
type TouchedSession struct {
	Session   SessionID
	TimeoutMS int32
}

// touchedSessionLen is the encoded length of a TouchedSession in bytes.
const touchedSessionLen = 12

// Code lists the fields.
func (s *TouchedSession) Code(c *Coder) {
	s.Session.Code(c)
	c.Int32(&s.TimeoutMS)
}

// TouchedSessions is the data of a learner's PacketPing: as many entries as
// the data holds.
type TouchedSessions struct{ Sessions []TouchedSession }

// Code lists the sessions.
func (t *TouchedSessions) Code(c *Coder) {
	if c.decoding {
		t.Sessions = nil
		if c.endless() {
			return
		}
		if n := c.Left() / touchedSessionLen; n > 0 {
			t.Sessions = make([]TouchedSession, n)
		}
	}
	for i := range t.Sessions {
		t.Sessions[i].Code(c)
	}
	if c.decoding && c.Left() > 0 {
		c.fail(ErrShort)
	}
}

// Activation is the data of PacketCommitActivate and PacketInformActivate:
// who is to lead under the new configuration and, in the latter, the encoded
// transaction, up to the end of the data.
type Activation struct {
	Leader ServerID
	Txn    []byte
}

// Code lists the fields.
func (a *Activation) Code(c *Coder) {
	a.Leader.Code(c)
	c.tail(&a.Txn)
}
