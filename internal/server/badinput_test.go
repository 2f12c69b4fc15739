package server

import (
	"bytes"
	"encoding/binary"
	"testing"

	"bellwether/wire"
)

// frameOf returns a frame around raw bytes.
func frameOf(b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

// raw returns a request with any bytes as its body.
func raw(xid int32, op wire.OpCode, body ...byte) []byte {
	h := wire.RequestHeader{Xid: xid, Op: op}
	return frameOf(append(wire.Append(nil, &h), body...))
}

// TestBadFirstFrame: after bad first bytes the server closes the connection without
// sending a byte.
func TestBadFirstFrame(t *testing.T) {
	s := start(t, Options{})
	full := wire.AppendFrame(nil, &wire.ConnectRequest{TimeoutMS: 5000, Password: make([]byte, 16)})
	for name, b := range map[string][]byte{
		"garbage":         bytes.Repeat([]byte{0xa5, 0x5a}, 600),
		"negative length": {0xff, 0xff, 0xff, 0xff, 0, 0},
		"least length":    {0x80, 0, 0, 0},
		"too long":        {0, 0x10, 0, 0},
		"empty frame":     {0, 0, 0, 0},
		"short request":   frameOf(full[4:30]),
		"huge password":   frameOf(append(append([]byte{}, full[4:28]...), 0x7f, 0xff, 0xff, 0xff)),
		"unknown word":    []byte("wxyz"),
		"tls hello":       {0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			c := s.dial()
			c.t = t
			c.write(b)
			c.closed()
		})
	}
	if s.connect().data("/") != "" {
		t.Error("another connection is disturbed")
	}
}

// TestBadFrameEndsTheConnection: a frame that is too short for a request or too long
// closes the connection, after the replies to earlier requests.
func TestBadFrameEndsTheConnection(t *testing.T) {
	s := start(t, Options{})
	for name, b := range map[string][]byte{
		"empty":    {0, 0, 0, 0},
		"short":    {0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0},
		"negative": {0xff, 0xff, 0xff, 0xfe},
		"too long": {0, 0x10, 0, 0},
		"a word":   []byte("ruok"),
	} {
		t.Run(name, func(t *testing.T) {
			c := s.connect()
			c.t = t
			c.write(append(request(1, wire.OpGetData, &wire.PathWatchRequest{Path: "/"}), b...))
			if h := c.reply(nil); h.Xid != 1 {
				t.Fatalf("%+v", h)
			}
			c.closed()
		})
	}
}

// TestLongestFrame: the longest frame that is allowed is read and carried out.
func TestLongestFrame(t *testing.T) {
	c := start(t, Options{}).connect()
	c.create("/a", "")
	q := wire.SetDataRequest{Path: "/a", Version: -1}
	overhead := len(request(1, wire.OpSetData, &q)) - 4
	q.Data = bytes.Repeat([]byte{7}, wire.FrameMax-overhead)
	c.must(wire.OpSetData, &q, nil)
	if got := c.data("/a"); len(got) != len(q.Data) {
		t.Errorf("%d bytes came back of %d", len(got), len(q.Data))
	}
	q.Data = append(q.Data, 7)
	c.send(wire.OpSetData, &q)
	c.closed()
}

// TestUnknownOperations: an operation that clients may not request is answered with
// Unimplemented and zxid -1. Then the connection is closed, and the session lives on.
func TestUnknownOperations(t *testing.T) {
	s := start(t, Options{})
	for _, op := range []wire.OpCode{0, 10, -1, -2, -10, 13, 20, 23, 99, 108, 1 << 30, -1 << 31} {
		t.Run(op.String(), func(t *testing.T) {
			c := s.connect()
			c.t = t
			c.write(append(raw(5, op, 0, 0, 0x27, 0x10), request(6, wire.OpPing, nil)...))
			if h := c.reply(nil); h != (wire.ReplyHeader{Xid: 5, Zxid: -1, Err: wire.ErrUnimplemented}) {
				t.Errorf("%+v", h)
			}
			c.closed()
			if got := s.resume(c.session.Session, c.session.Password); got.Session != c.session.Session {
				t.Errorf("session is gone: %+v", got)
			}
		})
	}
}

// TestUnknownOperationKeepsItsPlace: an unknown operation after a write in process is
// answered after the earlier replies.
func TestUnknownOperationKeepsItsPlace(t *testing.T) {
	c := start(t, Options{}).connect()
	c.write(append(request(1, wire.OpCreate, create("/a", "")), raw(2, 99)...))
	if h := c.reply(&wire.PathResponse{}); h.Xid != 1 || h.Err != wire.OK {
		t.Errorf("%+v", h)
	}
	if h := c.reply(nil); h.Xid != 2 || h.Err != wire.ErrUnimplemented {
		t.Errorf("%+v", h)
	}
	c.closed()
}

