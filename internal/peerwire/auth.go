package peerwire

import (
	"bellwether/wire"
)

// QuorumAuthMagic is how a QuorumAuthPacket begins. An acceptor that does not
// insist on authentication looks at the first 8 bytes of a connection to see
// whether the peer offers authentication.
const QuorumAuthMagic int64 = 0x5f2435013501edcc

// QuorumAuthMax is the longest QuorumAuthPacket in bytes. The limit is this project's,
// with room for the largest Kerberos tickets.
const QuorumAuthMax = 64 << 10

// QuorumAuthStatus says how far the authentication between two servers is.
type QuorumAuthStatus int32

// The states.
const (
	QuorumAuthInProgress QuorumAuthStatus = 0
	QuorumAuthSuccess    QuorumAuthStatus = 1
	QuorumAuthError      QuorumAuthStatus = -1
)

// QuorumAuthPacket carries a SASL token between servers. It has no frame: read it with
// [wire.ReadRecord].
type QuorumAuthPacket struct {
	Status QuorumAuthStatus
	Token  []byte
}

// Code encodes or decodes the fields.
func (p *QuorumAuthPacket) Code(c *wire.Coder) {
	magic := QuorumAuthMagic
	if c.Int64(&magic); magic != QuorumAuthMagic {
		c.Fail(8, wire.ErrValue)
	}
	c.Int32((*int32)(&p.Status))
	if c.Decoding() && (p.Status < QuorumAuthError || p.Status > QuorumAuthSuccess) {
		c.Fail(4, wire.ErrValue)
	}
	c.Buffer(&p.Token)
}
