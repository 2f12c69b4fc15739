package relay

import (
	"testing"

	"bellwether/internal/shadow"
	"bellwether/wire"
)

// TestPartialRepliesAreBounded: replies that have arrived in part count as waiting bytes. When there is no room, the reply that grows is not
// kept, and counted as not compared.
func TestPartialRepliesAreBounded(t *testing.T) {
	const size, links = 15 << 20, 6
	r, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	reply := wire.AppendFrame(nil, &wire.ReplyHeader{Xid: 1, Zxid: 9}, &wire.DataResponse{Data: make([]byte, size)})
	var all []*link
	for range links {
		l := &link{relay: r, tap: shadow.NewTap(""), lane: r.opened()}
		l.requested(wire.AppendFrame(nil, &wire.ConnectRequest{TimeoutMS: 1000, Password: make([]byte, wire.PasswordLen)}))
		l.answered(wire.AppendFrame(nil, &wire.ConnectResponse{TimeoutMS: 1000, Password: make([]byte, wire.PasswordLen)}))
		l.requested(wire.AppendFrame(nil, &wire.RequestHeader{Xid: 1, Op: wire.OpGetData}, &wire.PathWatchRequest{Path: "/n"}))
		for at := 0; at < size; at += chunk {
			l.answered(reply[at : at+chunk])
		}
		if all = append(all, l); r.waiting > waitingBytesMax {
			t.Fatalf("%d bytes wait", r.waiting)
		}
	}
	if kept := int64(waitingBytesMax / size * size); r.waiting < kept {
		t.Errorf("%d bytes wait, although there is room for %d", r.waiting, kept)
	}
	last := all[links-1]
	last.answered(reply[size:])
	r.endLanes()
	r.all.Wait()
	if n := r.Report().Operations["getData"].NotCompared[shadow.NotCut]; n != 1 {
		t.Errorf("%d replies are counted as cut", n)
	}
	for _, l := range all {
		r.hold(-l.held)
	}
	if r.waiting != 0 {
		t.Errorf("%d bytes wait at the end", r.waiting)
	}
}
