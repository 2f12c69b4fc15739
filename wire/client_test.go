package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"bellwether/internal/wiretest"
	"bellwether/wire"
)

// clientVector is one frame of testdata/client.json, captured from Apache
// ZooKeeper 3.8.0.
type clientVector struct {
	Name    string
	Hex     string
	Kind    string
	Opcode  *wire.OpCode
	Decoded json.RawMessage
}

func clientVectors(t testing.TB) []clientVector {
	var file struct{ Vectors []clientVector }
	wiretest.ReadJSON(t, "client.json", &file)
	return file.Vectors
}

// newRequest returns an empty record for the body of a request, or nil if the request has no body.
func newRequest(op wire.OpCode) wire.Record {
	switch op {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer:
		return new(wire.CreateRequest)
	case wire.OpCreateTTL:
		return new(wire.CreateTTLRequest)
	case wire.OpDelete, wire.OpCheck:
		return new(wire.PathVersionRequest)
	case wire.OpExists, wire.OpGetData, wire.OpGetChildren, wire.OpGetChildren2:
		return new(wire.PathWatchRequest)
	case wire.OpSetData:
		return new(wire.SetDataRequest)
	case wire.OpGetACL, wire.OpGetAllChildrenNumber:
		return new(wire.PathRequest)
	case wire.OpSetACL:
		return new(wire.SetACLRequest)
	case wire.OpSync, wire.OpGetEphemerals:
		return new(wire.NullPathRequest)
	case wire.OpMulti, wire.OpMultiRead:
		return new(wire.MultiRequest)
	case wire.OpReconfig:
		return new(wire.ReconfigRequest)
	case wire.OpCheckWatches, wire.OpRemoveWatches:
		return new(wire.WatchesRequest)
	case wire.OpAuth:
		return new(wire.AuthRequest)
	case wire.OpSASL:
		return new(wire.SASLRequest)
	case wire.OpSetWatches:
		return new(wire.SetWatchesRequest)
	case wire.OpSetWatches2:
		return new(wire.SetWatches2Request)
	case wire.OpAddWatch:
		return new(wire.AddWatchRequest)
	}
	return nil
}

// newReply returns an empty record for the body of a reply, or nil if the reply has no body.
func newReply(op wire.OpCode) wire.Record {
	switch op {
	case wire.OpCreate:
		return new(wire.PathResponse)
	case wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
		return new(wire.PathStatResponse)
	case wire.OpExists, wire.OpSetData, wire.OpSetACL:
		return new(wire.StatResponse)
	case wire.OpGetData, wire.OpReconfig:
		return new(wire.DataResponse)
	case wire.OpGetACL:
		return new(wire.ACLResponse)
	case wire.OpGetChildren:
		return new(wire.ChildrenResponse)
	case wire.OpGetChildren2:
		return new(wire.ChildrenStatResponse)
	case wire.OpSync:
		return new(wire.NullPathResponse)
	case wire.OpMulti, wire.OpMultiRead:
		return new(wire.MultiResponse)
	case wire.OpSASL:
		return new(wire.SASLResponse)
	case wire.OpGetEphemerals:
		return new(wire.EphemeralsResponse)
	case wire.OpGetAllChildrenNumber:
		return new(wire.CountResponse)
	case wire.OpAddWatch:
		return new(wire.ErrorResponse)
	case wire.OpWhoAmI:
		return new(wire.WhoAmIResponse)
	}
	return nil
}

// TestClientFramesDecodeAndEncode takes every captured frame in both directions: it decodes to the
// recorded values, and these encode to the captured bytes.
func TestClientFramesDecodeAndEncode(t *testing.T) {
	vectors := clientVectors(t)
	if len(vectors) != 149 {
		t.Errorf("%d vectors, want 149", len(vectors))
	}
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			raw := wiretest.Unhex(t, v.Hex)
			if v.Kind == "raw" {
				var want struct{ Text string }
				wiretest.Unmarshal(t, v.Decoded, &want)
				wiretest.EqualBytes(t, raw, []byte(want.Text))
				return
			}
			frame, err := wire.ReadFrame(bytes.NewReader(raw), nil, wire.FrameMax)
			if err != nil {
				t.Fatal(err)
			}
			if v.Kind == "ConnectRequest" || v.Kind == "ConnectResponse" {
				checkHandshake(t, v, raw, frame)
				return
			}
			checkMessage(t, v, raw, frame)
		})
	}
}

// checkHandshake checks a frame that has no header.
func checkHandshake(t *testing.T, v clientVector, raw, frame []byte) {
	var rec wire.Record = new(wire.ConnectRequest)
	if v.Kind == "ConnectResponse" {
		rec = new(wire.ConnectResponse)
	}
	wiretest.DecodeWhole(t, frame, rec)
	var want wiretest.Object
	wiretest.Unmarshal(t, v.Decoded, &want)
	wiretest.EqualJSON(t, wiretest.Object{"length": len(frame), v.Kind: showHandshake(rec)}, want)
	wiretest.EqualBytes(t, wire.AppendFrame(nil, rec), raw)
}

// checkMessage checks a request, a reply or an event.
func checkMessage(t *testing.T, v clientVector, raw, frame []byte) {
	var want struct{ Header, Body wiretest.Object }
	wiretest.Unmarshal(t, v.Decoded, &want)
	c := wire.Decoder(frame)
	parts, header := decodeHeader(&c, v)
	if c.Err() != nil {
		t.Fatal(c.Err())
	}
	wiretest.EqualJSON(t, header, want.Header)
	body := newBody(v, parts[0])
	if bytes.Contains(v.Decoded, []byte(`"body": null`)) {
		if err := wire.Decode(c.Rest(), body); !errors.Is(err, wire.ErrShort) {
			t.Errorf("error %v, want %v", err, wire.ErrShort)
		}
		body = nil
	}
	if body != nil {
		wiretest.DecodeWhole(t, c.Rest(), body)
		parts = append(parts, body)
		wiretest.EqualJSON(t, showBody(v, parts[0], body), want.Body)
	} else if c.Left() != 0 || want.Body != nil {
		t.Errorf("%d bytes and %v behind the header, and no record for them", c.Left(), want.Body)
	}
	wiretest.EqualBytes(t, wire.AppendFrame(nil, parts...), raw)
}

// decodeHeader decodes the header of a frame of v's kind, and shows it.
func decodeHeader(c *wire.Coder, v clientVector) ([]wire.Record, wiretest.Object) {
	if v.Kind == "request" {
		h := new(wire.RequestHeader)
		h.Code(c)
		return []wire.Record{h}, wiretest.Object{"xid": h.Xid, "type": h.Op}
	}
	h := new(wire.ReplyHeader)
	h.Code(c)
	return []wire.Record{h}, wiretest.Object{"xid": h.Xid, "zxid": wiretest.Long(h.Zxid), "err": int32(h.Err)}
}

// newBody returns an empty record for the body after a header, or nil if there is none.
func newBody(v clientVector, header wire.Record) wire.Record {
	switch h := header.(type) {
	case *wire.RequestHeader:
		return newRequest(h.Op)
	case *wire.ReplyHeader:
		if v.Kind == "event" {
			return new(wire.WatcherEvent)
		}
		if h.Err != wire.OK {
			return nil
		}
		return newReply(*v.Opcode)
	}
	return nil
}

func showBody(v clientVector, header, body wire.Record) wiretest.Object {
	if v.Kind != "request" {
		return showReply(body)
	}
	o := showRequest(body)
	if header.(*wire.RequestHeader).Op == wire.OpGetEphemerals {
		return wiretest.Object{"prefixPath": o["path"]}
	}
	return o
}
