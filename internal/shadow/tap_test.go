package shadow_test

import (
	"bytes"
	"reflect"
	"slices"
	"testing"

	"bellwether/internal/shadow"
	"bellwether/wire"
)

func frame(records ...wire.Record) []byte { return wire.AppendFrame(nil, records...) }

func request(xid int32, op wire.OpCode, body ...wire.Record) []byte {
	return frame(append([]wire.Record{&wire.RequestHeader{Xid: xid, Op: op}}, body...)...)
}

func reply(xid int32, body ...wire.Record) []byte {
	return frame(append([]wire.Record{&wire.ReplyHeader{Xid: xid, Zxid: replyZxid}}, body...)...)
}

var (
	hello   = frame(&wire.ConnectRequest{TimeoutMS: 1000, Password: make([]byte, wire.PasswordLen), HasReadOnly: true})
	welcome = frame(&wire.ConnectResponse{TimeoutMS: 1000, Session: session, Password: make([]byte, wire.PasswordLen), HasReadOnly: true})
)

// conversation returns the bytes of a connection with each kind of packet.
func conversation() (client, server []byte) {
	client = slices.Concat(hello,
		request(1, wire.OpGetData, read("/a")),
		request(wire.XidAuth, wire.OpAuth, &wire.AuthRequest{Scheme: wire.Text("digest"), Auth: []byte("bob:pw")}),
		request(2, wire.OpExists, read("/b")),
		request(5, wire.OpPing), // servers answer with the xid of pings, whatever the client has sent
		request(3, wire.OpDelete, &wire.PathVersionRequest{Path: "/c", Version: -1}))
	server = slices.Concat(welcome,
		reply(wire.XidAuth), // overtakes
		reply(1, &wire.DataResponse{Data: []byte("x"), Stat: stat()}),
		reply(wire.XidEvent, &wire.WatcherEvent{Type: wire.EventNodeCreated, State: 3, Path: "/b"}),
		reply(wire.XidPing),
		reply(2, &wire.StatResponse{Stat: stat()}),
		reply(3))
	return client, server
}

// TestPairs splits a conversation at every byte. The pairs are always the same.
func TestPairs(t *testing.T) {
	client, server := conversation()
	for size := 1; size < len(client)+len(server); size++ {
		tap := shadow.NewTap("")
		var ops []wire.OpCode
		var credentials []int
		for part := range slices.Chunk(client, size) {
			tap.FromClient(part)
		}
		for part := range slices.Chunk(server, size) {
			tap.FromServer(bytes.Clone(part), func(p shadow.Pair) {
				ops = append(ops, p.Op)
				credentials = append(credentials, len(p.Identity.Credentials))
				if p.Session != session || p.Header.Zxid != replyZxid {
					t.Errorf("%+v", p)
				}
				if _, why := shadow.Plan(&p); why != "" && p.Op != wire.OpPing {
					t.Errorf("%v: %s", p.Op, why)
				}
			})
		}
		if want := []wire.OpCode{wire.OpAuth, wire.OpGetData, wire.OpPing, wire.OpExists, wire.OpDelete}; !slices.Equal(ops, want) || tap.Stopped() != "" {
			t.Fatalf("in pieces of %d: %v, %q", size, ops, tap.Stopped())
		}
		if want := []int{1, 0, 1, 1, 1}; !slices.Equal(credentials, want) {
			t.Fatalf("auth packets before each request: %v, want %v", credentials, want)
		}
	}
}

