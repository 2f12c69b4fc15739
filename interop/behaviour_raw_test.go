package interop

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"time"

	"bellwether/interop/target"
	"bellwether/wire"
	"bellwether/zk"
)

// rawConn sends valid and invalid frames to a server and records the replies byte for byte,
// except zxids, times and session ids.
type rawConn struct {
	s       *seen
	conn    net.Conn
	in      *bufio.Reader
	session wire.SessionID
	ops     map[int32]wire.OpCode
	ended   bool // the server has closed the connection or does not answer
}

// dialRaw opens a connection and a session; req varies the handshake.
func dialRaw(s *seen, req *wire.ConnectRequest) *rawConn {
	s.t.Helper()
	r := dialOnly(s)
	if req == nil {
		req = &wire.ConnectRequest{TimeoutMS: behaviourSession, Password: make([]byte, wire.PasswordLen), HasReadOnly: true}
	}
	r.write(wire.AppendFrame(nil, req))
	b, err := wire.ReadFrame(r.in, nil, wire.FrameMax)
	if err != nil {
		s.t.Fatalf("%s: handshake: %v", s.server.Kind, err)
	}
	var resp wire.ConnectResponse
	if err := wire.Decode(b, &resp); err != nil {
		s.t.Fatal(err)
	}
	r.session = resp.Session
	return r
}

func dialOnly(s *seen) *rawConn {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.server.Addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(behaviourTimeout))
	return &rawConn{s: s, conn: conn, in: bufio.NewReader(conn), ops: map[int32]wire.OpCode{}}
}

func (r *rawConn) write(b []byte) {
	r.conn.Write(b) // a write error shows in the next read
}

// send sends one request; if req is nil, it has only a header.
func (r *rawConn) send(xid int32, op wire.OpCode, req wire.Record) {
	r.ops[xid] = op
	h := &wire.RequestHeader{Xid: xid, Op: op}
	if req == nil {
		r.write(wire.AppendFrame(nil, h))
		return
	}
	r.write(wire.AppendFrame(nil, h, req))
}

// sendBytes sends a request with the given bytes as its body.
func (r *rawConn) sendBytes(xid int32, op wire.OpCode, body ...byte) {
	r.send(xid, op, rawBody(body))
}

// rawBody is a record of arbitrary bytes.
type rawBody []byte

func (b rawBody) Code(c *wire.Coder) {
	for i := range b {
		c.Byte(&b[i])
	}
}

// sayFrame records the next frame, or that the connection ended. It reports whether the
// frame was a reply.
func (r *rawConn) sayFrame(what string) bool {
	b, err := wire.ReadFrame(r.in, nil, 16<<20)
	var late net.Error
	switch {
	case errors.As(err, &late) && late.Timeout():
		r.s.say("%s: no answer", what)
		r.ended = true
		return false
	case err != nil:
		r.s.say("%s: closed", what)
		r.ended = true
		return false
	}
	var h wire.ReplyHeader
	if err := wire.Decode(b, &h); err != nil {
		r.s.say("%s: short frame %x", what, b)
		return false
	}
	if h.Xid == wire.XidEvent {
		var e wire.WatcherEvent
		wire.Decode(b[wire.ReplyHeaderLen:], &e)
		r.s.say("%s: event %v state %d %s", what, e.Type, e.State, strings.TrimPrefix(e.Path, r.s.root))
		return false
	}
	r.s.say("%s: xid %d zxid %s err %v body %s", what, h.Xid, r.zxidClass(h.Zxid), h.Err, r.body(h.Xid, b[wire.ReplyHeaderLen:]))
	return true
}

// zxidClass distinguishes 0 and -1 from real zxids.
func (r *rawConn) zxidClass(z wire.Zxid) string {
	if z <= 0 {
		return fmt.Sprint(int64(z))
	}
	if r.s.blind {
		return "some"
	}
	return r.s.z(z)
}

