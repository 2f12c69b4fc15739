package interop

import (
	"bufio"
	"errors"
	"io"
	"net"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/wire"
)

// localTimeout bounds each wait of these tests, on a busy machine.
const localTimeout = 3 * time.Minute

// localSession is a session timeout that is longer than the test.
const localSession = time.Minute

// localEnsembles maps the name of each ensemble to the kinds of its servers. An election prefers servers with larger ids, so
// the first server is a follower.
var localEnsembles = map[string][]target.Kind{
	"apache":             {target.Apache, target.Apache, target.Apache},
	"bellwether":         {target.Bellwether, target.Bellwether, target.Bellwether},
	"bellwether follows": {target.Bellwether, target.Apache, target.Apache},
	"bellwether leads":   {target.Apache, target.Bellwether, target.Bellwether},
}

// local is an ensemble with local sessions.
type local struct {
	t      *testing.T
	e      *target.Ensemble
	leader int
}

// inEachLocal runs a test with each ensemble.
func inEachLocal(t *testing.T, upgrading string, body func(l *local)) {
	for name, kinds := range localEnsembles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &local{t: t, e: target.EnsembleFor(t, target.EnsembleOptions{Kinds: kinds, Extra: map[string]string{
				"localSessionsEnabled": "true", "localSessionsUpgradingEnabled": upgrading, "initLimit": "50", "syncLimit": "20",
				"maxSessionTimeout": "60000",
			}})}
			l.leader = l.awaitWhole()
			for first := l.e.Servers[0]; l.leader == 0; l.leader = l.awaitWhole() { // the terms of the others have failed on a busy machine
				if err := errors.Join(first.Stop(), first.Begin()); err != nil {
					t.Fatal(err)
				}
			}
			body(l)
		})
	}
}

// awaitWhole waits until all servers serve, and returns the index of the leader.
func (l *local) awaitWhole() (leader int) {
	l.t.Helper()
	leader, err := l.e.AwaitWhole(localTimeout)
	if err != nil {
		l.t.Fatal(err)
	}
	return leader
}

// eachLocal runs a test at a follower and at the leader of each ensemble.
func eachLocal(t *testing.T, upgrading string, body func(l *local, at *target.Server, dir string)) {
	inEachLocal(t, upgrading, func(l *local) {
		body(l, l.e.Servers[0], "/follower")
		body(l, l.e.Servers[l.leader], "/leader")
	})
}

// other returns another server: the leader, or a follower if at is the leader.
func (l *local) other(at *target.Server) *target.Server {
	if at == l.e.Servers[0] {
		return l.e.Servers[l.leader]
	}
	return l.e.Servers[0]
}

// sessions waits until a server counts these numbers of local and global sessions.
func (l *local) sessions(s *target.Server, local, global string) {
	l.t.Helper()
	want := []string{"zk_local_sessions\t" + local + "\n", "zk_global_sessions\t" + global + "\n"}
	for end := time.Now().Add(localTimeout); ; {
		text, err := s.Word("mntr")
		if strings.Contains(text, want[0]) && strings.Contains(text, want[1]) {
			return
		}
		if time.Now().After(end) {
			l.t.Fatalf("%v: not %q in %s", err, want, text)
		}
	}
}

// dumps searches a server's dump for a line that begins with a pattern. A ZooKeeper server
// keeps a set of sessions until its time, even if the set has become empty.
func (l *local) dumps(s *target.Server, line string) {
	l.t.Helper()
	if text, err := s.Word("dump"); !regexp.MustCompile("(?m)^" + line).MatchString(text) {
		l.t.Errorf("%v: nothing like %q in %s", err, line, text)
	}
}

// localConn is a connection whose replies are all checked.
type localConn struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
	wire.ConnectResponse
	xid  int32
	body []byte // the body of the last reply
}

