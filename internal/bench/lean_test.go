package bench

import (
	"bufio"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"bellwether/wire"
	"bellwether/zk"
)

// TestLeanChecksReplies shows that a load without the client library counts a reply only if it is
// the one that is due and has no error.
func TestLeanChecksReplies(t *testing.T) {
	data := &wire.DataResponse{Data: []byte("x")}
	for _, c := range []struct {
		what    string
		replies [][]wire.Record
		want    string
	}{
		{"two replies in order", [][]wire.Record{{&wire.ReplyHeader{Xid: 1}, data}, {&wire.ReplyHeader{Xid: 2}, data}}, ""},
		{"a reply to another request", [][]wire.Record{{&wire.ReplyHeader{Xid: 2}, data}}, "reply 2 instead of 1"},
		{"an error", [][]wire.Record{{&wire.ReplyHeader{Xid: 1, Err: zk.ErrNoNode}}}, zk.ErrNoNode.Error()},
		{"a lost connection", nil, zk.ErrConnectionLoss.Error()},
	} {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			requests := bufio.NewReader(server)
			for range 2 {
				if _, err := wire.ReadFrame(requests, nil, FrameMax); err != nil {
					return
				}
			}
			for _, records := range c.replies {
				server.Write(wire.AppendFrame(nil, records...))
			}
		}()
		l := &leanConn{load: Load{Kind: Read, Outstanding: 2, Keys: 1, Lean: &Lean{}}, conn: client, replies: bufio.NewReader(client)}
		took := newLatencies()
		// The two requests of the first batch are sent before the end, and no more.
		l.sent = append(l.sent, time.Now(), time.Now())
		l.request()
		l.request()
		go client.Write(l.batch)
		err := l.run(time.Now(), took)
		if c.want == "" && (err != nil || took.h.TotalCount() != 2) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, %d replies counted, want %q", c.what, err, took.h.TotalCount(), c.want)
		}
		if lost := errors.Is(err, zk.ErrConnectionLoss); lost != (c.replies == nil) {
			t.Errorf("%s: %v", c.what, err)
		}
		client.Close()
	}
}

// TestLeanHasNoRate shows that a load that cannot be sent without the client library is
// refused.
func TestLeanHasNoRate(t *testing.T) {
	l := Load{Setting: Setting{Duration: time.Second}, Kind: Read, Connections: 1, Outstanding: 1, Keys: 1, Lean: &Lean{}}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
	l.Rate = 1
	if err := l.Check(); err == nil {
		t.Error("a rate is accepted")
	}
	l.Rate, l.Kind = 0, Create
	if err := l.Check(); err == nil {
		t.Error("creates are accepted")
	}
}
