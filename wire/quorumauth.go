package wire

// QuorumAuthMagic is how a QuorumAuthPacket begins. An acceptor that does not
// insist on authentication looks at the first 8 bytes of a connection to see
// whether it is offered.
const QuorumAuthMagic int64 = 0x5f2435013501edcc

// QuorumAuthMax is the longest QuorumAuthPacket in bytes; its limit is ours,
// with room for Kerberos tickets of the largest kind.
const QuorumAuthMax = 64 << 10

// QuorumAuthStatus is how far the authentication between two servers is.
type QuorumAuthStatus int32

// The states.
const (
	QuorumAuthInProgress QuorumAuthStatus = 0
	QuorumAuthSuccess    QuorumAuthStatus = 1
	QuorumAuthError      QuorumAuthStatus = -1
)

// QuorumAuthPacket carries a SASL token between servers. Nothing frames it:
// read it with [ReadRecord].
type QuorumAuthPacket struct {
	Status QuorumAuthStatus
	Token  []byte
}

// Code lists the fields.
func (p *QuorumAuthPacket) Code(c *Coder) {
	magic := QuorumAuthMagic
	if c.Int64(&magic); magic != QuorumAuthMagic {
		c.failAt(8, ErrValue)
	}
	c.Int32((*int32)(&p.Status))
	if c.decoding && (p.Status < QuorumAuthError || p.Status > QuorumAuthSuccess) {
		c.failAt(4, ErrValue)
	}
	c.Buffer(&p.Token)
}
