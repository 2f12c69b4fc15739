package zk

import (
	"context"
	"errors"

	"bellwether/wire"
)

// Op is one operation of a Multi or MultiRead.
type Op struct {
	op      OpCode
	path    string
	data    []byte
	version int32
	spec    createSpec
}

// Result is the outcome of one operation of a Multi or MultiRead. Which fields are set
// depends on the operation. The Stat of a create is empty on servers before 3.8.2.
type Result struct {
	Path     string // create
	Stat     Stat
	Data     []byte   // get
	Children []string // children
	Err      error    // nil: carried out (MultiRead, successful Multi)
}

// CreateOp is Create within a Multi.
func CreateOp(path string, data []byte, opts ...CreateOption) Op {
	return Op{op: wire.OpCreate2, path: path, data: data, spec: specOf(opts)}
}

// SetOp is Set within a Multi.
func SetOp(path string, data []byte, version int32) Op {
	return Op{op: wire.OpSetData, path: path, data: data, version: version}
}

// DeleteOp is Delete within a Multi.
func DeleteOp(path string, version int32) Op {
	return Op{op: wire.OpDelete, path: path, version: version}
}

// CheckOp fails the Multi unless the znode exists and has this version; with AnyVersion
// it only has to exist.
func CheckOp(path string, version int32) Op {
	return Op{op: wire.OpCheck, path: path, version: version}
}

// GetOp is Get within a MultiRead.
func GetOp(path string) Op { return Op{op: wire.OpGetData, path: path} }

// ChildrenOp is Children within a MultiRead; it gives no Stat.
func ChildrenOp(path string) Op { return Op{op: wire.OpGetChildren, path: path} }

// Multi carries out all operations or none, in order and under one zxid. If one fails,
// the error is an OpError with its path and reason, and the results hold the code of
// each operation: ErrRuntimeInconsistency for those behind the one that failed.
func (c *Client) Multi(ctx context.Context, ops ...Op) ([]Result, error) {
	results, err := c.multi(ctx, wire.OpMulti, ops)
	for i, r := range results {
		if r.Err != nil && r.Err != wire.ErrRuntimeInconsistency {
			return results, opError(ops[i].op, ops[i].path, c.chrootError(ctx, ops[i].op, ops[i].path, r.Err))
		}
	}
	return results, err
}

// multi sends a Multi or MultiRead and returns the results as the server answered them.
func (c *Client) multi(ctx context.Context, op OpCode, ops []Op) ([]Result, error) {
	req, at, err := c.multiRequest(ops, op == wire.OpMultiRead)
	if err != nil {
		return nil, opError(op, pathAt(ops, at), err)
	}
	var resp wire.MultiResponse
	k := c.newCall(op)
	if err := c.do(ctx, k, pathAt(ops, 0), req, &resp); err != nil {
		return nil, err
	}
	defer k.free()
	if len(resp.Results) != len(ops) {
		return nil, opError(op, pathAt(ops, 0), k.fate(protocolErrorf("%d results for %d operations", len(resp.Results), len(ops))))
	}
	for _, r := range resp.Results { // where the server checks the session for each operation, as ZooKeeper does
		if c.checkSession(k.session, r.Err) != nil {
			c.wakeWriter()
		}
	}
	return c.results(resp.Results), nil
}

func pathAt(ops []Op, i int) string {
	if i < len(ops) {
		return ops[i].path
	}
	return ""
}

// multiRequest translates the operations. After an error, at is the index of the
// operation that is not valid.
func (c *Client) multiRequest(ops []Op, read bool) (req *wire.MultiRequest, at int, err error) {
	req = &wire.MultiRequest{Ops: make([]wire.Op, len(ops))}
	for i := range ops {
		o := &ops[i]
		full, err := c.abs(o.path, o.spec.mode&Sequential != 0)
		if err != nil {
			return nil, i, err
		}
		isRead := o.op == wire.OpGetData || o.op == wire.OpGetChildren
		if isRead != read || !o.record(full, &req.Ops[i]) {
			return nil, i, ErrBadArguments
		}
	}
	return req, 0, nil
}

// record writes the operation to *out. It returns false if the operation or its options
// are not valid.
func (o *Op) record(path string, out *wire.Op) (ok bool) {
	out.Type, ok = o.op, true
	switch o.op {
	case wire.OpCreate2:
		req := new(wire.CreateTTLRequest)
		out.Type, ok = o.spec.request(path, o.data, req)
		out.Request = createRecord(out.Type, req)
	case wire.OpSetData:
		out.Request = &wire.SetDataRequest{Path: path, Data: o.data, Version: o.version}
	case wire.OpDelete, wire.OpCheck:
		out.Request = &wire.PathVersionRequest{Path: path, Version: o.version}
	case wire.OpGetData, wire.OpGetChildren:
		out.Request = &wire.PathWatchRequest{Path: path}
	default:
		return false
	}
	return ok
}

// results translates what a server answered.
func (c *Client) results(in []wire.OpResult) []Result {
	out := make([]Result, len(in))
	for i, r := range in {
		out[i].Err = r.Err.Err()
		switch resp := r.Response.(type) {
		case *wire.PathResponse:
			out[i].Path = c.rel(resp.Path)
		case *wire.PathStatResponse:
			out[i].Path, out[i].Stat = c.rel(resp.Path), resp.Stat
		case *wire.StatResponse:
			out[i].Stat = resp.Stat
		case *wire.DataResponse:
			out[i].Data, out[i].Stat = resp.Data, resp.Stat
		case *wire.ChildrenResponse:
			out[i].Children = resp.Children
		}
	}
	return out
}

// MultiRead carries out reads, GetOp and ChildrenOp, one after the other in one request.
// Each succeeds or fails by itself, see Result.Err. To servers before 3.6 the client
// sends single reads instead.
func (c *Client) MultiRead(ctx context.Context, ops ...Op) ([]Result, error) {
	results, err := c.multi(ctx, wire.OpMultiRead, ops)
	if errors.Is(err, ErrUnsupported) {
		return c.singleReads(ctx, ops)
	}
	return results, err
}

// singleReads does the work of a multiRead with single reads.
func (c *Client) singleReads(ctx context.Context, ops []Op) ([]Result, error) {
	out := make([]Result, len(ops))
	for i, o := range ops {
		var err error
		if o.op == wire.OpGetData {
			out[i].Data, out[i].Stat, err = c.Get(ctx, o.path)
		} else {
			out[i].Children, _, err = c.Children(ctx, o.path)
		}
		var code Code
		if err != nil && !errors.As(err, &code) {
			return nil, err
		}
		if err != nil {
			out[i].Err = code
		}
	}
	return out, nil
}