// TestStops has connections that cannot be decoded.
func TestStops(t *testing.T) {
	refused := frame(&wire.ConnectResponse{Password: make([]byte, wire.PasswordLen)})
	for _, c := range []struct {
		name           string
		client, server []byte
		want           shadow.Stop
	}{
		{"a word", []byte("ruok"), []byte("imok"), shadow.StopWord},
		{"TLS", []byte{22, 3, 1, 0, 200, 1}, nil, shadow.StopTLS},
		{"a negative length", []byte{0xff, 0, 0, 0}, nil, shadow.StopBytes},
		{"no handshake", frame(&wire.RequestHeader{}), nil, shadow.StopBytes},
		{"a short request", slices.Concat(hello, []byte{0, 0, 0, 1, 0}), nil, shadow.StopBytes},
		{"a short reply", hello, slices.Concat(welcome, []byte{0, 0, 0, 0}), shadow.StopBytes},
		{"a refusal", hello, refused, shadow.StopRefused},
		{"a reply without a request", hello, slices.Concat(welcome, reply(7)), shadow.StopUnmatched},
	} {
		tap := shadow.NewTap("")
		tap.FromClient(c.client)
		tap.FromServer(c.server, func(shadow.Pair) { t.Errorf("%s: a pair", c.name) })
		tap.FromClient(hello) // ignored
		if tap.Stopped() != c.want {
			t.Errorf("%s: %q, want %q", c.name, tap.Stopped(), c.want)
		}
	}
}

// TestBounds: long frames and many requests are followed without keeping their content.
func TestBounds(t *testing.T) {
	tap := shadow.NewTap("")
	tap.FromClient(hello)
	tap.FromServer(welcome, nil)
	large := &wire.SetDataRequest{Path: "/n", Data: make([]byte, 1<<20), Version: -1}
	for xid := range int32(4) {
		tap.FromClient(request(xid, wire.OpSetData, large))
	}
	tap.FromClient(request(4, wire.OpSetData, &wire.SetDataRequest{Path: "/n", Data: make([]byte, 5<<20)}))
	var cut []bool
	for xid := range int32(5) {
		tap.FromServer(reply(xid, &wire.StatResponse{Stat: stat()}), func(p shadow.Pair) { cut = append(cut, p.Cut) })
	}
	if want := []bool{false, true, true, true, true}; !slices.Equal(cut, want) {
		t.Errorf("not kept: %v, want %v", cut, want)
	}
	many := slices.Repeat(request(1, wire.OpGetData, read("/a")), 1<<16+1)
	if tap.FromClient(many); tap.Stopped() != shadow.StopMany {
		t.Errorf("many requests: %q", tap.Stopped())
	}
}

// TestIdentities: SASL and too many auth packets are noted, and the key tells identities apart.
func TestIdentities(t *testing.T) {
	tap := shadow.NewTap("")
	tap.FromClient(hello)
	tap.FromServer(welcome, nil)
	tap.FromClient(request(1, wire.OpSASL, &wire.SASLRequest{}))
	for range 20 {
		tap.FromClient(request(wire.XidAuth, wire.OpAuth, &wire.AuthRequest{Scheme: wire.Text("digest"), Auth: []byte("a:b")}))
	}
	tap.FromClient(request(2, wire.OpExists, read("/a")))
	tap.FromServer(reply(2, &wire.StatResponse{}), func(p shadow.Pair) {
		if !p.Identity.SASL || !p.Identity.Many || len(p.Identity.Credentials) != 16 {
			t.Errorf("%+v", p.Identity)
		}
	})
	one := shadow.Identity{Credentials: []shadow.Credential{{Scheme: "a", Auth: []byte(`b""c`)}}}
	two := shadow.Identity{Credentials: []shadow.Credential{{Scheme: "a", Auth: []byte("b")}, {Scheme: "", Auth: []byte("c")}}}
	if one.Key() == two.Key() {
		t.Error("two identities have one key")
	}
}

