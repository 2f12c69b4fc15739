package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
)

// clientVector is one frame of testdata/client.json, captured from Apache
// ZooKeeper 3.8.0.
type clientVector struct {
	Name    string
	Hex     string
	Kind    string
	Opcode  *OpCode
	Decoded json.RawMessage
}

func clientVectors(t testing.TB) []clientVector {
	var file struct{ Vectors []clientVector }
	readJSON(t, "client.json", &file)
	return file.Vectors
}

// newRequest returns an empty record for the body of a request; nil where
// there is none.
func newRequest(op OpCode) Record {
	switch op {
	case OpCreate, OpCreate2, OpCreateContainer:
		return new(CreateRequest)
	case OpCreateTTL:
		return new(CreateTTLRequest)
	case OpDelete, OpCheck:
		return new(PathVersionRequest)
	case OpExists, OpGetData, OpGetChildren, OpGetChildren2:
		return new(PathWatchRequest)
	case OpSetData:
		return new(SetDataRequest)
	case OpGetACL, OpGetAllChildrenNumber:
		return new(PathRequest)
	case OpSetACL:
		return new(SetACLRequest)
	case OpSync, OpGetEphemerals:
		return new(NullPathRequest)
	case OpMulti, OpMultiRead:
		return new(MultiRequest)
	case OpReconfig:
		return new(ReconfigRequest)
	case OpCheckWatches, OpRemoveWatches:
		return new(WatchesRequest)
	case OpAuth:
		return new(AuthRequest)
	case OpSASL:
		return new(SASLRequest)
	case OpSetWatches:
		return new(SetWatchesRequest)
	case OpSetWatches2:
		return new(SetWatches2Request)
	case OpAddWatch:
		return new(AddWatchRequest)
	}
	return nil
}

// newReply returns an empty record for the body of a reply; nil where there is none.
func newReply(op OpCode) Record {
	switch op {
	case OpCreate:
		return new(PathResponse)
	case OpCreate2, OpCreateContainer, OpCreateTTL:
		return new(PathStatResponse)
	case OpExists, OpSetData, OpSetACL:
		return new(StatResponse)
	case OpGetData, OpReconfig:
		return new(DataResponse)
	case OpGetACL:
		return new(ACLResponse)
	case OpGetChildren:
		return new(ChildrenResponse)
	case OpGetChildren2:
		return new(ChildrenStatResponse)
	case OpSync:
		return new(NullPathResponse)
	case OpMulti, OpMultiRead:
		return new(MultiResponse)
	case OpSASL:
		return new(SASLResponse)
	case OpGetEphemerals:
		return new(EphemeralsResponse)
	case OpGetAllChildrenNumber:
		return new(CountResponse)
	case OpAddWatch:
		return new(ErrorResponse)
	case OpWhoAmI:
		return new(WhoAmIResponse)
	}
	return nil
}

// TestClientFramesDecodeAndEncode takes every captured frame both ways: it
// decodes to the recorded values, and these encode to the captured bytes.
func TestClientFramesDecodeAndEncode(t *testing.T) {
	vectors := clientVectors(t)
	if len(vectors) != 149 {
		t.Errorf("%d vectors, want 149", len(vectors))
	}
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			raw := unhex(t, v.Hex)
			if v.Kind == "raw" {
				var want struct{ Text string }
				unmarshal(t, v.Decoded, &want)
				equalBytes(t, raw, []byte(want.Text))
				return
			}
			frame, err := ReadFrame(bytes.NewReader(raw), nil, FrameMax)
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

func unmarshal(t testing.TB, b []byte, v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		t.Fatal(err)
	}
}

// checkHandshake checks a frame that has no header.
func checkHandshake(t *testing.T, v clientVector, raw, frame []byte) {
	var rec Record = new(ConnectRequest)
	if v.Kind == "ConnectResponse" {
		rec = new(ConnectResponse)
	}
	decodeWhole(t, frame, rec)
	var want object
	unmarshal(t, v.Decoded, &want)
	equalJSON(t, object{"length": len(frame), v.Kind: showHandshake(rec)}, want)
	equalBytes(t, AppendFrame(nil, rec), raw)
}

// checkMessage checks a request, a reply or an event.
func checkMessage(t *testing.T, v clientVector, raw, frame []byte) {
	var want struct{ Header, Body object }
	unmarshal(t, v.Decoded, &want)
	c := Decoder(frame)
	parts, header := decodeHeader(&c, v)
	if c.Err() != nil {
		t.Fatal(c.Err())
	}
	equalJSON(t, header, want.Header)
	body := newBody(v, parts[0])
	if bytes.Contains(v.Decoded, []byte(`"body": null`)) {
		if err := Decode(c.Rest(), body); !errors.Is(err, ErrShort) {
			t.Errorf("error %v, want %v", err, ErrShort)
		}
		body = nil
	}
	if body != nil {
		decodeWhole(t, c.Rest(), body)
		parts = append(parts, body)
		equalJSON(t, showBody(v, parts[0], body), want.Body)
	} else if c.Left() != 0 || want.Body != nil {
		t.Errorf("%d bytes and %v behind the header, and no record for them", c.Left(), want.Body)
	}
	equalBytes(t, AppendFrame(nil, parts...), raw)
}

// decodeHeader decodes the header of v's kind and shows it.
func decodeHeader(c *Coder, v clientVector) ([]Record, object) {
	if v.Kind == "request" {
		h := new(RequestHeader)
		h.Code(c)
		return []Record{h}, object{"xid": h.Xid, "type": h.Op}
	}
	h := new(ReplyHeader)
	h.Code(c)
	return []Record{h}, object{"xid": h.Xid, "zxid": long(h.Zxid), "err": int32(h.Err)}
}

// newBody returns the record behind a header, nil where there is none.
func newBody(v clientVector, header Record) Record {
	switch h := header.(type) {
	case *RequestHeader:
		return newRequest(h.Op)
	case *ReplyHeader:
		if v.Kind == "event" {
			return new(WatcherEvent)
		}
		if h.Err != OK {
			return nil
		}
		return newReply(*v.Opcode)
	}
	return nil
}

func showBody(v clientVector, header, body Record) object {
	if v.Kind != "request" {
		return showReply(body)
	}
	o := showRequest(body)
	if header.(*RequestHeader).Op == OpGetEphemerals {
		return object{"prefixPath": o["path"]}
	}
	return o
}

// decodeWhole decodes all of b into r and fails unless nothing is left over
// and nothing was read other than as it stands.
func decodeWhole(t testing.TB, b []byte, r Record) {
	t.Helper()
	c := Decoder(b)
	r.Code(&c)
	if c.Err() != nil {
		t.Fatal(c.Err())
	}
	if c.Left() != 0 || !c.Canonical() {
		t.Errorf("%d bytes left over, canonical %v", c.Left(), c.Canonical())
	}
}
