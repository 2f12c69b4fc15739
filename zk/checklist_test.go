package zk

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/wire"
)

// The tests of this file follow a checklist of defects that have hurt users of client libraries, as far
// as they concern the client. Package recipe tests the points about recipes.

// TestChecklist01CancelledProtectedCreateCleansUp: 1. Every call has a context. If the context of a
// queued or sent protected create ends, no znode is left behind.
func TestChecklist01CancelledProtectedCreateCleansUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		var made string
		e.serve = func(p *peer, h wire.RequestHeader, body []byte) bool {
			switch h.Op {
			case wire.OpCreate2: // the create is carried out, but its answer is late
				made = pathOf(h.Op, body)
				return true
			case wire.OpGetChildren2:
				p.replyLate(made)
				p.reply(h.Xid, 0, &wire.ChildrenStatResponse{Children: []string{"other", made[len("/jobs/"):]}})
				return true
			case wire.OpExists:
				p.reply(h.Xid, 0, &wire.StatResponse{Stat: wire.Stat{EphemeralOwner: 1}})
				return true
			case wire.OpSync:
				p.replyLate(made)
			}
			return false
		}
		c := e.connect(Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err := c.CreateProtected(ctx, "/jobs/n-", nil, Ephemeral)
		var lost *UnknownOutcomeError
		if !errors.As(err, &lost) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("error is %v, want an UnknownOutcomeError because of the deadline", err)
		}
		synctest.Wait()
		if want := "delete " + made; !slices.Contains(e.log(), want) {
			t.Errorf("requests are %q, want %q among them", e.log(), want)
		}
	})
}

// replyLate answers the oldest request, a create, once.
func (p *peer) replyLate(path string) {
	p.e.mu.Lock()
	xid := int32(2) // the request follows the lease question
	late := !slices.Contains(p.e.requests, "answered")
	if late {
		p.e.requests = append(p.e.requests, "answered")
	}
	p.e.mu.Unlock()
	if late {
		p.reply(xid, 0, &wire.PathStatResponse{Path: path})
	}
}

func TestChecklist01EveryCallEndsWithItsContext(t *testing.T) {
	calls := map[string]func(context.Context, *Client) error{
		"create": func(ctx context.Context, c *Client) error { _, _, err := c.Create(ctx, "/a", nil); return err },
		"delete": func(ctx context.Context, c *Client) error { return c.Delete(ctx, "/a", 1) },
		"set":    func(ctx context.Context, c *Client) error { _, err := c.Set(ctx, "/a", nil, 1); return err },
		"get":    func(ctx context.Context, c *Client) error { _, _, err := c.Get(ctx, "/a"); return err },
		"getW":   func(ctx context.Context, c *Client) error { _, _, _, err := c.GetW(ctx, "/a"); return err },
		"exists": func(ctx context.Context, c *Client) error { _, _, err := c.Exists(ctx, "/a"); return err },
		"existsW": func(ctx context.Context, c *Client) error {
			_, _, _, err := c.ExistsW(ctx, "/a")
			return err
		},
		"children": func(ctx context.Context, c *Client) error { _, _, err := c.Children(ctx, "/a"); return err },
		"childrenW": func(ctx context.Context, c *Client) error {
			_, _, _, err := c.ChildrenW(ctx, "/a")
			return err
		},
		"sync":       func(ctx context.Context, c *Client) error { return c.Sync(ctx, "/a") },
		"check":      func(ctx context.Context, c *Client) error { return c.Check(ctx, "/a", 1) },
		"multiRead":  func(ctx context.Context, c *Client) error { _, err := c.MultiRead(ctx, GetOp("/a")); return err },
		"getACL":     func(ctx context.Context, c *Client) error { _, _, err := c.GetACL(ctx, "/a"); return err },
		"setACL":     func(ctx context.Context, c *Client) error { _, err := c.SetACL(ctx, "/a", nil, 1); return err },
		"count":      func(ctx context.Context, c *Client) error { _, err := c.CountDescendants(ctx, "/a"); return err },
		"ephemerals": func(ctx context.Context, c *Client) error { _, err := c.Ephemerals(ctx, "/a"); return err },
		"whoAmI":     func(ctx context.Context, c *Client) error { _, err := c.WhoAmI(ctx); return err },
		"addAuth":    func(ctx context.Context, c *Client) error { return c.AddAuth(ctx, Auth{Scheme: "digest"}) },
		"config":     func(ctx context.Context, c *Client) error { _, _, err := c.Config(ctx); return err },
		"reconfig": func(ctx context.Context, c *Client) error {
			_, _, err := c.Reconfig(ctx, "", "", "", -1)
			return err
		},
		"addWatch": func(ctx context.Context, c *Client) error {
			_, err := c.AddWatch(ctx, "/a", wire.WatchPersistent)
			return err
		},
		"protected": func(ctx context.Context, c *Client) error { _, _, err := c.CreateProtected(ctx, "/a", nil); return err },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				e := newEnsemble(t)
				e.serve = func(p *peer, h wire.RequestHeader, _ []byte) bool { return h.Op != wire.OpPing }
				c := e.connect(Options{})
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := call(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("error is %v, want the deadline's", err)
				}
				var op *OpError
				if err := call(ctx, c); !errors.As(err, &op) || isLost(err) {
					t.Errorf("with an ended context: %v, want an OpError that says nothing was sent", err)
				}
			})
		})
	}
}