// TestUndecodableRecords: a record that cannot be decoded is answered with
// MarshallingError, and the connection continues. As in ZooKeeper such a write uses a
// zxid, except for a reconfig.
func TestUndecodableRecords(t *testing.T) {
	c := start(t, Options{}).connect()
	last := c.must(wire.OpPing, nil, nil).Zxid
	null := []byte{0xff, 0xff, 0xff, 0xff}
	length := func(n int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }
	path := append(length(2), "/a"...)
	cat := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for _, b := range []struct {
		name string
		op   wire.OpCode
		body []byte
	}{
		{"create without a body", wire.OpCreate, nil},
		{"create with a null path", wire.OpCreate, cat(null, null, null, length(0))},
		{"create cut short", wire.OpCreate, cat(path, length(5), []byte("abc"))},
		{"path of length -2", wire.OpGetData, cat(length(-2), []byte{0})},
		{"path longer than the frame", wire.OpGetData, length(0x7fffffff)},
		{"null path", wire.OpGetData, cat(null, []byte{0})},
		{"data of length -5", wire.OpSetData, cat(path, length(-5), length(0))},
		{"acl count beyond the frame", wire.OpSetACL, cat(path, length(0x7fffffff))},
		{"acl with a null id", wire.OpSetACL, cat(path, length(1), length(31), length(5), []byte("world"), null, length(0))},
		{"delete without version", wire.OpDelete, path},
		{"multi cut short", wire.OpMulti, cat(length(1), []byte{0})},
		{"multi with a setACL", wire.OpMulti, cat(length(7), []byte{0}, null)},
		{"multiRead with nothing", wire.OpMultiRead, nil},
		{"addWatch of mode 2", wire.OpAddWatch, cat(path, length(2))},
		{"checkWatches of type 9", wire.OpCheckWatches, cat(path, length(9))},
		{"setWatches with null lists", wire.OpSetWatches, cat(make([]byte, 8), null, null, null)},
		{"getEphemerals without a body", wire.OpGetEphemerals, nil},
		{"reconfig without a body", wire.OpReconfig, nil},
		{"sync without a path", wire.OpSync, nil},
		{"exists without the flag", wire.OpExists, path},
	} {
		c.write(raw(9, b.op, b.body...))
		if b.op.IsWrite() && b.op != wire.OpReconfig {
			last++
		}
		if h := c.reply(nil); h.Xid != 9 || h.Err != wire.ErrMarshalling || h.Zxid != last {
			t.Errorf("%s: %+v, want zxid %v", b.name, h, last)
		}
	}
}

// TestNullPathHasNoWatch: there is no watch on a null path, and asking for one uses no zxid, as in ZooKeeper 3.9.
func TestNullPathHasNoWatch(t *testing.T) {
	c := start(t, Options{}).connect()
	last := c.must(wire.OpPing, nil, nil).Zxid
	for _, op := range []wire.OpCode{wire.OpCheckWatches, wire.OpRemoveWatches} {
		c.write(raw(9, op, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, byte(wire.WatcherAny)))
		if h := c.reply(nil); h.Xid != 9 || h.Err != wire.ErrNoWatcher || h.Zxid != last {
			t.Errorf("%v: %+v, want zxid %v", op, h, last)
		}
	}
}

// TestUndecodableCredentials: a packet with credentials that cannot be decoded closes its
// connection without a reply, as in ZooKeeper.
func TestUndecodableCredentials(t *testing.T) {
	s := start(t, Options{})
	for _, whole := range []struct {
		op   wire.OpCode
		body []byte
	}{
		{wire.OpAuth, wire.Append(nil, auth(wire.Text("digest"), []byte("a:b")))},
		{wire.OpSASL, wire.Append(nil, &wire.SASLRequest{Token: []byte("x")})},
		{wire.OpSASL, []byte{0xff, 0xff, 0xff, 0xff, 0}}, // a null token
	} {
		c := s.connect()
		c.write(raw(1, whole.op, whole.body[:len(whole.body)-1]...))
		c.closed()
	}
}

// TestTTLWithoutTTLMode: a createTTL whose mode has no TTL is refused. ZooKeeper crashes
// on it, and then again whenever it reads its log.
func TestTTLWithoutTTLMode(t *testing.T) {
	o := Options{Config: testConfig()}
	o.Config.Tree.ExtendedTypes = true
	s := start(t, o)
	o.FS = s.opt.FS
	c := s.connect()
	for flags := range int32(5) {
		q := wire.CreateTTLRequest{CreateRequest: *create("/t", ""), TTL: -1}
		q.Flags = flags
		if h := c.call(wire.OpCreateTTL, &q, nil); h.Err != wire.ErrBadArguments {
			t.Errorf("flags %d: %v", flags, h.Err)
		}
	}
	if err := s.end(); err != nil {
		t.Fatal(err)
	}
	start(t, o).connect()
}

// TestXidsAreEchoed: replies carry the xid of the request, whatever it is.
func TestXidsAreEchoed(t *testing.T) {
	c := start(t, Options{}).connect()
	for _, xid := range []int32{0, -3, -1, -8, 1 << 30, -1 << 31, 1<<31 - 1} {
		for _, op := range []wire.OpCode{wire.OpExists, wire.OpSetData} {
			q := wire.Record(&wire.PathWatchRequest{Path: "/"})
			if op == wire.OpSetData {
				q = &wire.SetDataRequest{Path: "/", Version: -1}
			}
			c.write(request(xid, op, q))
			if h := c.reply(nil); h.Xid != xid || h.Err != wire.OK {
				t.Errorf("%v with xid %d: %+v", op, xid, h)
			}
		}
	}
	c.write(request(77, wire.OpPing, nil))
	if h := c.reply(nil); h.Xid != wire.XidPing {
		t.Errorf("ping: %+v", h)
	}
}
