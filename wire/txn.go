package wire

import (
	"encoding/binary"
	"fmt"
)

// TxnHeader opens every transaction record, in logs and in proposals.
type TxnHeader struct {
	Session SessionID // who asked; 0 for the servers' own clean-up
	Cxid    int32     // the client's xid; 0 for createSession and the servers' own
	Zxid    Zxid
	Time    int64 // ms since 1970, by the proposer
	Type    OpCode
}

// TxnHeaderLen is the encoded length of a TxnHeader in bytes.
const TxnHeaderLen = 32

// Code lists the fields.
func (h *TxnHeader) Code(c *Coder) {
	h.Session.Code(c)
	c.Int32(&h.Cxid)
	h.Zxid.Code(c)
	c.Int64(&h.Time)
	h.Type.Code(c)
}

// DigestVersion is the version of the tree digest computed here.
const DigestVersion = 2

// digestLen is the encoded length of a TxnDigest in bytes.
const digestLen = 12

// TxnDigest is the digest of the whole tree after a transaction.
type TxnDigest struct {
	Version int32
	Tree    uint64
}

// Code lists the fields.
func (d *TxnDigest) Code(c *Coder) {
	c.Int32(&d.Version)
	v := int64(d.Tree)
	c.Int64(&v)
	d.Tree = uint64(v)
}

// Txn is a transaction. Body is nil only for a closeSession of an old
// server; Digest is nil for error transactions and where digests are off.
// A Txn is not changed after it was made, so it may be shared freely.
type Txn struct {
	TxnHeader
	Body   TxnBody
	Digest *TxnDigest
}

// TxnBody is one of the *…Txn records of this package.
type TxnBody interface {
	Record
	txn()
}

// Append appends the encoded transaction.
func (t *Txn) Append(dst []byte) []byte {
	c := Encoder(dst)
	t.TxnHeader.Code(&c)
	if t.Body != nil {
		t.Body.Code(&c)
	}
	if t.Digest != nil {
		t.Digest.Code(&c)
	}
	return c.buf
}

// DecodeTxn reads one whole encoded transaction; its byte slices alias b.
// It understands the forms of older servers: create without a parent
// counter, closeSession without a body, records without a digest.
func DecodeTxn(b []byte) (*Txn, error) {
	c := Decoder(b)
	t := new(Txn)
	t.TxnHeader.Code(&c)
	if c.err != nil {
		return nil, fmt.Errorf("transaction header: %w", c.err)
	}
	rest := c.Rest()
	var err error
	switch t.Type {
	case OpCloseSession:
		err = t.decodeClose(rest)
	case OpCreate:
		if err = t.decodeRest(rest, new(CreateTxn)); err != nil {
			if t.decodeRest(rest, &CreateTxn{noParent: true}) == nil {
				err = nil
			}
		}
	default:
		body := NewTxnBody(t.Type)
		if body == nil {
			return nil, fmt.Errorf("transaction %v: unsupported type %d", t.Zxid, int32(t.Type))
		}
		err = t.decodeRest(rest, body)
	}
	if err != nil {
		return nil, fmt.Errorf("transaction %v (%v): %w", t.Zxid, t.Type, err)
	}
	return t, nil
}

// decodeRest reads body and an optional digest, which must consume b whole.
func (t *Txn) decodeRest(b []byte, body TxnBody) error {
	c := Decoder(b)
	if body != nil {
		body.Code(&c)
		if c.err != nil {
			return c.err
		}
	}
	t.Body, t.Digest = body, nil
	switch c.Left() {
	case 0:
	case digestLen:
		t.Digest = new(TxnDigest)
		t.Digest.Code(&c)
	default:
		return fmt.Errorf("%d bytes behind the body: %w", c.Left(), ErrLength)
	}
	return nil
}

// decodeClose tries the forms of a closeSession, the fullest first.
func (t *Txn) decodeClose(b []byte) error {
	err := t.decodeRest(b, new(CloseSessionTxn))
	if err != nil && (len(b) == 0 || len(b) == digestLen) {
		return t.decodeRest(b, nil)
	}
	return err
}

// NewTxnBody returns an empty body for a transaction type, nil if there is none.
func NewTxnBody(op OpCode) TxnBody {
	switch op {
	case OpCreate, OpCreate2:
		return new(CreateTxn)
	case OpCreateContainer:
		return new(CreateContainerTxn)
	case OpCreateTTL:
		return new(CreateTTLTxn)
	case OpDelete, OpDeleteContainer:
		return new(DeleteTxn)
	case OpSetData, OpReconfig:
		return new(SetDataTxn)
	case OpSetACL:
		return new(SetACLTxn)
	case OpCheck:
		return new(CheckTxn)
	case OpError:
		return new(ErrorTxn)
	case OpCreateSession:
		return new(CreateSessionTxn)
	case OpCloseSession:
		return new(CloseSessionTxn)
	case OpMulti:
		return new(MultiTxn)
	}
	return nil
}

// CreateTxn makes a persistent or ephemeral znode.
type CreateTxn struct {
	Path      string
	Data      []byte
	ACL       []ACL
	Ephemeral bool
	// ParentCversion is the parent's count of creates with this one; -1 in
	// records of servers before 3.4: one more than the parent has.
	ParentCversion int32

	noParent bool // read and written without ParentCversion
}