// TestChecklist02NoTransitionIsMissed: 2. A caller that holds an older status misses no later transition.
func TestChecklist02NoTransitionIsMissed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.greet = func(p *peer, req wire.ConnectRequest) *wire.ConnectResponse {
			if p.n == 2 {
				return refused()
			}
			return e.accept(req)
		}
		c := e.connect(Options{})
		first := c.State()
		for e.connections() < 4 {
			e.cut()
			synctest.Wait()
			time.Sleep(time.Second) // the time of the test's fake clock
		}
		synctest.Wait()
		c.Close(t.Context())
		var got []string
		for s := first; ; {
			got = append(got, fmt.Sprint(s.State, " ", s.Session))
			if s.Final() {
				break
			}
			var err error
			if s, err = s.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		want := []string{
			"connected 0x1", "connecting 0x1", "connected 0x1", "connecting 0x1",
			"expired 0x1", "connecting 0x0", "connected 0x2", "closed 0x2",
		}
		if !slices.Equal(got, want) {
			t.Errorf("transitions are\n%q, want\n%q", got, want)
		}
	})
}

// TestChecklist03NamesAreResolvedAtEachDial: 3. Names are resolved at each dial. All addresses are used,
// also IPv6 and those of SRV records, and a name that cannot be resolved does not matter while another
// one can.
func TestChecklist03NamesAreResolvedAtEachDial(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		names := &names{hosts: map[string][]string{"zk.example": {"10.1.1.1", "fd00::7"}}}
		e.refuse = func(address string) error {
			if address == "10.1.1.1:2181" {
				return errNoListener
			}
			return nil
		}
		c := e.connect(Options{Resolver: names}, "unknown.example,zk.example:2181")
		if got := c.State().Server; got != "[fd00::7]:2181" {
			t.Fatalf("connected to %s, want the address that answers", got)
		}
		names.set("zk.example", "10.2.2.2")
		e.cut()
		synctest.Wait()
		waitFor(t, c, Connected)
		if got := c.State().Server; got != "10.2.2.2:2181" {
			t.Errorf("connected to %s after the name moved, want 10.2.2.2:2181", got)
		}
	})
}

// TestChecklist03AddressesShareTheTime: an address that does not answer uses only its share of the
// session's timeout, not the whole timeout.
func TestChecklist03AddressesShareTheTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.silent = func(address string) bool { return address != "10.1.1.9:2181" }
		names := &names{hosts: map[string][]string{"zk.example": {"10.1.1.1", "10.1.1.2", "10.1.1.3", "10.1.1.4", "10.1.1.9"}}}
		began := time.Now()
		e.connect(Options{Resolver: names, SessionTimeout: 10 * time.Second}, "zk.example")
		if took := time.Since(began); took > 8*time.Second+time.Second {
			t.Errorf("connected after %v, want 2 s for each of the others at most", took)
		}
	})
}

func TestChecklist03SRVRecords(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		names := &names{
			hosts: map[string][]string{"a.example": {"10.3.3.3"}},
			srv:   map[string][]*net.SRV{"_zookeeper._tcp.example": {{Target: "gone.example.", Port: 1}, {Target: "a.example.", Port: 2345}}},
		}
		c := e.connect(Options{Resolver: names}, "_zookeeper._tcp.example")
		if got := c.State().Server; got != "10.3.3.3:2345" {
			t.Errorf("connected to %s, want the SRV record's", got)
		}
	})
}