// connect opens or resumes a session. A slow Apache server that ends another connection at
// the same time may close this one instead of answering; connect then tries again.
func (l *local) connect(s *target.Server, session wire.SessionID, password []byte, timeout time.Duration) *localConn {
	l.t.Helper()
	ends := s.Kind == target.Apache && (session != 0 || timeout < localSession)
	for end := time.Now().Add(localTimeout); ; {
		c, err := l.shake(s, session, password, timeout)
		if err == nil {
			return c
		}
		if !ends || !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) || time.Now().After(end) {
			l.t.Fatalf("connect: %v", err)
		}
	}
}

func (l *local) shake(s *target.Server, session wire.SessionID, password []byte, timeout time.Duration) (*localConn, error) {
	l.t.Helper()
	conn, err := net.Dial("tcp", s.Addr)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(localTimeout))
	c := &localConn{t: l.t, conn: conn, in: bufio.NewReader(conn)}
	if password == nil {
		password = make([]byte, wire.PasswordLen)
	}
	ask := &wire.ConnectRequest{TimeoutMS: int32(timeout.Milliseconds()), Session: session, Password: password, HasReadOnly: true}
	conn.Write(wire.AppendFrame(nil, ask)) // a write error shows in the next read
	b, err := wire.ReadFrame(c.in, nil, wire.FrameMax)
	if err == nil {
		err = wire.Decode(b, &c.ConnectResponse)
	}
	return c, err
}

// open is like connect, but for a new session.
func (l *local) open(s *target.Server) *localConn {
	l.t.Helper()
	c := l.connect(s, 0, nil, localSession)
	if c.Session == 0 {
		l.t.Fatal("no session")
	}
	return c
}

// resume resumes a session; it returns nil if the server refuses.
func (l *local) resume(s *target.Server, of *localConn) *localConn {
	l.t.Helper()
	c := l.connect(s, of.Session, of.Password, localSession)
	if c.TimeoutMS <= 0 {
		return nil
	}
	return c
}

// do sends a request and returns the header of the reply.
func (c *localConn) do(op wire.OpCode, req wire.Record) wire.ReplyHeader {
	c.t.Helper()
	c.xid++
	h := &wire.RequestHeader{Xid: c.xid, Op: op}
	if op == wire.OpPing {
		h.Xid = wire.XidPing
	}
	frame := wire.AppendFrame(nil, h)
	if req != nil {
		frame = wire.AppendFrame(nil, h, req)
	}
	c.conn.Write(frame)
	b, err := wire.ReadFrame(c.in, nil, wire.FrameMax)
	if err != nil {
		c.t.Fatalf("%v: %v", op, err)
	}
	var reply wire.ReplyHeader
	if err := wire.Decode(b[:wire.ReplyHeaderLen], &reply); err != nil || reply.Xid != h.Xid {
		c.t.Fatalf("%v: %+v, %v", op, reply, err)
	}
	c.body = b[wire.ReplyHeaderLen:]
	return reply
}

// must sends a request, fails the test unless it succeeds, and returns the zxid of the reply.
func (c *localConn) must(op wire.OpCode, req wire.Record) wire.Zxid {
	c.t.Helper()
	h := c.do(op, req)
	if h.Err != wire.OK {
		c.t.Fatalf("%v: %v", op, h.Err)
	}
	return h.Zxid
}

// ends waits for the end of the connection.
func (c *localConn) ends(why string) {
	c.t.Helper()
	if _, err := wire.ReadFrame(c.in, nil, wire.FrameMax); !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		var late net.Error
		if err == nil || errors.As(err, &late) && late.Timeout() {
			c.t.Fatalf("%s: the connection goes on: %v", why, err)
		}
	}
}

func localCreate(path string, flags int32) *wire.CreateRequest {
	return &wire.CreateRequest{Path: path, ACL: wire.OpenACL(), Flags: flags}
}

