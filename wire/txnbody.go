package wire

import (
	"encoding/binary"
	"fmt"
	"slices"
)

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

// Fits reports whether the body is the one of the transaction's type: what
// does not fit cannot be read again. Without one only a closeSession does.
func (t *Txn) Fits() bool {
	return fits(t.Type, t.Body) || t.Body == nil && t.Type == OpCloseSession
}

// fits is NewTxnBody asked the other way round.
func fits(op OpCode, body TxnBody) bool {
	switch b := body.(type) {
	case *CreateTxn:
		return op == OpCreate || op == OpCreate2
	case *CreateContainerTxn:
		return op == OpCreateContainer
	case *CreateTTLTxn:
		return op == OpCreateTTL
	case *DeleteTxn:
		return op == OpDelete || op == OpDeleteContainer
	case *SetDataTxn:
		return op == OpSetData || op == OpReconfig
	case *SetACLTxn:
		return op == OpSetACL
	case *CheckTxn:
		return op == OpCheck
	case *ErrorTxn:
		return op == OpError
	case *CreateSessionTxn:
		return op == OpCreateSession
	case *CloseSessionTxn:
		return op == OpCloseSession
	case *MultiTxn:
		misfit := func(s SubTxn) bool { return !inMulti(s.Type) || !fits(s.Type, s.Body) }
		return op == OpMulti && !slices.ContainsFunc(b.Ops, misfit)
	}
	return false
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
	if !inMulti(op) {
		return nil
	}
	return NewTxnBody(op)
}

// inMulti reports whether a multi may hold such an operation.
func inMulti(op OpCode) bool {
	switch op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL, OpDelete, OpDeleteContainer,
		OpSetData, OpCheck, OpError:
		return true
	}
	return false
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
