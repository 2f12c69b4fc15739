package server

import (
	"encoding/binary"
	"io"
	"net"
	"testing"

	"bellwether/wire"
)

// FuzzRequest sends any operation with any body, then a ping. Either both are answered
// once, in order, or the connection is closed. The server continues in both cases.
func FuzzRequest(f *testing.F) {
	for op := int32(-12); op < 24; op++ {
		f.Add(op, []byte{})
		f.Add(op, []byte{0, 0, 0, 1, '/', 0, 0, 0, 0, 0, 0, 0, 0, 0})
	}
	for op := int32(100); op < 110; op++ {
		f.Add(op, []byte{0, 0, 0, 0, 0, 0, 0, 6, 'd', 'i', 'g', 'e', 's', 't', 0xff, 0xff, 0xff, 0xff})
	}
	f.Add(int32(wire.OpCreate), wire.Append(nil, create("/a", "x")))
	f.Add(int32(wire.OpMulti), wire.Append(nil, &wire.MultiRequest{Ops: []wire.Op{{Type: wire.OpCreate, Request: create("/b", "x")}}}))
	f.Add(int32(wire.OpMultiRead), wire.Append(nil, &wire.MultiRequest{Ops: []wire.Op{{Type: wire.OpGetData, Request: &wire.PathWatchRequest{Path: "/"}}}}))
	f.Add(int32(wire.OpSetWatches2), wire.Append(nil, &wire.SetWatches2Request{Persistent: []string{"/a"}}))
	s := start(f, Options{Log: quiet()})
	f.Fuzz(func(t *testing.T, op int32, body []byte) {
		if len(body) > 1<<16 {
			return
		}
		here := &running{Server: s.Server, t: t}
		c := here.connect()
		c.nc.(*net.TCPConn).SetLinger(0) // so that no socket remains in TIME_WAIT
		defer c.nc.Close()
		c.write(append(raw(1, wire.OpCode(op), body...), request(2, wire.OpPing, nil)...))
		answered := 0
		for {
			b, err := wire.ReadFrame(c.nc, nil, 1<<24)
			if err == io.EOF && answered <= 1 {
				return
			}
			if err != nil {
				t.Fatalf("op %d: %v after %d answers", op, err, answered)
			}
			switch xid := int32(binary.BigEndian.Uint32(b)); {
			case xid == wire.XidPing && answered == 0 && wire.OpCode(op) == wire.OpPing:
				answered++
			case xid == wire.XidPing && answered == 1:
				return
			case xid == 1 && answered == 0:
				answered++
			case xid == wire.XidEvent:
			default:
				t.Fatalf("op %d: answer to xid %d after %d answers", op, xid, answered)
			}
		}
	})
}