// TestLocalSessions shows that a local session costs no transaction, can do everything but own
// ephemerals, is refused by every other server, and lives until it is closed or expires.
func TestLocalSessions(t *testing.T) {
	t.Parallel()
	eachLocal(t, "true", func(l *local, at *target.Server, dir string) {
		c := l.open(at)
		l.sessions(at, "1", "0")
		l.sessions(l.other(at), "0", "0")
		l.dumps(at, `Local Session Sets \(\d+\)/\(1\):`)
		l.dumps(l.e.Servers[0], `Global Sessions\(0\):`)
		l.dumps(l.e.Servers[l.leader], `Global Session Sets \(`)
		first := c.must(wire.OpCreate, localCreate(dir, wire.FlagPersistent))
		c.must(wire.OpCreateContainer, localCreate(dir+"/c", wire.FlagContainer))
		c.must(wire.OpCreateTTL, &wire.CreateTTLRequest{CreateRequest: *localCreate(dir+"/t", wire.FlagPersistentTTL), TTL: 1 << 30})
		c.must(wire.OpMulti, &wire.MultiRequest{Ops: []wire.Op{{Type: wire.OpCreate, Request: localCreate(dir+"/m", wire.FlagPersistent)}}})
		c.must(wire.OpSync, &wire.PathRequest{Path: "/"})
		c.must(wire.OpPing, nil)
		if z := c.must(wire.OpSetData, &wire.SetDataRequest{Path: dir, Version: -1}); z != first+4 {
			l.t.Errorf("five writes from %v to %v", first, z)
		}
		if l.resume(l.other(at), c) != nil {
			l.t.Error("the session was resumed at another server")
		}
		r := l.resume(at, c)
		if r == nil {
			l.t.Fatal("the session was not resumed at its own server")
		}
		c.ends("a newer connection")
		z := r.must(wire.OpSetData, &wire.SetDataRequest{Path: dir, Version: -1})
		if end := r.must(wire.OpCloseSession, nil); end != z {
			l.t.Errorf("closing the local session made a transaction: zxid %v after %v", end, z)
		}
		r.ends("closed")
		if l.resume(at, c) != nil {
			l.t.Error("the session was resumed after its end")
		}
		l.expires(at)
		l.upgrades(at, dir)
	})
}

// expires waits until a short session has ended and is refused. An Apache server closes a
// silent connection earlier or later than it ends the session, so the session may still live;
// then expires waits again.
func (l *local) expires(at *target.Server) {
	l.t.Helper()
	c := l.connect(at, 0, nil, time.Second)
	for end := time.Now().Add(localTimeout); ; {
		c.ends("expired")
		c = l.connect(at, c.Session, c.Password, time.Second)
		if c.TimeoutMS <= 0 {
			return
		}
		if at.Kind == target.Bellwether || time.Now().After(end) {
			l.t.Fatal("the session was resumed after it had expired")
		}
	}
}

// upgrades shows that the first ephemeral makes a local session global, by one transaction,
// even if the create fails. After that the session can move, with its ephemerals.
func (l *local) upgrades(at *target.Server, dir string) {
	l.t.Helper()
	c := l.open(at)
	before := c.must(wire.OpSetData, &wire.SetDataRequest{Path: dir, Version: -1})
	if h := c.do(wire.OpCreate, localCreate("/none/e", wire.FlagEphemeral)); h.Err != wire.ErrNoNode || h.Zxid != before+2 {
		l.t.Errorf("create of an ephemeral without a parent: %v, zxid %v after %v", h.Err, h.Zxid, before)
	}
	if z := c.must(wire.OpCreate, localCreate(dir+"/e", wire.FlagEphemeral)); z != before+3 {
		l.t.Errorf("the session was upgraded twice: zxid %v after %v", z, before)
	}
	l.sessions(at, "0", "1")
	l.sessions(l.other(at), "0", "1")
	r := l.resume(l.other(at), c)
	if r == nil {
		l.t.Fatal("the global session was not resumed at another server")
	}
	r.must(wire.OpCloseSession, nil)
	l.sessions(at, "0", "0")

	c = l.open(at)
	c.must(wire.OpMulti, &wire.MultiRequest{Ops: []wire.Op{
		{Type: wire.OpCreate, Request: localCreate(dir+"/p", wire.FlagPersistent)},
		{Type: wire.OpCreate2, Request: localCreate(dir+"/s", wire.FlagEphemeralSequential)},
	}})
	l.sessions(at, "0", "1")
	c.must(wire.OpCloseSession, nil)
	l.sessions(l.other(at), "0", "0")
}