// body returns a reply's body as text, with normalised stats.
func (r *rawConn) body(xid int32, b []byte) string {
	var rec wire.Record
	switch r.ops[xid] {
	case wire.OpExists, wire.OpSetData, wire.OpSetACL:
		rec = new(wire.StatResponse)
	case wire.OpGetData:
		rec = new(wire.DataResponse)
	case wire.OpCreate2, wire.OpCreateTTL, wire.OpCreateContainer:
		rec = new(wire.PathStatResponse)
	case wire.OpMulti, wire.OpMultiRead:
		rec = new(wire.MultiResponse)
	case wire.OpGetChildren:
		rec = new(wire.ChildrenResponse)
	case wire.OpGetChildren2:
		rec = new(wire.ChildrenStatResponse)
	case wire.OpGetEphemerals:
		rec = new(wire.EphemeralsResponse)
	case wire.OpGetACL:
		rec = new(wire.ACLResponse)
	case wire.OpWhoAmI:
		rec = new(wire.WhoAmIResponse)
	default:
		return fmt.Sprintf("%q", b)
	}
	if len(b) == 0 {
		return "none"
	}
	if err := wire.Decode(b, rec); err != nil {
		return fmt.Sprintf("undecodable %x", b)
	}
	return r.record(rec)
}

// record returns a reply's record as text.
func (r *rawConn) record(rec wire.Record) string {
	switch v := rec.(type) {
	case *wire.MultiResponse:
		var results []string
		for _, one := range v.Results {
			results = append(results, fmt.Sprintf("%v %v %s", one.Type, one.Err, r.record(one.Response)))
		}
		return fmt.Sprintf("results %q", results)
	case *wire.PathResponse:
		return v.Path
	case *wire.StatResponse:
		return r.s.stat(v.Stat)
	case *wire.DataResponse:
		return fmt.Sprintf("%q %s", v.Data, r.s.stat(v.Stat))
	case *wire.PathStatResponse:
		return v.Path + " " + r.s.stat(v.Stat)
	case *wire.ChildrenResponse:
		return fmt.Sprint(sorted(v.Children))
	case *wire.ChildrenStatResponse:
		return fmt.Sprint(sorted(v.Children), r.s.stat(v.Stat))
	case *wire.EphemeralsResponse:
		return fmt.Sprint(sorted(v.Paths))
	case *wire.ACLResponse:
		return fmt.Sprintf("%q %s", v.ACL, r.s.stat(v.Stat))
	case *wire.WhoAmIResponse:
		var ids []string
		for _, id := range v.Clients {
			ids = append(ids, fmt.Sprintf("%q", id))
		}
		return fmt.Sprint(sorted(ids)) // ZooKeeper lists the sessions in random order
	}
	return ""
}

// sayAlive records whether the connection still answers.
func (r *rawConn) sayAlive() {
	r.send(99, wire.OpSync, &wire.NullPathRequest{Path: wire.Text("/")})
	r.sayFrame("still there")
}

// oddPaths are invalid paths of every kind, and some unusual valid ones.
var oddPaths = []string{
	"", "/", "a", "/a/", "//", "/a//b", "/.", "/..", "/...", "/.b", "/a/.", "/a/..", "/a/./b",
	"/\x00", "/\x01", "/\x1f", "/ ", "/\x7f", "/\u009f", "/\u00a0", "/\ud7ff", "/\ue000", "/\uf8ff", "/\uf900",
	"/\uffef", "/\ufff0", "/\ufffd", "/😀", "/\xff", "/\xc3", "zookeeper", "/zookeeper/", "/zookeeper/x/y",
}

func seeRawPaths(s *seen) {
	r := dialRaw(s, nil)
	xid := int32(0)
	do := func(what string, op wire.OpCode, req wire.Record) {
		xid++
		r.send(xid, op, req)
		r.sayFrame(what)
	}
	for _, p := range oddPaths {
		full := p
		if strings.HasPrefix(p, "/") && !strings.HasPrefix(p, "/zookeeper") && p != "/" {
			full = s.root + p
		}
		what := fmt.Sprintf("%q", p)
		do("exists "+what, wire.OpExists, &wire.PathWatchRequest{Path: full})
		do("getData "+what, wire.OpGetData, &wire.PathWatchRequest{Path: full})
		do("setData "+what, wire.OpSetData, &wire.SetDataRequest{Path: full, Version: 12345})
		do("setACL "+what, wire.OpSetACL, &wire.SetACLRequest{Path: full, ACL: wire.OpenACL(), Version: 12345})
		do("getACL "+what, wire.OpGetACL, &wire.PathRequest{Path: full})
		do("sync "+what, wire.OpSync, &wire.NullPathRequest{Path: wire.Text(full)})
		if p == "/" || p == "" {
			continue
		}
		do("create "+what, wire.OpCreate, &wire.CreateRequest{Path: full, ACL: wire.OpenACL()})
		do("delete "+what, wire.OpDelete, &wire.PathVersionRequest{Path: full, Version: -1})
		do("create sequential "+what, wire.OpCreate, &wire.CreateRequest{Path: full, ACL: wire.OpenACL(), Flags: wire.FlagEphemeralSequential})
	}
}

