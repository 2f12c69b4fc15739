package interop

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/wire"
	"bellwether/zk"
)

// readOnlyTimeout bounds each wait until a server changes its mode.
const readOnlyTimeout = 3 * time.Minute

// readOnlySession is a session timeout, in milliseconds, that is longer than the test.
const readOnlySession = 60000

// readOnlyPair starts two servers with read-only mode; one alone has no quorum. Apache opens
// sessions in read-only mode only if local sessions are enabled.
func readOnlyPair(t *testing.T, kind target.Kind) *target.Ensemble {
	t.Helper()
	extra := map[string]string{"tickTime": "5000", "initLimit": "10", "syncLimit": "5"} // the timeouts are so long that no session ends during the test
	if kind == target.Apache {
		extra["localSessionsEnabled"] = "true"
		extra["localSessionsUpgradingEnabled"] = "true"
	}
	e := target.EnsembleFor(t, target.EnsembleOptions{
		Kinds: []target.Kind{kind, kind}, Extra: extra, Properties: []string{"readonlymode.enabled=true"},
	})
	if _, err := e.AwaitWhole(readOnlyTimeout); err != nil {
		t.Fatal(err)
	}
	return e
}

// TestReadOnlyAfterAStart restarts a server whose only other voter is down. In read-only mode
// it shows its log: Apache's server always, Bellwether only if the operator allows it.
func TestReadOnlyAfterAStart(t *testing.T) {
	eachTarget(t, func(t *testing.T, kind target.Kind) {
		e := target.EnsembleFor(t, target.EnsembleOptions{Kinds: []target.Kind{kind, kind}, Properties: []string{"readonlymode.enabled=true"},
			Extra: map[string]string{"localSessionsEnabled": "true", "localSessionsUpgradingEnabled": "true", "initLimit": "50", "syncLimit": "20",
				"readonlymode.uncommitted": "true"}})
		if _, err := e.AwaitWhole(readOnlyTimeout); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*readOnlyTimeout)
		defer cancel()
		c, err := zk.Connect(ctx, e.Servers[0].Addr, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.Create(ctx, "/kept", []byte("value")); err != nil {
			t.Fatal(err)
		}
		if err := c.Sync(ctx, "/"); err != nil {
			t.Fatal(err)
		}
		c.Close(ctx)
		e.Kill()
		if err := e.Servers[0].Begin(); err != nil {
			t.Fatal(err)
		}
		awaitWord(t, e.Servers[0], "isro", "ro")
		reader, err := zk.Connect(ctx, e.Servers[0].Addr, &zk.Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close(ctx)
		if data, _, err := reader.Get(ctx, "/kept"); err != nil || string(data) != "value" {
			t.Errorf("%q, %v", data, err)
		}
	})
}

// awaitWord waits until a server gives the wanted answer to a four-letter word.
func awaitWord(t *testing.T, s *target.Server, word, want string) {
	t.Helper()
	if err := whenWord(s, word, want); err != nil {
		t.Fatal(err)
	}
}

// whenWord is like awaitWord, but for any goroutine: it returns an error instead of failing the test.
func whenWord(s *target.Server, word, want string) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(readOnlyTimeout); ; <-tick.C {
		got, err := s.Word(word)
		if err == nil && got == want {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s: %s answers %q, %v; want %q", s.Kind, word, got, err, want)
		}
	}
}

// readOnlyBody is the name of this body in the table of intended differences.
const readOnlyBody = "read-only"

// TestReadOnlyIsTheSame compares the replies of servers without a quorum, byte for byte.
func TestReadOnlyIsTheSame(t *testing.T) {
	t.Parallel()
	saw := map[target.Kind][]string{}
	for _, kind := range target.Kinds() {
		saw[kind] = seeReadOnly(t, readOnlyPair(t, kind))
		if len(target.Kinds()) == 1 {
			t.Logf("%s:\n%s", kind, strings.Join(saw[kind], "\n"))
		}
	}
	if len(saw) == 2 {
		compareBody(t, readOnlyBody, saw)
	}
}

// compareBody compares the transcripts of a body that uses its own servers. It fails if one of
// the body's listed differences did not occur with ZooKeeper 3.8.0.
func compareBody(t *testing.T, body string, saw map[target.Kind][]string) {
	t.Helper()
	used := map[string]bool{}
	compare(t, body, saw[target.Apache], saw[target.Bellwether], listedDifferences(t), used)
	for _, d := range excused {
		if d.body == body && !t.Failed() && !target.OtherZooKeeper() && !used[d.tag] {
			t.Errorf("the difference %q did not occur: if it no longer exists, remove it from excused", d.tag)
		}
	}
}