func TestChecklist03ServerListChangesAtRunTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		c := e.connect(Options{}, "10.0.0.1")
		session := c.Session().ID
		if err := c.SetServers("10.0.0.1,10.0.0.2"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := e.connections(); n != 1 {
			t.Errorf("%d connections, the connected server is still in the list", n)
		}
		if err := c.SetServers("10.0.0.3:99"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s := waitFor(t, c, Connected)
		time.Sleep(time.Second)
		if s = c.State(); s.Server != "10.0.0.3:99" || s.Session != session {
			t.Errorf("after the change: %s with %s, want 10.0.0.3:99 with %s", s.Server, s.Session, session)
		}
		if err := c.SetServers("10.0.0.3/other"); err == nil {
			t.Error("another chroot was accepted")
		}
	})
}

// TestChecklist03ServerListChangesDuringAHandshake: if the server list changes during a
// handshake, the new list also applies to the server of that handshake.
func TestChecklist03ServerListChangesDuringAHandshake(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		greeted := make(chan struct{})
		e.greet = func(p *peer, req wire.ConnectRequest) *wire.ConnectResponse {
			if p.n == 0 {
				<-greeted
			}
			return e.accept(req)
		}
		c := e.open(Options{}, "10.0.0.1")
		synctest.Wait()
		if err := c.SetServers("10.0.0.2"); err != nil {
			t.Fatal(err)
		}
		close(greeted)
		waitFor(t, c, Connected)
		time.Sleep(time.Second)
		if s := c.State(); s.State != Connected || s.Server != "10.0.0.2:2181" || s.Session != 1 {
			t.Errorf("status is %+v, want the server of the new list, with the session", s)
		}
	})
}

// names is a Resolver with fixed answers.
type names struct {
	mu    sync.Mutex
	hosts map[string][]string
	srv   map[string][]*net.SRV
}

func (n *names) set(host string, ips ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[host] = ips
}

func (n *names) LookupHost(_ context.Context, host string) ([]string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if ips := n.hosts[host]; ips != nil {
		return ips, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

func (n *names) LookupSRV(_ context.Context, _, _, name string) (string, []*net.SRV, error) {
	return name, n.srv[name], nil
}

// TestChecklist04PauseResetsWithTheSession: 4. The pause between attempts grows until a server confirms a
// session. A TCP connection alone does not reset it.
func TestChecklist04PauseResetsWithTheSession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		var closed atomic.Bool
		closed.Store(true)
		e.greet = func(_ *peer, req wire.ConnectRequest) *wire.ConnectResponse {
			if closed.Load() {
				return nil // only the TCP connection is made
			}
			return e.accept(req)
		}
		c := e.open(Options{SessionTimeout: 10 * time.Second})
		time.Sleep(time.Minute)
		if n := e.connections(); n > 150 {
			t.Errorf("%d attempts in a minute: no pause between them", n)
		}
		n := e.connections()
		time.Sleep(10 * time.Minute)
		if got := e.connections() - n; got > 300 || got < 40 {
			t.Errorf("%d attempts in ten later minutes, want about one in 5 s", got)
		}
		if c.failuresSoFar() == 0 {
			t.Error("the failed attempts no longer count, although there was no session")
		}
		closed.Store(false)
		waitFor(t, c, Connected)
		synctest.Wait()
		if n := c.failuresSoFar(); n != 0 {
			t.Errorf("%d failed attempts still count after a session was confirmed", n)
		}
	})
}

// TestChecklist04PauseGrowsWhenConnectionsDoNotLast: if a server confirms the session and drops the
// connection at once, the client does not reconnect at once each time.
func TestChecklist04PauseGrowsWhenConnectionsDoNotLast(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.serve = func(p *peer, _ wire.RequestHeader, _ []byte) bool {
			p.conn.Close()
			return true
		}
		c := e.open(Options{SessionTimeout: 10 * time.Second})
		time.Sleep(time.Minute)
		if n := e.connections(); n > 150 {
			t.Errorf("%d connections in a minute", n)
		}
		if c.failuresSoFar() == 0 {
			t.Error("the failed attempts no longer count, although no ping was answered")
		}
	})
}

func (c *Client) failuresSoFar() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failures
}

func TestChecklist04NoTwoPausesAreTheSame(t *testing.T) {
	bubble(t, func(t *testing.T) {
		seen := map[time.Duration]bool{}
		for range 20 {
			e := newEnsemble(t)
			c := e.connect(Options{})
			began := time.Now()
			e.cut()
			s := c.State()
			if s.State == Connected {
				s, _ = s.Next(t.Context())
			}
			if s, _ = s.Next(t.Context()); s.State != Connected {
				t.Fatalf("state is %v", s.State)
			}
			seen[time.Since(began)] = true
			if time.Since(began) > 500*time.Millisecond {
				t.Errorf("the first reconnect took %v", time.Since(began))
			}
		}
		if len(seen) < 15 {
			t.Errorf("only %d different pauses in 20", len(seen))
		}
	})
}