func seeRawRequests(s *seen) {
	null := []byte{0xff, 0xff, 0xff, 0xff}
	path := wire.Append(nil, &wire.PathRequest{Path: s.at("/none")})
	r := dialRaw(s, nil)
	xid := int32(100)
	do := func(what string, op wire.OpCode, body ...byte) {
		xid++
		r.sendBytes(xid, op, body...)
		r.sayFrame(what)
	}
	for _, op := range []wire.OpCode{
		wire.OpExists, wire.OpGetData, wire.OpGetACL, wire.OpGetChildren, wire.OpGetChildren2,
		wire.OpGetAllChildrenNumber, wire.OpSync, wire.OpGetEphemerals, wire.OpAddWatch, wire.OpSetWatches,
		wire.OpSetWatches2, wire.OpCheckWatches, wire.OpRemoveWatches, wire.OpMultiRead,
	} {
		do(op.String()+" without a body", op)
		do(op.String()+" with a null path", op, append(null, 0, 0, 0, 0, 0)...)
		do(op.String()+" with a long length", op, 0x7f, 0xff, 0xff, 0xff)
		do(op.String()+" with a negative length", op, 0xff, 0xff, 0xff, 0xf0)
	}
	for _, mode := range []byte{2, 3, 255} {
		do(fmt.Sprint("addWatch mode ", mode), wire.OpAddWatch, append(path, 0, 0, 0, mode)...)
		do(fmt.Sprint("removeWatches type ", mode+4), wire.OpRemoveWatches, append(path, 0, 0, 0, mode+4)...)
	}
	do("trailing bytes", wire.OpExists, append(append([]byte{}, path...), 0, 1, 2, 3)...)
	r.sayAlive()
	for _, f := range []int32{-1, 7, 100, 4, 5, 6} {
		r.send(200+f, wire.OpCreate, &wire.CreateRequest{Path: s.at("/flags"), ACL: wire.OpenACL(), Flags: f})
		r.sayFrame(fmt.Sprint("create flags ", f))
		r.send(300+f, wire.OpDelete, &wire.PathVersionRequest{Path: s.at("/flags"), Version: -1})
		r.sayFrame("delete")
	}
	for _, ttl := range []int64{0, -1, -2, 1 << 40, 1} {
		r.send(400, wire.OpCreateTTL, &wire.CreateTTLRequest{
			CreateRequest: wire.CreateRequest{Path: s.at("/ttl"), ACL: wire.OpenACL(), Flags: wire.FlagPersistentTTL}, TTL: ttl})
		r.sayFrame(fmt.Sprint("createTTL ", ttl))
	}
	for _, op := range []wire.OpCode{50, wire.OpError, 0, 10, 108, 1000} {
		u := dialRaw(s, nil)
		u.sendBytes(1, op)
		u.sayFrame("unknown " + op.String())
		u.sayFrame("then")
	}
}