func seeReadOnly(t *testing.T, e *target.Ensemble) []string {
	ctx, cancel := context.WithTimeout(t.Context(), 4*readOnlyTimeout)
	defer cancel()
	stays := e.Servers[0]
	zc, err := zk.Connect(ctx, stays.Addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	root := "/read-only"
	// The create makes Apache's session a global one.
	if _, _, err := zc.Create(ctx, root+"-e", nil, zk.Ephemeral); err != nil {
		t.Fatal(err)
	}
	_, stat, err := zc.Create(ctx, root, []byte("v"))
	if err != nil {
		t.Fatal(err)
	}
	s := &seen{t: t, ctx: ctx, server: stays, zc: zc, root: root, base: stat.Czxid}
	s.create("/child", "")
	standing := zc.Session()
	zc.Detach()
	e.Servers[1].Kill()
	awaitWord(t, stays, "isro", "ro")
	shakeReadOnly(s, standing)
	r := useReadOnly(s)
	wordsReadOnly(s)
	r = resumeReadOnly(s, r)
	if err := e.Servers[1].Begin(); err != nil {
		t.Fatal(err)
	}
	r.sayFrame("a read-only session when there is a quorum again")
	awaitWord(t, stays, "isro", "rw")
	again := wire.ConnectRequest{TimeoutMS: readOnlySession, HasReadOnly: true}
	again.Session, again.Password = standing.ID, standing.Password
	handshakeRaw(s, "the session of before", again)
	password := r.session.Password()
	again.Session, again.Password = r.session, password[:]
	handshakeRaw(s, "the read-only session", again)
	return s.lines
}

// handshakeRaw sends a handshake and records the result.
func handshakeRaw(s *seen, what string, req wire.ConnectRequest) *rawConn {
	r := dialOnly(s)
	r.write(wire.AppendFrame(nil, &req))
	b, err := wire.ReadFrame(r.in, nil, wire.FrameMax)
	if err != nil {
		s.say("%s: closed", what)
		return r
	}
	var resp wire.ConnectResponse
	err = wire.Decode(b, &resp)
	s.say("%s: %s %d bytes, timeout %d, same session %v, refused %v, readOnly %v", what, result(err), len(b), resp.TimeoutMS,
		resp.Session == req.Session, resp.Session == 0, resp.ReadOnly)
	r.session = resp.Session
	return r
}

func shakeReadOnly(s *seen, standing zk.Session) {
	fresh := wire.ConnectRequest{TimeoutMS: readOnlySession, Password: make([]byte, wire.PasswordLen), ReadOnly: true, HasReadOnly: true}
	q := fresh
	q.ReadOnly = false
	handshakeRaw(s, "a client that cannot be read-only", q)
	q.HasReadOnly = false
	handshakeRaw(s, "a client of old", q)
	q = fresh
	q.TimeoutMS = 1
	handshakeRaw(s, "a client that can be", q)
	q.LastZxidSeen = s.base + 100
	handshakeRaw(s, "one that has seen more", q)
	q = fresh
	q.Session, q.Password = standing.ID, standing.Password
	handshakeRaw(s, "a session of before", q)
	q.Password = make([]byte, wire.PasswordLen)
	handshakeRaw(s, "a session of before, wrong password", q)
	q.ReadOnly = false
	handshakeRaw(s, "a session of before that cannot be read-only", q)
	q = fresh
	q.Session = standing.ID + 1000
	password := q.Session.Password()
	q.Password = password[:]
	handshakeRaw(s, "a session that this server does not know", q)
}

func useReadOnly(s *seen) *rawConn {
	r := handshakeRaw(s, "to be used", wire.ConnectRequest{TimeoutMS: readOnlySession, Password: make([]byte, wire.PasswordLen), ReadOnly: true, HasReadOnly: true})
	xid := int32(0)
	try := func(what string, op wire.OpCode, req wire.Record) {
		xid++
		r.send(xid, op, req)
		r.sayFrame(what)
	}
	path := s.root
	acl := wire.OpenACL()
	try("create", wire.OpCreate, &wire.CreateRequest{Path: path + "/a", ACL: acl})
	try("create2", wire.OpCreate2, &wire.CreateRequest{Path: path + "/a", ACL: acl, Flags: 1})
	try("delete", wire.OpDelete, &wire.PathVersionRequest{Path: path, Version: -1})
	try("setData", wire.OpSetData, &wire.SetDataRequest{Path: path, Version: -1})
	try("sync", wire.OpSync, &wire.PathRequest{Path: path})
	try("multi of nothing", wire.OpMulti, &wire.MultiRequest{})
	if !target.OtherZooKeeper() { // 3.9.5 refuses a check outside a multi as unknown and closes the connection
		try("check", wire.OpCheck, &wire.PathVersionRequest{Path: path, Version: 0})
	}
	try("reconfig", wire.OpReconfig, &wire.ReconfigRequest{ConfigID: -1})
	try("setACL", wire.OpSetACL, &wire.SetACLRequest{Path: path, ACL: acl, Version: -1})
	try("getData with a watch", wire.OpGetData, &wire.PathWatchRequest{Path: path, Watch: true})
	try("exists", wire.OpExists, &wire.PathWatchRequest{Path: path + "/none", Watch: true})
	try("getChildren", wire.OpGetChildren, &wire.PathWatchRequest{Path: path})
	try("getChildren2", wire.OpGetChildren2, &wire.PathWatchRequest{Path: path + "/none"})
	try("getACL", wire.OpGetACL, &wire.PathRequest{Path: path + "/none"})
	try("count", wire.OpGetAllChildrenNumber, &wire.PathRequest{Path: path})
	try("getEphemerals", wire.OpGetEphemerals, &wire.PathRequest{Path: "/"})
	try("multiRead", wire.OpMultiRead, &wire.MultiRequest{Ops: []wire.Op{{Type: wire.OpGetChildren, Request: &wire.PathRequest{Path: path}}}})
	try("whoAmI", wire.OpWhoAmI, nil)
	try("addWatch", wire.OpAddWatch, &wire.AddWatchRequest{Path: path, Mode: 1})
	r.send(wire.XidPing, wire.OpPing, nil)
	r.sayFrame("ping")
	r.send(wire.XidAuth, wire.OpAuth, &wire.AuthRequest{Scheme: wire.Text("digest"), Auth: []byte("u:p")})
	r.sayFrame("auth")
	r.send(wire.XidSetWatches, wire.OpSetWatches, &wire.SetWatchesRequest{RelativeZxid: s.base + 50, Data: []string{path}})
	r.sayFrame("setWatches")
	try("unknown", 77, nil)
	return r
}

// readOnlyWords are the four-letter words whose answers are compared, line by line, for lines
// that match the pattern.
var readOnlyWords = []struct {
	word  string
	lines *regexp.Regexp
}{
	{"ruok", regexp.MustCompile(``)},
	{"isro", regexp.MustCompile(``)},
	{"wchs", regexp.MustCompile(``)},
	{"srvr", regexp.MustCompile(`^(READ-ONLY|Mode|Connections)`)},
	{"stat", regexp.MustCompile(`^(READ-ONLY|Mode|Connections)`)},
	{"mntr", regexp.MustCompile(`zk_(server_state|num_alive_connections|global_sessions|local_sessions)`)},
	{"conf", regexp.MustCompile(`^(serverId|peerType|initLimit)`)},
}

func wordsReadOnly(s *seen) {
	for _, w := range readOnlyWords {
		text, err := target.Word(s.server.Addr, w.word)
		if err != nil {
			s.say("%s: %v", w.word, err)
		}
		for l := range strings.Lines(text) {
			if l = strings.TrimSuffix(l, "\n"); w.lines.MatchString(l) {
				s.say("%s: %s", w.word, changing.ReplaceAllString(l, "N"))
			}
		}
	}
}

func resumeReadOnly(s *seen, r *rawConn) *rawConn {
	password := r.session.Password()
	r.conn.Close()
	again := wire.ConnectRequest{TimeoutMS: readOnlySession, Session: r.session, Password: password[:], ReadOnly: true, HasReadOnly: true}
	q := again
	q.Password = make([]byte, wire.PasswordLen)
	handshakeRaw(s, "its own session, wrong password", q)
	r = handshakeRaw(s, "its own session again", again)
	r.send(1, wire.OpCloseSession, nil)
	r.sayFrame("close")
	r.sayFrame("behind it")
	handshakeRaw(s, "a closed session", again)
	again.Session, again.Password = 0, make([]byte, wire.PasswordLen)
	return handshakeRaw(s, "another one", again)
}
