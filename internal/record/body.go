package record

import (
	"fmt"
	"slices"

	"bellwether/wire"
)

// NewTxnBody returns an empty body for a transaction type, nil if there is none.
func NewTxnBody(op wire.OpCode) TxnBody {
	switch op {
	case wire.OpCreate, wire.OpCreate2:
		return new(CreateTxn)
	case wire.OpCreateContainer:
		return new(CreateContainerTxn)
	case wire.OpCreateTTL:
		return new(CreateTTLTxn)
	case wire.OpDelete, wire.OpDeleteContainer:
		return new(DeleteTxn)
	case wire.OpSetData, wire.OpReconfig:
		return new(SetDataTxn)
	case wire.OpSetACL:
		return new(SetACLTxn)
	case wire.OpCheck:
		return new(CheckTxn)
	case wire.OpError:
		return new(ErrorTxn)
	case wire.OpCreateSession:
		return new(CreateSessionTxn)
	case wire.OpCloseSession:
		return new(CloseSessionTxn)
	case wire.OpMulti:
		return new(MultiTxn)
	}
	return nil
}

// Fits reports whether the body is the one of the transaction's type; otherwise the
// transaction could not be read again. Only a closeSession may have no body.
func (t *Txn) Fits() bool {
	return fits(t.Type, t.Body) || t.Body == nil && t.Type == wire.OpCloseSession
}

// fits reports whether NewTxnBody returns a body of this kind for the type.
func fits(op wire.OpCode, body TxnBody) bool {
	switch b := body.(type) {
	case *CreateTxn:
		return op == wire.OpCreate || op == wire.OpCreate2
	case *CreateContainerTxn:
		return op == wire.OpCreateContainer
	case *CreateTTLTxn:
		return op == wire.OpCreateTTL
	case *DeleteTxn:
		return op == wire.OpDelete || op == wire.OpDeleteContainer
	case *SetDataTxn:
		return op == wire.OpSetData || op == wire.OpReconfig
	case *SetACLTxn:
		return op == wire.OpSetACL
	case *CheckTxn:
		return op == wire.OpCheck
	case *ErrorTxn:
		return op == wire.OpError
	case *CreateSessionTxn:
		return op == wire.OpCreateSession
	case *CloseSessionTxn:
		return op == wire.OpCloseSession
	case *MultiTxn:
		misfit := func(s SubTxn) bool { return !inMulti(s.Type) || !fits(s.Type, s.Body) }
		return op == wire.OpMulti && !slices.ContainsFunc(b.Ops, misfit)
	}
	return false
}

// CreateTxn makes a persistent or ephemeral znode.
type CreateTxn struct {
	Path      string
	Data      []byte
	ACL       []wire.ACL
	Ephemeral bool
	// ParentCversion is the parent's count of creates, this one included. It is -1 in
	// records of servers before 3.4, and means one more than the parent has.
	ParentCversion int32

	noParent bool // read and written without ParentCversion
}

// Code encodes or decodes the fields.
func (t *CreateTxn) Code(c *wire.Coder) {
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
	ACL            []wire.ACL
	ParentCversion int32
}

// Code encodes or decodes the fields.
func (t *CreateContainerTxn) Code(c *wire.Coder) {
	c.String(&t.Path)
	c.Buffer(&t.Data)
	c.ACLs(&t.ACL)
	c.Int32(&t.ParentCversion)
}

// CreateTTLTxn makes a znode that is deleted when it is not used; TTL is in
// milliseconds.
type CreateTTLTxn struct {
	Path           string
	Data           []byte
	ACL            []wire.ACL
	ParentCversion int32
	TTL            int64
}

// Code encodes or decodes the fields.
func (t *CreateTTLTxn) Code(c *wire.Coder) {
	c.String(&t.Path)
	c.Buffer(&t.Data)
	c.ACLs(&t.ACL)
	c.Int32(&t.ParentCversion)
	c.Int64(&t.TTL)
}

// DeleteTxn removes a znode.
type DeleteTxn struct{ Path string }

// Code encodes or decodes the fields.
func (t *DeleteTxn) Code(c *wire.Coder) { c.String(&t.Path) }

// SetDataTxn replaces data; Version is the new one.
type SetDataTxn struct {
	Path    string
	Data    []byte
	Version int32
}

// Code encodes or decodes the fields.
func (t *SetDataTxn) Code(c *wire.Coder) {
	c.String(&t.Path)
	c.Buffer(&t.Data)
	c.Int32(&t.Version)
}

// SetACLTxn replaces an ACL; Version is the new one.
type SetACLTxn struct {
	Path    string
	ACL     []wire.ACL
	Version int32
}

// Code encodes or decodes the fields.
func (t *SetACLTxn) Code(c *wire.Coder) {
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

// Code encodes or decodes the fields.
func (t *CheckTxn) Code(c *wire.Coder) {
	c.String(&t.Path)
	c.Int32(&t.Version)
}

// ErrorTxn is a rejected write; it takes a zxid and changes nothing.
type ErrorTxn struct{ Err wire.Code }

// Code encodes or decodes the fields.
func (t *ErrorTxn) Code(c *wire.Coder) { t.Err.Code(c) }

// CreateSessionTxn opens the header's session.
type CreateSessionTxn struct{ TimeoutMS int32 }

// Code encodes or decodes the fields.
func (t *CreateSessionTxn) Code(c *wire.Coder) { c.Int32(&t.TimeoutMS) }

// CloseSessionTxn ends the header's session and deletes its ephemerals.
type CloseSessionTxn struct{ Paths []string }

// Code encodes or decodes the fields.
func (t *CloseSessionTxn) Code(c *wire.Coder) { c.Strings(&t.Paths) }

// SubTxn is one operation of a MultiTxn.
type SubTxn struct {
	Type wire.OpCode
	Body TxnBody
}

// MultiTxn is several operations under one zxid. If any of them is an OpError, none has
// an effect.
type MultiTxn struct{ Ops []SubTxn }

// Failed reports whether the multi was refused.
func (t *MultiTxn) Failed() bool {
	for _, op := range t.Ops {
		if op.Type == wire.OpError {
			return true
		}
	}
	return false
}

// subTxnMin is the least number of bytes of a SubTxn: its type and the length of its
// body.
const subTxnMin = 8

// Code encodes or decodes the operations.
func (t *MultiTxn) Code(c *wire.Coder) { wire.Vector(c, &t.Ops, subTxnMin) }

// Code encodes or decodes the fields. The body stands in a buffer, which it must fill.
func (op *SubTxn) Code(c *wire.Coder) {
	op.Type.Code(c)
	if c.Decoding() {
		if op.Body = newSubTxnBody(op.Type); op.Body == nil {
			c.Fail(4, fmt.Errorf("operation type %d in a multi: %w", int32(op.Type), wire.ErrValue))
			return
		}
	}
	c.Nested("operation of a multi", op.Body)
}

// newSubTxnBody is NewTxnBody for the operations that a multi may contain.
func newSubTxnBody(op wire.OpCode) TxnBody {
	if !inMulti(op) {
		return nil
	}
	return NewTxnBody(op)
}

// inMulti reports whether a multi may contain such an operation.
func inMulti(op wire.OpCode) bool {
	switch op {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL, wire.OpDelete, wire.OpDeleteContainer,
		wire.OpSetData, wire.OpCheck, wire.OpError:
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