// TestLocalSessionsWithoutUpgrading shows that an ephemeral is refused. In a multi, a
// Bellwether leader reports the same error; an Apache leader reports to its followers'
// clients that the session has expired.
func TestLocalSessionsWithoutUpgrading(t *testing.T) {
	t.Parallel()
	eachLocal(t, "false", func(l *local, at *target.Server, dir string) {
		c := l.open(at)
		c.must(wire.OpCreate, localCreate(dir, wire.FlagPersistent))
		for _, op := range []wire.OpCode{wire.OpCreate, wire.OpCreate2} {
			if h := c.do(op, localCreate(dir+"/e", wire.FlagEphemeral)); h.Err != wire.ErrEphemeralOnLocalSession {
				l.t.Errorf("%v: %v", op, h.Err)
			}
		}
		c.must(wire.OpMulti, &wire.MultiRequest{Ops: []wire.Op{
			{Type: wire.OpCreate, Request: localCreate(dir+"/p", wire.FlagPersistent)},
			{Type: wire.OpCreate, Request: localCreate(dir+"/e", wire.FlagEphemeral)},
		}})
		var m wire.MultiResponse
		if err := wire.Decode(c.body, &m); err != nil || len(m.Results) != 2 {
			l.t.Fatalf("multi: %v, %+v", err, m)
		}
		want := wire.ErrEphemeralOnLocalSession
		if at == l.e.Servers[0] && l.e.Servers[l.leader].Kind == target.Apache {
			want = wire.ErrSessionExpired
		}
		if m.Results[1].Err != want {
			l.t.Errorf("multi: %+v", m.Results)
		}
		if h := c.do(wire.OpExists, &wire.PathWatchRequest{Path: dir + "/p"}); h.Err != wire.ErrNoNode {
			l.t.Errorf("the failed multi was carried out in part: exists answers %v", h.Err)
		}
		c.must(wire.OpCloseSession, nil)
		l.sessions(at, "0", "0")
	})
}

// TestLocalSessionsBehindALeader kills the leader. A Bellwether follower must keep its local
// session, and also its connection if the leaders before and after are Bellwether servers. An
// Apache follower forgets the session. A restarted server knows no local session.
func TestLocalSessionsBehindALeader(t *testing.T) {
	t.Parallel()
	inEachLocal(t, "true", func(l *local) {
		at := l.e.Servers[0]
		c := l.open(at)
		c.must(wire.OpCreate, localCreate("/a", wire.FlagPersistent))
		l.e.Servers[l.leader].Kill()
		next, err := l.e.AwaitLeader(localTimeout, l.leader)
		if err != nil {
			l.t.Fatal(err)
		}
		ours := at.Kind == target.Bellwether
		if ours && l.e.Servers[l.leader].Kind == target.Bellwether && l.e.Servers[next].Kind == target.Bellwether {
			c.must(wire.OpCreate, localCreate("/b", wire.FlagPersistent))
		}
		for end := time.Now().Add(localTimeout); at.Role() == "" && time.Now().Before(end); {
			<-time.After(20 * time.Millisecond)
		}
		if r := l.resume(at, c); (r != nil) != ours {
			l.t.Errorf("the session was resumed after a change of leaders: %v", r != nil)
		}
		if err := l.e.Begin(); err != nil {
			l.t.Fatal(err)
		}
		d := l.open(at)
		at.Kill()
		if err := at.Begin(); err != nil {
			l.t.Fatal(err)
		}
		if _, err := l.e.AwaitWhole(localTimeout); err != nil {
			l.t.Fatal(err)
		}
		if l.resume(at, d) != nil {
			l.t.Error("the session was resumed after a restart")
		}
	})
}
