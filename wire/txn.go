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
	t.Code(&c)
	return c.buf
}

// DecodeTxn reads one whole encoded transaction; its byte slices alias b.
// It understands the forms of older servers: create without a parent
// counter, closeSession without a body, records without a digest. Anything
// behind the transaction is an error.
func DecodeTxn(b []byte) (*Txn, error) {
	c := Decoder(b)
	t := new(Txn)
	t.Code(&c)
	switch {
	case c.err == nil:
		return t, nil
	case len(b) < TxnHeaderLen:
		return nil, fmt.Errorf("transaction header: %w", c.err)
	default:
		return nil, fmt.Errorf("transaction %v (%v): %w", t.Zxid, t.Type, c.err)
	}
}

// Code codes the whole transaction: header, body, digest. A decoder takes
// all that is left of its input, see [DecodeTxn].
func (t *Txn) Code(c *Coder) {
	t.TxnHeader.Code(c)
	if c.decoding {
		t.decodeRest(c)
		return
	}
	if t.Body != nil {
		t.Body.Code(c)
	}
	if t.Digest != nil {
		t.Digest.Code(c)
	}
}

// decodeRest decodes what is behind the header: in its form of today or, if
// that does not fit, in the one that older servers wrote.
func (t *Txn) decodeRest(c *Coder) {
	c.endless()
	body := NewTxnBody(t.Type)
	if body == nil {
		c.fail(fmt.Errorf("transaction type %d: %w", int32(t.Type), ErrValue))
	}
	if c.err != nil {
		return
	}
	start := *c
	if t.decodeForm(c, body); c.err == nil {
		return
	}
	today := *c
	*c = start
	switch t.Type {
	case OpCreate:
		t.decodeForm(c, &CreateTxn{noParent: true})
	case OpCloseSession:
		t.decodeForm(c, nil)
	default:
		*c = today
	}
	if c.err != nil {
		*c = today
	}
}

// decodeForm decodes body, if there is one, and an optional digest, which
// must use up the input.
func (t *Txn) decodeForm(c *Coder, body TxnBody) {
	t.Body, t.Digest = body, nil
	if body != nil {
		body.Code(c)
	}
	if c.err != nil || c.Left() == 0 {
		return
	}
	if c.Left() != digestLen {
		c.fail(fmt.Errorf("%w: %d bytes behind the body", ErrLength, c.Left()))
		return
	}
	t.Digest = new(TxnDigest)
	t.Digest.Code(c)
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
func (t *MultiTxn) Code(c *Coder) {
	n := beginVector(c, &t.Ops, subTxnMin)
	for i := 0; nextElement(c, &t.Ops, i, n); i++ {
		t.Ops[i].Code(c)
	}
}

// Code lists the fields. The body stands in a buffer, which it must fill.
func (op *SubTxn) Code(c *Coder) {
	op.Type.Code(c)
	if !c.decoding {
		mark := len(c.buf)
		c.length(0)
		op.Body.Code(c)
		binary.BigEndian.PutUint32(c.buf[mark:], uint32(len(c.buf)-mark-4))
		return
	}
	if op.Body = newSubTxnBody(op.Type); op.Body == nil {
		c.failAt(4, fmt.Errorf("operation type %d in a multi: %w", int32(op.Type), ErrValue))
		return
	}
	if b := c.takeElement(); c.err == nil {
		c.nested(b, op.Body)
	}
}

// nested decodes r from the whole of b, the content of a buffer just taken.
func (c *Coder) nested(b []byte, r Record) {
	outer := *c
	*c = Decoder(b)
	c.Alias = outer.Alias || outer.src != nil
	r.Code(c)
	if c.err == nil && c.Left() != 0 {
		c.fail(ErrLength)
	}
	err, lossy := c.err, c.lossy
	*c = outer
	c.lossy = c.lossy || lossy
	if err != nil {
		c.failAt(len(b), fmt.Errorf("operation of a multi: %w", err))
	}
}

// newSubTxnBody is NewTxnBody for what may stand inside a multi.
func newSubTxnBody(op OpCode) TxnBody {
	switch op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL, OpDelete, OpDeleteContainer,
		OpSetData, OpCheck, OpError:
		return NewTxnBody(op)
	}
	return nil
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
