package wire

// ConnectRequest opens or resumes a session. It is the first frame of a connection and
// has no header. Its last field may be missing, so it must be decoded from its whole
// frame.
type ConnectRequest struct {
	ProtocolVersion int32
	LastZxidSeen    Zxid
	TimeoutMS       int32
	Session         SessionID // 0: a new one
	Password        []byte
	ReadOnly        bool
	// HasReadOnly: the client sent the flag byte, so the answer has one too.
	// Clients up to 3.3 and some libraries leave it out.
	HasReadOnly bool
}

// Code encodes or decodes the fields.
func (r *ConnectRequest) Code(c *Coder) {
	c.Int32(&r.ProtocolVersion)
	r.LastZxidSeen.Code(c)
	c.Int32(&r.TimeoutMS)
	r.Session.Code(c)
	c.Buffer(&r.Password)
	codeOptionalBool(c, &r.ReadOnly, &r.HasReadOnly)
}

// ConnectResponse answers a ConnectRequest. TimeoutMS <= 0 refuses the session.
type ConnectResponse struct {
	ProtocolVersion int32
	TimeoutMS       int32
	Session         SessionID
	Password        []byte
	ReadOnly        bool
	HasReadOnly     bool // whether ReadOnly was sent, as in ConnectRequest
}

// Code encodes or decodes the fields.
func (r *ConnectResponse) Code(c *Coder) {
	c.Int32(&r.ProtocolVersion)
	c.Int32(&r.TimeoutMS)
	r.Session.Code(c)
	c.Buffer(&r.Password)
	codeOptionalBool(c, &r.ReadOnly, &r.HasReadOnly)
}

// codeOptionalBool encodes or decodes a trailing flag that older peers leave out.
func codeOptionalBool(c *Coder, v, has *bool) {
	if c.decoding {
		*has = c.err == nil && c.Left() > 0
		*v = false
	}
	if *has {
		c.Bool(v)
	}
}

// Special xids.
const (
	XidEvent      int32 = -1 // a watch event
	XidPing       int32 = -2
	XidAuth       int32 = -4
	XidSetWatches int32 = -8
)

// RequestHeader precedes every request but the first.
type RequestHeader struct {
	Xid int32
	Op  OpCode
}

// Code encodes or decodes the fields.
func (h *RequestHeader) Code(c *Coder) {
	c.Int32(&h.Xid)
	h.Op.Code(c)
}

// ReplyHeader precedes every reply but the first, and every event. The reply of a failed
// operation has only the header.
type ReplyHeader struct {
	Xid  int32
	Zxid Zxid
	Err  Code
}

// ReplyHeaderLen is the encoded length of a ReplyHeader in bytes.
const ReplyHeaderLen = 16

// Code encodes or decodes the fields.
func (h *ReplyHeader) Code(c *Coder) {
	c.Int32(&h.Xid)
	h.Zxid.Code(c)
	h.Err.Code(c)
}
