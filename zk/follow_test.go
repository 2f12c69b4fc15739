package zk

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/wire"
)

// configured is an ensemble whose configuration the test changes.
type configured struct {
	*ensemble
	mu   sync.Mutex
	text string
	code wire.Code
}

func newConfigured(t *testing.T, text string) *configured {
	e := &configured{ensemble: newEnsemble(t), text: text}
	e.serve = func(p *peer, h wire.RequestHeader, body []byte) bool {
		if h.Op != wire.OpGetData || pathOf(h.Op, body) != configPath {
			return false
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.code != wire.OK {
			p.reply(h.Xid, e.code, nil)
		} else {
			p.reply(h.Xid, wire.OK, &wire.DataResponse{Data: []byte(e.text)})
		}
		return true
	}
	return e
}

// change changes the configuration, and lets the connected server report that.
func (e *configured) change(text string) {
	e.mu.Lock()
	e.text = text
	e.mu.Unlock()
	e.peer().event(200, wire.EventNodeDataChanged, configPath)
}

// TestFollowMembers: a client with FollowMembers moves with its session to a server of the new configuration. It stays
// where it is if that server remains, or if the configuration does not say where all members serve clients.
func TestFollowMembers(t *testing.T) {
	for _, chroot := range []string{"", "/app"} {
		bubble(t, func(t *testing.T) {
			e := newConfigured(t, "server.1=10.0.0.1:2888:3888:participant;0.0.0.0:2181\nversion=100000001")
			c := e.connect(Options{FollowMembers: true}, "10.0.0.1"+chroot)
			session := c.Session().ID
			stands := func(want string) {
				t.Helper()
				time.Sleep(time.Second) // in the bubble: until all is done
				synctest.Wait()
				if s := c.State(); s.State != Connected || s.Server != want || s.Session != session {
					t.Errorf("the client is %+v, want session %v at %s", s, session, want)
				}
			}
			stands("10.0.0.1:2181")
			e.change("server.1=10.0.0.1:2888:3888;2181\nserver.2=10.0.0.2:2888:3888;2182\nversion=200000001")
			stands("10.0.0.1:2181")
			e.change("server.2=10.0.0.2:2888:3888\nversion=300000001") // nobody knows the port for clients
			stands("10.0.0.1:2181")
			e.change("server.2=10.0.0.2:2888:3888;2182\nversion=400000001")
			stands("10.0.0.2:2182")
			e.change("server.3=10.0.0.3:2888:3888:observer;10.1.0.3:2183\nversion=500000001") // the watch is set on the new server
			stands("10.1.0.3:2183")
		})
	}
}

// TestFollowMembersAfterAnExpiry: the new session watches the configuration too. A refused read ends that.
func TestFollowMembersAfterAnExpiry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newConfigured(t, "server.1=10.0.0.1:2888:3888;2181")
		gone := false
		e.greet = func(_ *peer, req wire.ConnectRequest) *wire.ConnectResponse {
			if req.Session != 0 && !gone {
				gone = true
				return refused()
			}
			return e.accept(req)
		}
		c := e.connect(Options{FollowMembers: true})
		time.Sleep(time.Second)
		e.cut()
		time.Sleep(time.Minute)
		if waitFor(t, c, Connected); !gone {
			t.Fatal("the session has not expired")
		}
		e.change("server.2=10.0.0.2:2888:3888;2182")
		time.Sleep(time.Second)
		if s := c.State(); s.Server != "10.0.0.2:2182" {
			t.Errorf("the client is at %s", s.Server)
		}
		e.mu.Lock()
		e.code = wire.ErrNoAuth
		e.mu.Unlock()
		e.change("server.3=10.0.0.3:2888:3888;2183")
		time.Sleep(time.Minute)
		if n := len(slices.DeleteFunc(e.log(), func(r string) bool { return !strings.Contains(r, configPath) })); n > 4 {
			t.Errorf("%d reads of the configuration", n)
		}
	})
}

