package wire

// MultiHeader precedes each operation of a multi and each of its results. A header with
// Done set ends the list.
type MultiHeader struct {
	Type OpCode
	Done bool
	Err  Code
}

// Code encodes or decodes the fields.
func (h *MultiHeader) Code(c *Coder) {
	h.Type.Code(c)
	c.Bool(&h.Done)
	h.Err.Code(c)
}

// multiHeaderLen is the encoded length of a MultiHeader in bytes.
const multiHeaderLen = 9

// multiEnd returns the header that ends a list.
func multiEnd() MultiHeader { return MultiHeader{Type: OpError, Done: true, Err: -1} }

// Op is one operation of a multi or multiRead with its request record.
type Op struct {
	Type    OpCode
	Request Record
}

// MultiRequest is the body of a multi (OpMulti) or a multiRead (OpMultiRead). Decoding
// fails for an operation that neither kind allows. The server checks that the kinds are
// not mixed, and that the flags of a create belong to its operation.
type MultiRequest struct{ Ops []Op }

// Code encodes or decodes the operations.
func (r *MultiRequest) Code(c *Coder) {
	if c.decoding {
		r.decode(c)
		return
	}
	for _, op := range r.Ops {
		h := MultiHeader{Type: op.Type, Err: -1}
		h.Code(c)
		op.Request.Code(c)
	}
	h := multiEnd()
	h.Code(c)
}

func (r *MultiRequest) decode(c *Coder) {
	r.Ops = nil
	c.inMulti = true
	defer func() { c.inMulti = false }()
	for {
		h, more := nextInMulti(c)
		if !more {
			return
		}
		c.lossy = c.lossy || h.Err != -1
		rec := newMultiOp(h.Type)
		if rec == nil {
			c.Fail(multiHeaderLen, ErrValue)
			return
		}
		rec.Code(c)
		r.Ops = push(r.Ops, Op{h.Type, rec})
	}
}

// nextInMulti decodes the next header of a list; it returns false at its end or after an
// error. Of the last header only Done counts.
func nextInMulti(c *Coder) (h MultiHeader, more bool) {
	h.Code(c)
	if c.err != nil {
		return h, false
	}
	if h.Done {
		c.lossy = c.lossy || h != multiEnd()
	}
	return h, !h.Done
}

// newMultiOp returns an empty request record for an operation that a multi or multiRead
// may contain, nil for any other.
func newMultiOp(op OpCode) Record {
	switch op {
	case OpCreate, OpCreate2, OpCreateContainer:
		return new(CreateRequest)
	case OpCreateTTL:
		return new(CreateTTLRequest)
	case OpDelete, OpCheck:
		return new(PathVersionRequest)
	case OpSetData:
		return new(SetDataRequest)
	case OpGetData, OpGetChildren:
		return new(PathWatchRequest)
	}
	return nil
}

// OpResult is one result of a multi or multiRead. Type is OpError for a
// failed operation, whose code is in Err; Response is nil where the
// operation has none.
type OpResult struct {
	Type     OpCode
	Err      Code
	Response Record
}

// MultiResponse answers a multi or multiRead.
type MultiResponse struct{ Results []OpResult }

// Code encodes or decodes the results.
func (r *MultiResponse) Code(c *Coder) {
	if c.decoding {
		r.decode(c)
		return
	}
	for _, res := range r.Results {
		h := MultiHeader{Type: res.Type, Err: res.Err}
		h.Code(c)
		switch {
		case res.Type == OpError:
			res.Err.Code(c)
		case res.Response != nil:
			res.Response.Code(c)
		}
	}
	h := multiEnd()
	h.Code(c)
}

func (r *MultiResponse) decode(c *Coder) {
	r.Results = nil
	for {
		h, more := nextInMulti(c)
		if !more {
			return
		}
		res := OpResult{Type: h.Type, Err: h.Err}
		switch h.Type {
		case OpError:
			res.Err.Code(c)
			c.lossy = c.lossy || res.Err != h.Err
		case OpDelete, OpCheck:
		default:
			if res.Response = newMultiResponse(h.Type); res.Response == nil {
				c.Fail(multiHeaderLen, ErrValue)
				return
			}
			res.Response.Code(c)
		}
		r.Results = push(r.Results, res)
	}
}

// newMultiResponse returns an empty response record for the result of an operation, nil for
// an operation that a multi cannot contain.
func newMultiResponse(op OpCode) Record {
	switch op {
	case OpCreate:
		return new(PathResponse)
	case OpCreate2, OpCreateContainer, OpCreateTTL:
		return new(PathStatResponse)
	case OpSetData:
		return new(StatResponse)
	case OpGetData:
		return new(DataResponse)
	case OpGetChildren:
		return new(ChildrenResponse)
	}
	return nil
}
