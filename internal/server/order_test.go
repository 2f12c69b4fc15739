package server

import (
	"fmt"
	"testing"

	"bellwether/wire"
)

// TestPipelinedReadsSeeTheWriteBeforeThem: a connection that pipelines writes and reads
// reads each of its own writes, and never a later one.
func TestPipelinedReadsSeeTheWriteBeforeThem(t *testing.T) {
	c := start(t, Options{}).connect()
	c.create("/a", "start")
	const rounds = 200
	var out []byte
	for i := range int32(rounds) {
		out = append(out, request(3*i, wire.OpSetData, &wire.SetDataRequest{Path: "/a", Data: fmt.Append(nil, i), Version: -1})...)
		out = append(out, request(3*i+1, wire.OpGetData, &wire.PathWatchRequest{Path: "/a"})...)
		out = append(out, request(3*i+2, wire.OpSync, &wire.PathRequest{Path: "/a"})...)
	}
	c.write(out)
	zxid := wire.Zxid(0)
	for i := range int32(rounds) {
		var st wire.StatResponse
		var data wire.DataResponse
		for k, r := range []wire.Record{&st, &data, &wire.PathResponse{}} {
			h := c.reply(r)
			if h.Xid != 3*i+int32(k) || h.Err != wire.OK || h.Zxid < zxid {
				t.Fatalf("round %d, reply %d: %+v after zxid %v", i, k, h, zxid)
			}
			zxid = h.Zxid
		}
		if string(data.Data) != fmt.Sprint(i) {
			t.Fatalf("round %d read %q", i, data.Data)
		}
	}
}

// TestEventComesBetweenReadAndWrite: the event of a watch is sent after the reply that
// set the watch and before the reply to the write that fired it, even if all are
// pipelined.
func TestEventComesBetweenReadAndWrite(t *testing.T) {
	c := start(t, Options{}).connect()
	c.create("/a", "x")
	const rounds = 100
	var out []byte
	for i := range int32(rounds) {
		out = append(out, request(2*i, wire.OpGetData, &wire.PathWatchRequest{Path: "/a", Watch: true})...)
		out = append(out, request(2*i+1, wire.OpSetData, &wire.SetDataRequest{Path: "/a", Version: -1})...)
	}
	c.write(out)
	for i := range int32(rounds) {
		if h := c.reply(nil); h.Xid != 2*i {
			t.Fatalf("round %d: read: %+v", i, h)
		}
		var e wire.WatcherEvent
		h := c.reply(&e)
		if h.Xid != wire.XidEvent || e.Type != wire.EventNodeDataChanged || e.Path != "/a" {
			t.Fatalf("round %d: event: %+v %+v", i, h, e)
		}
		if w := c.reply(nil); w.Xid != 2*i+1 || w.Zxid != h.Zxid {
			t.Fatalf("round %d: write: %+v, event's zxid %v", i, w, h.Zxid)
		}
	}
}