func seeRawHandshake(s *seen) {
	s.blind = true // sessions of one second expire meanwhile
	shake := func(what string, req wire.Record) *rawConn {
		r := dialOnly(s)
		r.write(wire.AppendFrame(nil, req))
		b, err := wire.ReadFrame(r.in, nil, wire.FrameMax)
		if err != nil {
			s.say("%s: closed", what)
			return r
		}
		var resp wire.ConnectResponse
		err = wire.Decode(b, &resp)
		password := resp.Session.Password()
		s.say("%s: %s %d bytes, timeout %d, refused %v, password derived %v, readOnly %v", what, result(err), len(b),
			resp.TimeoutMS, resp.Session == 0, string(resp.Password) == string(password[:]), resp.ReadOnly)
		r.session = resp.Session
		return r
	}
	base := wire.ConnectRequest{TimeoutMS: behaviourSession, Password: make([]byte, 16), HasReadOnly: true}
	vary := func(f func(*wire.ConnectRequest)) *wire.ConnectRequest { r := base; f(&r); return &r }
	shake("plain", &base)
	shake("without the flag", vary(func(r *wire.ConnectRequest) { r.HasReadOnly = false }))
	shake("read-only", vary(func(r *wire.ConnectRequest) { r.ReadOnly = true }))
	shake("version 7", vary(func(r *wire.ConnectRequest) { r.ProtocolVersion = 7 }))
	shake("null password", vary(func(r *wire.ConnectRequest) { r.Password = nil }))
	shake("empty password", vary(func(r *wire.ConnectRequest) { r.Password = []byte{} }))
	for _, t := range []int32{0, -5, 1, 1 << 30} {
		r := shake(fmt.Sprint("timeout ", t), vary(func(r *wire.ConnectRequest) { r.TimeoutMS = t }))
		r.send(1, wire.OpCloseSession, nil) // a session that is left open would expire during a later body
		r.sayFrame("close")
	}
	shake("from the future", vary(func(r *wire.ConnectRequest) { r.LastZxidSeen = 1 << 60 }))
	shake("unknown session", vary(func(r *wire.ConnectRequest) { r.Session = 0x1234567 }))
	shake("truncated", rawBody(wire.Append(nil, &base)[:20]))
	shake("trailing bytes", rawBody(append(wire.Append(nil, &base), 1, 2, 3)))

	one := shake("one", &base)
	password := one.session.Password()
	two := shake("resumed", vary(func(r *wire.ConnectRequest) { r.Session = one.session; r.Password = password[:]; r.TimeoutMS = 5000 }))
	one.sayFrame("the older connection")
	two.sayAlive()
	two.send(7, wire.OpCloseSession, nil)
	two.sayFrame("close")
	two.sayFrame("then")
	shake("closed session", vary(func(r *wire.ConnectRequest) { r.Session = one.session; r.Password = password[:] }))

	r := dialOnly(s)
	all := wire.AppendFrame(nil, &base)
	all = wire.AppendFrame(all, &wire.RequestHeader{Xid: 1, Op: wire.OpExists}, &wire.PathWatchRequest{Path: s.at("/none")})
	all = wire.AppendFrame(all, &wire.RequestHeader{Xid: wire.XidPing, Op: wire.OpPing})
	r.write(all)
	if _, err := wire.ReadFrame(r.in, nil, wire.FrameMax); err != nil {
		s.say("pipelined handshake: closed")
	}
	r.sayFrame("behind the handshake")
	r.sayFrame("behind the handshake")

	for _, n := range []int32{0, -1, wire.FrameMax + 1} {
		r := dialOnly(s)
		r.write(binary.BigEndian.AppendUint32(nil, uint32(n)))
		r.sayFrame(fmt.Sprint("first frame of length ", n))
		r = dialRaw(s, nil)
		r.write(binary.BigEndian.AppendUint32(nil, uint32(n)))
		r.sayFrame(fmt.Sprint("later frame of length ", n))
	}
}

func seeRawHeaders(s *seen) {
	r := dialRaw(s, nil)
	r.send(5, wire.OpPing, nil)
	r.sayFrame("ping with an xid")
	r.send(0, wire.OpExists, &wire.PathWatchRequest{Path: s.at("/none")})
	r.sayFrame("xid 0")
	r.send(-77, wire.OpExists, &wire.PathWatchRequest{Path: s.root})
	r.sayFrame("negative xid")
	r.send(33, wire.OpAuth, &wire.AuthRequest{Scheme: wire.Text("digest"), Auth: []byte("u:p")})
	r.sayFrame("auth with an xid")
	r.send(34, wire.OpSASL, &wire.SASLRequest{Token: []byte{}})
	r.sayFrame("sasl where there is none")
	// A write, a read, a failing write, a read, a ping and a sync in one packet.
	r.send(10, wire.OpCreate2, &wire.CreateRequest{Path: s.at("/p"), ACL: wire.OpenACL()})
	r.send(11, wire.OpGetData, &wire.PathWatchRequest{Path: s.at("/p")})
	r.send(12, wire.OpCreate, &wire.CreateRequest{Path: s.at("/p"), ACL: wire.OpenACL()})
	r.send(13, wire.OpGetData, &wire.PathWatchRequest{Path: s.at("/none")})
	r.send(14, wire.OpPing, nil)
	r.send(15, wire.OpSync, &wire.NullPathRequest{})
	r.send(16, wire.OpSetData, &wire.SetDataRequest{Path: s.at("/p"), Data: []byte("x"), Version: 0})
	r.send(17, wire.OpExists, &wire.PathWatchRequest{Path: s.at("/p")})
	for range 8 {
		r.sayFrame("pipelined")
	}
	for _, scheme := range []wire.NullString{{}, wire.Text("nobody"), wire.Text("world")} {
		u := dialRaw(s, nil)
		u.send(wire.XidAuth, wire.OpAuth, &wire.AuthRequest{Scheme: scheme, Auth: []byte("x")})
		u.sayFrame("auth by " + scheme.String)
		u.sayFrame("then")
	}
	u := dialRaw(s, nil)
	u.send(wire.XidAuth, wire.OpAuth, &wire.AuthRequest{Scheme: wire.Text("digest")})
	u.sayFrame("digest without data")
	u.sayFrame("then")
}

