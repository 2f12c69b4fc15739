package record

import (
	"fmt"

	"bellwether/wire"
)

// TxnHeader begins every transaction record, in logs and in proposals.
type TxnHeader struct {
	Session wire.SessionID // the session of the request; 0 for the server's own clean-up
	Cxid    int32          // the client's xid; 0 for createSession and for requests of the server itself
	Zxid    wire.Zxid
	Time    int64 // ms since 1970, by the clock of the proposer
	Type    wire.OpCode
}

// TxnHeaderLen is the encoded length of a TxnHeader in bytes.
const TxnHeaderLen = 32

// Code encodes or decodes the fields.
func (h *TxnHeader) Code(c *wire.Coder) {
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

// Code encodes or decodes the fields.
func (d *TxnDigest) Code(c *wire.Coder) {
	c.Int32(&d.Version)
	v := int64(d.Tree)
	c.Int64(&v)
	if c.Decoding() { // only then: several goroutines may encode one shared transaction
		d.Tree = uint64(v)
	}
}

// Follows reports whether next can come directly after prev in a history: it has the
// next counter, or it is the first of a later epoch.
func Follows(prev, next wire.Zxid) bool {
	return next == prev+1 || next.Counter() == 1 && next.Epoch() > prev.Epoch()
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
	wire.Record
	txn()
}

// txnRoom is the number of bytes that a transaction usually needs.
const txnRoom = 256

// Append appends the encoded transaction.
func (t *Txn) Append(dst []byte) []byte {
	if dst == nil {
		dst = make([]byte, 0, txnRoom)
	}
	c := wire.Encoder(dst)
	t.Code(&c)
	return c.Bytes()
}

// DecodeTxn reads one whole encoded transaction. Its byte slices and strings share memory
// with b, which must not be changed any more. It also reads the forms of older servers:
// create without a parent counter, closeSession without a body, records without a digest.
// Bytes behind the transaction are an error.
func DecodeTxn(b []byte) (*Txn, error) {
	c := wire.Decoder(b)
	return decodeTxn(&c)
}

// decodeTxn decodes the whole input of c.
func decodeTxn(c *wire.Coder) (*Txn, error) {
	length := c.Left()
	c.Alias = true
	t := new(struct { // one allocation for both
		Txn
		digest TxnDigest
	})
	t.TxnHeader.Code(c)
	t.decodeRest(c, &t.digest)
	switch {
	case c.Err() == nil:
		return &t.Txn, nil
	case length < TxnHeaderLen:
		return nil, fmt.Errorf("transaction header: %w", c.Err())
	default:
		return nil, fmt.Errorf("transaction %v (%v): %w", t.Zxid, t.Type, c.Err())
	}
}

// TxnDecoder decodes many transactions, one after the other, with few allocations. The zero value is ready.
type TxnDecoder struct {
	c    wire.Coder
	slab []byte // copies of the input; the transactions share this memory
}

// slabLen is how much memory transactions share, in bytes.
const slabLen = 32 << 10

// Decode is DecodeTxn for a copy of b. Some small transactions share the memory of their copies, which is
// freed when none of them is used any more.
func (d *TxnDecoder) Decode(b []byte) (*Txn, error) {
	d.c = wire.Decoder(d.copy(b))
	return decodeTxn(&d.c)
}

func (d *TxnDecoder) copy(b []byte) []byte {
	if len(b) > slabLen/4 {
		return append(make([]byte, 0, len(b)), b...)
	}
	if len(b) > cap(d.slab)-len(d.slab) {
		d.slab = make([]byte, 0, slabLen)
	}
	begin := len(d.slab)
	d.slab = append(d.slab, b...)
	return d.slab[begin:len(d.slab):len(d.slab)]
}

// Code encodes or decodes the whole transaction: header, body, digest. A decoder takes
// all that is left of its input, see [DecodeTxn].
func (t *Txn) Code(c *wire.Coder) {
	t.TxnHeader.Code(c)
	if c.Decoding() {
		t.decodeRest(c, new(TxnDigest))
		return
	}
	if t.Body != nil {
		t.Body.Code(c)
	}
	if t.Digest != nil {
		t.Digest.Code(c)
	}
}

// decodeRest decodes the bytes after the header: in the present form or, if they do not have it, in the
// form that older servers wrote. It uses digest as the memory of the digest, if there is one.
func (t *Txn) decodeRest(c *wire.Coder, digest *TxnDigest) {
	c.Bounded()
	body := NewTxnBody(t.Type)
	if body == nil {
		c.Fail(0, fmt.Errorf("transaction type %d: %w", int32(t.Type), wire.ErrValue))
	}
	if c.Err() != nil {
		return
	}
	start := *c
	if t.decodeForm(c, body, digest); c.Err() == nil {
		return
	}
	today := *c
	*c = start
	switch t.Type {
	case wire.OpCreate:
		t.decodeForm(c, &CreateTxn{noParent: true}, digest)
	case wire.OpCloseSession:
		t.decodeForm(c, nil, digest)
	default:
		*c = today
	}
	if c.Err() != nil {
		*c = today
	}
}

// decodeForm decodes a body, if the form has one, and an optional digest. Together they must use up the
// input.
func (t *Txn) decodeForm(c *wire.Coder, body TxnBody, digest *TxnDigest) {
	t.Body, t.Digest = body, nil
	if body != nil {
		body.Code(c)
	}
	if c.Err() != nil || c.Left() == 0 {
		return
	}
	if c.Left() != digestLen {
		c.Fail(0, fmt.Errorf("%w: %d bytes behind the body", wire.ErrLength, c.Left()))
		return
	}
	t.Digest = digest
	t.Digest.Code(c)
}