// TestFollowMembersAfterAPassingError: errors of a busy server do not end it. The pauses between the reads grow to 2 s,
// and end with the client.
func TestFollowMembersAfterAPassingError(t *testing.T) {
	for _, code := range []wire.Code{wire.ErrThrottledOp, wire.ErrOperationTimeout, wire.ErrSystem, wire.ErrNewConfigNoQuorum} {
		bubble(t, func(t *testing.T) {
			e := newConfigured(t, "server.1=10.0.0.1:2888:3888;2181")
			c := e.connect(Options{FollowMembers: true})
			time.Sleep(time.Second)
			refuse := func(code wire.Code) {
				e.mu.Lock()
				e.code = code
				e.mu.Unlock()
			}
			refuse(code)
			e.change("server.2=10.0.0.2:2888:3888;2182")
			before := len(e.log())
			time.Sleep(time.Minute)
			if n := len(e.log()) - before; n < 30 || n > 40 {
				t.Errorf("%v: %d reads in a minute, want one every 2 s", code, n)
			}
			refuse(wire.OK)
			time.Sleep(5 * time.Second)
			if s := c.State(); s.Server != "10.0.0.2:2182" {
				t.Errorf("%v: the client is at %s", code, s.Server)
			}
			refuse(code)
			e.change("server.3=10.0.0.3:2888:3888;2183")
			time.Sleep(time.Minute)
			began := time.Now()
			c.stop()
			if took := time.Since(began); took > 0 {
				t.Errorf("%v: the client ended after %v", code, took)
			}
		})
	}
}

// TestFollowMembersOfABusyClient: a client whose queue is full reads the configuration later.
func TestFollowMembersOfABusyClient(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newConfigured(t, "server.1=10.0.0.1:2888:3888;2181")
		var busy atomic.Bool
		config := e.serve
		e.serve = func(p *peer, h wire.RequestHeader, body []byte) bool {
			return h.Op == wire.OpExists && busy.Load() || config(p, h, body)
		}
		c := e.connect(Options{FollowMembers: true, QueueMax: 1})
		time.Sleep(time.Second)
		busy.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		go c.Exists(ctx, "/x")
		synctest.Wait()
		e.change("server.2=10.0.0.2:2888:3888;2182")
		time.Sleep(time.Second)
		if s := c.State(); s.Server != "10.0.0.1:2181" {
			t.Fatalf("the client is at %s, so this test shows nothing", s.Server)
		}
		busy.Store(false)
		cancel()
		e.cut() // the call that waits for its answer ends with the connection
		time.Sleep(10 * time.Second)
		if s := c.State(); s.Server != "10.0.0.2:2182" {
			t.Errorf("the client is at %s", s.Server)
		}
	})
}

func TestFollowMembersWithTLS(t *testing.T) {
	if _, err := Open("10.0.0.1", &Options{FollowMembers: true, TLSFiles: &TLSFiles{}}); !errors.Is(err, errNoTLSPorts) {
		t.Errorf("Open returned %v", err)
	}
}

func TestParseMembers(t *testing.T) {
	for _, x := range []struct{ text, want string }{
		{"server.1=a:1:2:participant;3", "a:3"},
		{"server.1=a:1:2:participant;0.0.0.0:3\nserver.2=b:1:2:observer;c:4\ngroup.1=1:2\nversion=5", "a:3 c:4"},
		{"server.1=[fe80::1]:1:2;[::]:3", "[fe80::1]:3"},
		{"server.1=a:1:2;[fe80::2]:3", "[fe80::2]:3"},
		{"server.1=a:1:2|b:1:2|a:5:6;3", "a:3 b:3"},
		{"server.1=a:1:2;3\nserver.2=b:1:2", ""},
		{"server.1=a:1:2;0", ""},
		{"server.1=a:1:2;x:y", ""},
		{"version=5", ""},
		{"", ""},
	} {
		list, err := parseMembers(x.text)
		var got []string
		for _, s := range list {
			got = append(got, s.String())
		}
		if s := strings.Join(got, " "); s != x.want || (err == nil) != (x.want != "") {
			t.Errorf("%q: %q, %v, want %q", x.text, s, err, x.want)
		}
	}
}