// TestChecklist05AnotherSessionIDMeansExpired: 5. A server that opens another session than the requested
// one shows that the requested session has expired.
func TestChecklist05AnotherSessionIDMeansExpired(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.greet = func(p *peer, req wire.ConnectRequest) *wire.ConnectResponse {
			if p.n == 1 {
				req.Session = 0x77
			}
			return e.accept(req)
		}
		c := e.connect(Options{})
		_, _, w, err := c.GetW(t.Context(), "/a")
		if err != nil {
			t.Fatal(err)
		}
		e.cut()
		s := waitFor(t, c, Expired)
		if s.Session != 1 || !strings.Contains(s.Err.Error(), "0x77") {
			t.Errorf("status is %+v", s)
		}
		if _, err := w.Wait(t.Context()); err != ErrSessionExpired {
			t.Errorf("watch ended with %v", err)
		}
		waitFor(t, c, Connected)
		if got := c.Session().ID; got == 1 || got == 0x77 {
			t.Errorf("session is %s, want a new one", got)
		}
		synctest.Wait()
		if !slices.Contains(e.log(), "closeSession ") {
			t.Error("the unwanted session was not closed")
		}
	})
}

// TestChecklist06NeverBackInTime: 6. Each reconnect sends the last zxid that the client has seen in
// answers and events. If a server closes the connection because it is behind, the client tries another
// one. Xids wrap.
func TestChecklist06NeverBackInTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		behind := "10.0.0.2:2181"
		e.greet = func(p *peer, req wire.ConnectRequest) *wire.ConnectResponse {
			if p.address == behind && req.LastZxidSeen > 50 {
				return nil
			}
			return e.accept(req)
		}
		c := e.connect(Options{}, "10.0.0.1")
		c.Get(t.Context(), "/a") // zxid 100
		e.peer().event(107, wire.EventNodeDeleted, "/b")
		synctest.Wait()
		if got := c.Session().Zxid; got != 107 {
			t.Errorf("last zxid is %d, want that of the event", got)
		}
		c.SetServers("10.0.0.2,10.0.0.3")
		synctest.Wait()
		time.Sleep(10 * time.Second)
		if got := c.State(); got.Server != "10.0.0.3:2181" || got.Session != 1 {
			t.Errorf("status is %+v, want the server that has caught up", got)
		}
		if got := e.connectRequest(1).LastZxidSeen; got != 107 {
			t.Errorf("LastZxidSeen is %d", got)
		}
	})
}

func TestChecklist06XidWraps(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		var xids []int32
		e.serve = func(_ *peer, h wire.RequestHeader, _ []byte) bool {
			if h.Op == wire.OpExists {
				xids = append(xids, h.Xid)
			}
			return false
		}
		c := e.connect(Options{})
		synctest.Wait() // until the client has asked for the delay of its lease
		c.mu.Lock()
		c.xid = 1<<31 - 3
		c.mu.Unlock()
		for range 4 {
			if _, _, err := c.Exists(t.Context(), "/a"); err != nil {
				t.Fatal(err)
			}
		}
		if want := []int32{1<<31 - 2, 1<<31 - 1, 1, 2}; !slices.Equal(xids, want) {
			t.Errorf("xids are %v, want %v", xids, want)
		}
	})
}

// TestChecklist08StreamTellsOfAGap: 8. A cache needs a stream that survives a lost connection, and that
// reports when it may have missed events, and since which zxid.
func TestChecklist08StreamTellsOfAGap(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		c := e.connect(Options{}, "10.0.0.1/app")
		s, err := c.AddWatch(t.Context(), "/a", wire.WatchPersistentRecursive)
		if err != nil {
			t.Fatal(err)
		}
		e.peer().event(101, wire.EventNodeCreated, "/app/a/b")
		synctest.Wait()
		e.cut()
		synctest.Wait()
		waitFor(t, c, Connected)
		time.Sleep(time.Second)
		e.peer().event(102, wire.EventNodeDeleted, "/app/a/b")
		want := []Event{{wire.EventNodeCreated, "/a/b", 101}, {wire.EventNone, "/a", 100}, {wire.EventNodeDeleted, "/a/b", 102}}
		for _, w := range want {
			if got, err := s.Next(t.Context()); got != w || err != nil {
				t.Errorf("event is %v, %v; want %v", got, err, w)
			}
		}
		if !slices.Contains(e.log(), "setWatches2 ") {
			t.Errorf("requests are %q, want setWatches2", e.log())
		}
	})
}

