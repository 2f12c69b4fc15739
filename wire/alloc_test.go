package wire_test

import (
	"bytes"
	"testing"

	"bellwether/internal/record"
	"bellwether/wire"
)

// The frequent operations of a server and of a client, written as their callers write them: with direct
// calls of Code on a coder, and with records that are used again.

// getDataReply encodes a getData reply into memory that is reused.
type getDataReply struct {
	header wire.ReplyHeader
	reply  wire.DataResponse
	out    []byte
}

func newGetDataReply(size int) *getDataReply {
	return &getDataReply{
		header: wire.ReplyHeader{Xid: 7, Zxid: 0x100000003},
		reply:  wire.DataResponse{Data: bytes.Repeat([]byte("d"), size), Stat: wire.Stat{Czxid: 1, DataLength: int32(size)}},
		out:    make([]byte, 0, wire.FrameHeaderLen+wire.ReplyHeaderLen+4+size+68),
	}
}

func (e *getDataReply) encode() {
	buf, mark := wire.BeginFrame(e.out[:0])
	c := wire.Encoder(buf)
	e.header.Code(&c)
	e.reply.Code(&c)
	e.out = wire.EndFrame(c.Bytes(), mark)
}

// setDataRequest decodes a setData request.
type setDataRequest struct {
	frame   []byte
	alias   bool
	header  wire.RequestHeader
	request wire.SetDataRequest
	err     error
}

func newSetDataRequest(size int, alias bool) *setDataRequest {
	frame := wire.AppendFrame(nil, &wire.RequestHeader{Xid: 7, Op: wire.OpSetData},
		&wire.SetDataRequest{Path: "/service/candidates/n_0000000001", Data: bytes.Repeat([]byte("d"), size), Version: -1})
	return &setDataRequest{frame: frame[wire.FrameHeaderLen:], alias: alias}
}

func (d *setDataRequest) decode() {
	c := wire.Decoder(d.frame)
	c.Alias = d.alias
	d.header.Code(&c)
	d.request.Code(&c)
	d.err = c.Err()
}

// TestHotPathsAllocateOnlyThePayload: encoding allocates nothing if the caller has memory. Decoding
// allocates the strings, and not even these if they may share the frame's memory.
func TestHotPathsAllocateOnlyThePayload(t *testing.T) {
	reply := newGetDataReply(1000)
	aliased, copied := newSetDataRequest(1000, true), newSetDataRequest(1000, false)
	create := wire.Append(nil, &wire.CreateRequest{Path: "/a", Data: []byte("x"), ACL: wire.OpenACL()})
	children := wire.Append(nil, &wire.ChildrenResponse{Children: []string{"a", "b", "c"}})
	packet := wire.Append(nil, &record.TxnHeader{Zxid: 1})
	for _, tt := range []struct {
		name string
		want float64
		do   func()
	}{
		{"encode a getData reply", 0, reply.encode},
		{"decode a setData request, aliasing", 0, aliased.decode},
		{"decode a setData request, copying the path", 1, copied.decode},
		{"decode a create request, aliasing: the list", 1, func() {
			var r wire.CreateRequest
			c := wire.Decoder(create)
			c.Alias = true
			r.Code(&c)
		}},
		{"decode a getChildren reply, aliasing: the list", 1, func() {
			var r wire.ChildrenResponse
			c := wire.Decoder(children)
			c.Alias = true
			r.Code(&c)
		}},
		{"decode a transaction header", 0, func() {
			var h record.TxnHeader
			c := wire.Decoder(packet)
			h.Code(&c)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := testing.AllocsPerRun(100, tt.do); got != tt.want {
				t.Errorf("%v allocations, want %v", got, tt.want)
			}
		})
	}
	if aliased.err != nil || len(aliased.request.Data) != 1000 || len(reply.out) != 4+16+4+1000+68 {
		t.Errorf("nothing was decoded or encoded: %v, %d bytes", aliased.err, len(reply.out))
	}
	if &aliased.request.Data[0] != &aliased.frame[len(aliased.frame)-4-1000] {
		t.Error("the decoded data was copied")
	}
}

func BenchmarkEncodeGetDataReply(b *testing.B) {
	e := newGetDataReply(100)
	b.ReportAllocs()
	b.SetBytes(int64(cap(e.out)))
	for b.Loop() {
		e.encode()
	}
}

func BenchmarkDecodeSetDataRequest(b *testing.B) {
	d := newSetDataRequest(100, true)
	b.ReportAllocs()
	b.SetBytes(int64(len(d.frame)))
	for b.Loop() {
		d.decode()
	}
}

func BenchmarkTxn(b *testing.B) {
	txn := &record.Txn{
		TxnHeader: record.TxnHeader{Session: 1, Cxid: 2, Zxid: 3, Type: wire.OpSetData},
		Body:      &record.SetDataTxn{Path: "/service/candidates/n_0000000001", Data: bytes.Repeat([]byte("d"), 100)},
		Digest:    &record.TxnDigest{Version: record.DigestVersion},
	}
	encoded := txn.Append(nil)
	b.Run("append", func(b *testing.B) {
		buf := make([]byte, 0, 2*len(encoded))
		b.ReportAllocs()
		for b.Loop() {
			txn.Append(buf)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := record.DecodeTxn(encoded); err != nil {
				b.Fatal(err)
			}
		}
	})
}
