package zk

import (
	"context"

	"bellwether/wire"
)

// Op is one operation of a Multi or MultiRead.
type Op struct {
	op      wire.OpCode
	path    string
	data    []byte
	version int32
	spec    createSpec
}

// Result is what one operation of a Multi or MultiRead gave. Which fields
// are set depends on the operation. Stat of a create is empty on servers before 3.8.2.
type Result struct {
	Path     string // create
	Stat     wire.Stat
	Data     []byte   // get
	Children []string // children
	Err      error    // nil: carried out (MultiRead, successful Multi)
}

// CreateOp is Create within a Multi.
func CreateOp(path string, data []byte, opts ...CreateOption) Op {
	o := Op{op: wire.OpCreate2, path: path, data: data}
	for _, opt := range opts {
		opt.applyTo(&o.spec)
	}
	return o
}

// SetOp is Set within a Multi.
func SetOp(path string, data []byte, version int32) Op {
	return Op{op: wire.OpSetData, path: path, data: data, version: version}
}

// DeleteOp is Delete within a Multi.
func DeleteOp(path string, version int32) Op {
	return Op{op: wire.OpDelete, path: path, version: version}
}

// CheckOp fails the Multi unless the znode exists with this version, or
// exists at all for AnyVersion.
func CheckOp(path string, version int32) Op {
	return Op{op: wire.OpCheck, path: path, version: version}
}

// GetOp is Get within a MultiRead.
func GetOp(path string) Op { return Op{op: wire.OpGetData, path: path} }

// ChildrenOp is Children within a MultiRead; it gives no Stat.
func ChildrenOp(path string) Op { return Op{op: wire.OpGetChildren, path: path} }

// Multi carries out all operations or none, in order, under one zxid. When
// one fails, the error is an OpError with its path and reason, and the
// results hold the code of each: ErrRuntimeInconsistency for those behind it.
func (c *Client) Multi(ctx context.Context, ops ...Op) ([]Result, error) { return c.multi(ctx, ops) }

// MultiRead carries out reads, GetOp and ChildrenOp, one after the other in
// one request. Each succeeds or fails by itself, see Result.Err. On servers before 3.6 it
// sends single reads.
func (c *Client) MultiRead(ctx context.Context, ops ...Op) ([]Result, error) {
	return c.multiRead(ctx, ops)
}