// TestChecklist16TooLarge: 16. A message beyond a limit causes a typed error with its size and the limit.
// A message beyond half of the limit is logged.
func TestChecklist16TooLarge(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.serve = func(p *peer, h wire.RequestHeader, body []byte) bool {
			if h.Op == wire.OpGetData && pathOf(h.Op, body) == "/big" {
				p.reply(h.Xid, 0, &wire.DataResponse{Data: make([]byte, 5000)})
				return true
			}
			return false
		}
		var log lines
		c := e.connect(Options{FrameMax: 1000, ReplyMax: 2000, Logger: log.logger()})
		var large *TooLargeError
		_, err := c.Set(t.Context(), "/a", make([]byte, 1000), 0)
		if !errors.As(err, &large) || large.Max != 1000 || large.Size != 8+4+2+4+1000+4 || large.Answer || isLost(err) {
			t.Errorf("error is %#v", err)
		}
		if log.has("half of the limit") {
			t.Error("a warning came before a large request")
		}
		if _, err = c.Set(t.Context(), "/a", make([]byte, 600), 0); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if !log.has("half of the limit") || !log.has("bytes=622") {
			t.Errorf("log is %q, want a warning with the size", log.all())
		}
		_, _, err = c.Get(t.Context(), "/big")
		if !errors.As(err, &large) || large.Max != 2000 || large.Size != 16+4+5000+68 || !large.Answer {
			t.Errorf("error is %v", err)
		}
		if _, _, err = c.Get(t.Context(), "/a"); err != nil || e.connections() != 1 {
			t.Errorf("after a large answer: %v on %d connections, want the same connection", err, e.connections())
		}
	})
}

// TestChecklist17Hooks: 17. The hooks are called for each call, with its context, its error and its number on
// the server, and for each change of the state.
func TestChecklist17Hooks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		type key struct{}
		e := newEnsemble(t)
		var xids sync.Map // the xid of the last request of each OpCode
		e.serve = func(p *peer, h wire.RequestHeader, _ []byte) bool {
			if xids.Store(h.Op, h.Xid); h.Op == wire.OpDelete {
				p.reply(h.Xid, wire.ErrNoNode, nil)
			}
			return h.Op == wire.OpDelete
		}
		var got []string
		states := make(chan State, 10)
		c := e.connect(Options{Hooks: recordingHooks{
			begins: func(ctx context.Context, op OpCode, path string) func(CallEnd) {
				return func(x CallEnd) {
					got = append(got, fmt.Sprint(ctx.Value(key{}), " ", op, " ", path, " ", x.Err, " ", x.Server))
					if xid, _ := xids.Load(op); x.Cxid != xid && (x.Cxid != 0 || xid != nil) {
						t.Errorf("%v: cxid %d, the server got %v", op, x.Cxid, xid)
					}
					if answered := x.Session != 0; answered != (op != wire.OpSync) || x.Took < 0 {
						t.Errorf("%v: %+v", op, x)
					}
				}
			},
			changed: func(s Status) { states <- s.State },
		}})
		ctx := context.WithValue(t.Context(), key{}, "span")
		c.Get(ctx, "/a")
		c.Delete(ctx, "/b", 3)
		server, at := c.State().Server, c.State()
		ended, cancel := context.WithCancel(ctx)
		cancel()
		c.Sync(ended, "/c")
		want := []string{"span getData /a <nil> " + server, "span delete /b delete /b: node does not exist " + server, "span sync /c sync /c: context canceled " + server}
		if !slices.Equal(got, want) || at.State != Connected {
			t.Errorf("the calls are %q, want %q", got, want)
		}
		c.Close(t.Context())
		for _, want := range []State{Connecting, Connected, Closed} {
			if s := <-states; s != want {
				t.Errorf("state %v, want %v", s, want)
			}
		}
	})
}

// recordingHooks calls functions of a test.
type recordingHooks struct {
	begins  func(ctx context.Context, op OpCode, path string) func(CallEnd)
	changed func(Status)
}

func (h recordingHooks) CallBegins(ctx context.Context, op OpCode, path string) func(CallEnd) {
	return h.begins(ctx, op, path)
}

func (h recordingHooks) StateChanged(s Status) { h.changed(s) }