// TestReportCounts counts each outcome, and keeps a bounded number of differences.
func TestReportCounts(t *testing.T) {
	r := shadow.NewReport()
	r.Count(wire.OpGetData, "", nil)
	r.Count(wire.OpGetData, shadow.UnsureChanged, nil)
	r.Count(77, shadow.NotState, nil)
	before := r.Clone()
	for range 600 {
		r.Count(wire.OpExists, shadow.UnsureChanged, make([]shadow.Found, 2))
	}
	if r.Differing() != 600 || len(r.Differences) != 1000 || r.More != 200 {
		t.Errorf("%d differing, %d kept, %d more", r.Differing(), len(r.Differences), r.More)
	}
	want := shadow.Tally{Replies: 2, Equal: 1, NotCompared: map[shadow.Reason]int64{shadow.UnsureChanged: 1}}
	if !reflect.DeepEqual(*before.Operations["getData"], want) || before.Operations["unknown"].Replies != 1 || before.Differing() != 0 {
		t.Errorf("%+v", before)
	}
	var b bytes.Buffer
	if err := before.Print(&b); err != nil || !bytes.Contains(b.Bytes(), []byte("not compared: 1: "+string(shadow.UnsureChanged))) {
		t.Errorf("%v\n%s", err, &b)
	}
}

// FuzzTap gives a tap any bytes in both directions, in any pieces, and judges any answer. Nothing panics.
func FuzzTap(f *testing.F) {
	client, server := conversation()
	f.Add(client, server, []byte{}, uint8(7))
	for _, s := range scenarios() {
		var records []wire.Record
		if s.request != nil {
			records = append(records, s.request)
		}
		f.Add(slices.Concat(hello, request(1, s.op, records...)), slices.Concat(welcome, reply(1, s.reply)), wire.Append(nil, s.answer), uint8(0))
	}
	f.Add([]byte("ruok"), []byte("imok"), []byte{}, uint8(1))
	f.Fuzz(func(t *testing.T, client, server, answer []byte, size uint8) {
		tap := shadow.NewTap("")
		pieces := func(b []byte, f func([]byte)) {
			for part := range slices.Chunk(b, int(size)+1) {
				f(bytes.Clone(part))
			}
		}
		pieces(client, tap.FromClient)
		report := shadow.NewReport()
		pieces(server, func(b []byte) {
			tap.FromServer(b, func(p shadow.Pair) {
				checks, why := shadow.Plan(&p)
				for _, c := range checks {
					v := c.Judge(wire.ReplyHeader{Zxid: p.Header.Zxid}, answer)
					if v.Result == shadow.Differs && len(v.Differences) == 0 || v.Result == shadow.Unsure && v.Reason == "" {
						t.Errorf("%+v", v)
					}
					parent := c.Parent()
					parent.Request()
					c.JudgeParent(wire.ReplyHeader{Zxid: p.Header.Zxid}, answer)
				}
				report.Count(p.Op, why, nil)
			})
		})
	})
}

// TestCutDropsAReply cuts a reply, which is then emitted as one that is too long, and a watch event, which stays.
func TestCutDropsAReply(t *testing.T) {
	tap := shadow.NewTap("")
	tap.FromClient(slices.Concat(hello, request(1, wire.OpGetData, read("/a"))))
	var pairs []shadow.Pair
	emit := func(p shadow.Pair) { pairs = append(pairs, p) }
	tap.FromServer(welcome, emit)
	event := reply(wire.XidEvent, &wire.WatcherEvent{Type: wire.EventNodeCreated, State: 3, Path: "/" + string(make([]byte, 1000))})
	answer := reply(1, &wire.DataResponse{Data: make([]byte, 1000), Stat: stat()})
	for _, frame := range [][]byte{event, answer} {
		tap.FromServer(frame[:500], emit)
		tap.Cut()
		if n := tap.Assembling(); (n < 100) != (&frame[0] == &answer[0]) {
			t.Errorf("%d bytes stay", n)
		}
		tap.FromServer(frame[500:], emit)
		if n := tap.Assembling(); n != 0 {
			t.Errorf("%d bytes stay between frames", n)
		}
	}
	if tap.Stopped() != "" || len(pairs) != 1 || !pairs[0].Cut || len(pairs[0].Events) != 1 {
		t.Errorf("stopped %q: %+v", tap.Stopped(), pairs)
	}
}