// Code lists the fields.
func (t *CreateTxn) Code(c *Coder) {
	c.String(&t.Path)
	c.Buffer(&t.Data)
	c.ACLs(&t.ACL)
	c.Bool(&t.Ephemeral)
	if t.noParent {
		t.ParentCversion = -1
		return
	}
	c.Int32(&t.ParentCversion)
}

// CreateContainerTxn makes a container.
type CreateContainerTxn struct {
	Path           string
	Data           []byte
	ACL            []ACL
	ParentCversion int32
}

// Code lists the fields.
func (t *CreateContainerTxn) Code(c *Coder) {
	c.String(&t.Path)
	c.Buffer(&t.Data)
	c.ACLs(&t.ACL)
	c.Int32(&t.ParentCversion)
}

// CreateTTLTxn makes a znode that goes when unused; TTL is in milliseconds.
type CreateTTLTxn struct {
	Path           string
	Data           []byte
	ACL            []ACL
	ParentCversion int32
	TTL            int64
}

// Code lists the fields.
func (t *CreateTTLTxn) Code(c *Coder) {
	c.String(&t.Path)
	c.Buffer(&t.Data)
	c.ACLs(&t.ACL)
	c.Int32(&t.ParentCversion)
	c.Int64(&t.TTL)
}

// DeleteTxn removes a znode.
type DeleteTxn struct{ Path string }

// Code lists the fields.
func (t *DeleteTxn) Code(c *Coder) { c.String(&t.Path) }

// SetDataTxn replaces data; Version is the new one.
type SetDataTxn struct {
	Path    string
	Data    []byte
	Version int32
}

// Code lists the fields.
func (t *SetDataTxn) Code(c *Coder) {
	c.String(&t.Path)
	c.Buffer(&t.Data)
	c.Int32(&t.Version)
}

// SetACLTxn replaces an ACL; Version is the new one.
type SetACLTxn struct {
	Path    string
	ACL     []ACL
	Version int32
}

// Code lists the fields.
func (t *SetACLTxn) Code(c *Coder) {
	c.String(&t.Path)
	c.ACLs(&t.ACL)
	c.Int32(&t.Version)
}

// CheckTxn is a check inside a multi; it has no effect. Version is the
// expected one plus one, or -1.
type CheckTxn struct {
	Path    string
	Version int32
}

// Code lists the fields.
func (t *CheckTxn) Code(c *Coder) {
	c.String(&t.Path)
	c.Int32(&t.Version)
}

// ErrorTxn is a rejected write; it takes a zxid and changes nothing.
type ErrorTxn struct{ Err Code }

// Code lists the fields.
func (t *ErrorTxn) Code(c *Coder) { t.Err.Code(c) }

// CreateSessionTxn opens the header's session.
type CreateSessionTxn struct{ TimeoutMS int32 }

// Code lists the fields.
func (t *CreateSessionTxn) Code(c *Coder) { c.Int32(&t.TimeoutMS) }

// CloseSessionTxn ends the header's session and deletes its ephemerals.
type CloseSessionTxn struct{ Paths []string }

// Code lists the fields.
func (t *CloseSessionTxn) Code(c *Coder) { c.Strings(&t.Paths) }

// SubTxn is one operation of a MultiTxn.
type SubTxn struct {
	Type OpCode
	Body TxnBody
}

// MultiTxn is several operations under one zxid. If any is an OpError none
// has an effect.
type MultiTxn struct{ Ops []SubTxn }

// Failed reports whether the multi was refused.
func (t *MultiTxn) Failed() bool {
	for _, op := range t.Ops {
		if op.Type == OpError {
			return true
		}
	}
	return false
}

// subTxnMin is the least a SubTxn takes: its type and the length of its body.
const subTxnMin = 8

// Code lists the operations.
func (t *MultiTxn) Code(c *Coder) { vector(c, &t.Ops, subTxnMin, codeSubTxn) }

func codeSubTxn(c *Coder, op *SubTxn) {
	op.Type.Code(c)
	if !c.decoding {
		mark := len(c.buf)
		c.length(0)
		op.Body.Code(c)
		binary.BigEndian.PutUint32(c.buf[mark:], uint32(len(c.buf)-mark-4))
		return
	}
	b := c.takeElement()
	if c.err != nil {
		return
	}
	if op.Body = NewTxnBody(op.Type); op.Body == nil || op.Type == OpMulti {
		c.fail(ErrValue)
		return
	}
	in := Decoder(b)
	op.Body.Code(&in)
	if in.err == nil && in.Left() != 0 {
		in.fail(ErrLength)
	}
	if in.err != nil {
		c.fail(in.err)
	}
}

func (*CreateTxn) txn()          {}
func (*CreateContainerTxn) txn() {}
func (*CreateTTLTxn) txn()       {}
func (*DeleteTxn) txn()          {}
func (*SetDataTxn) txn()         {}
func (*SetACLTxn) txn()          {}
func (*CheckTxn) txn()           {}
func (*ErrorTxn) txn()           {}
func (*CreateSessionTxn) txn()   {}
func (*CloseSessionTxn) txn()    {}
func (*MultiTxn) txn()           {}