func seeRawSetWatches(s *seen) {
	s.blind = true // a session of an earlier body may end meanwhile
	for _, p := range []string{"/same", "/changed", "/gone", "/parent", "/parent/c"} {
		s.create(p, "")
	}
	st, _, _ := s.zc.Exists(s.ctx, s.at("/parent/c"))
	s.zc.Set(s.ctx, s.at("/changed"), nil, -1)
	s.zc.Delete(s.ctx, s.at("/gone"), -1)
	s.zc.Delete(s.ctx, s.at("/parent/c"), -1)
	s.create("/made", "")
	r := dialRaw(s, nil)
	abs := func(rest ...string) (out []string) {
		for _, p := range rest {
			out = append(out, s.at(p))
		}
		return out
	}
	req := wire.SetWatchesRequest{
		RelativeZxid: st.Czxid,
		Data:         abs("/same", "/changed", "/gone"),
		Exist:        abs("/made", "/gone"),
		Child:        abs("/parent", "/same", "/gone"),
	}
	r.send(wire.XidSetWatches, wire.OpSetWatches, &req)
	for range 6 { // five events, and then the reply
		r.sayFrame("setWatches")
	}
	r.send(1, wire.OpSetData, &wire.SetDataRequest{Path: s.at("/same"), Version: -1})
	r.sayFrame("a set watch fires")
	r.sayFrame("and the reply")
	r.send(wire.XidSetWatches, wire.OpSetWatches2, &wire.SetWatches2Request{
		SetWatchesRequest: wire.SetWatchesRequest{RelativeZxid: 1 << 60, Data: abs("/changed")},
		Persistent:        abs("/never"), PersistentRecursive: abs("/parent"),
	})
	r.sayFrame("setWatches2")
	r.send(2, wire.OpCreate, &wire.CreateRequest{Path: s.at("/parent/x"), ACL: wire.OpenACL()})
	r.sayFrame("recursive fires")
	r.sayFrame("and the reply")
	r.send(3, wire.OpCreate, &wire.CreateRequest{Path: s.at("/never"), ACL: wire.OpenACL()})
	r.sayFrame("persistent fires")
	r.sayFrame("and the reply")
}

func seeResume(s *seen) {
	c := s.client(nil)
	if _, _, err := c.Create(s.ctx, s.at("/e"), nil, zk.Ephemeral); err != nil {
		s.t.Fatal(err)
	}
	session := c.Detach()
	_, ok, err := s.zc.Exists(s.ctx, s.at("/e"))
	s.say("detached: %s %v", result(err), ok)
	password := session.ID.Password()
	r := dialRaw(s, &wire.ConnectRequest{TimeoutMS: behaviourSession, Session: session.ID, Password: password[:], HasReadOnly: true})
	s.say("resumed: %v", r.session == session.ID)
	r.send(1, wire.OpCloseSession, nil)
	r.sayFrame("close")
	_, ok, err = s.zc.Exists(s.ctx, s.at("/e"))
	s.say("closed: %s %v", result(err), ok)
}

// changing are the parts of a word's answer that vary.
var changing = regexp.MustCompile(`0x[0-9a-f]+|[0-9]+`)

// seeWords compares the form of the answers, without numbers.
func seeWords(s *seen) {
	for _, w := range []string{"ruok", "isro", "srst", "crst", "gtmk", "wchs", "srvr", "nosu"} {
		text, err := target.Word(s.server.Addr, w)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		for i, l := range strings.Split(text, "\n") {
			if strings.HasPrefix(l, "Zookeeper version: ") {
				l, _, _ = strings.Cut(l, ":")
			}
			s.say("%s %d: %s", w, i, changing.ReplaceAllString(l, "N"))
		}
		s.say("%s: closed %v", w, err == nil || strings.Contains(err.Error(), "reset"))
	}
}
