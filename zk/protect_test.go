package zk

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/wire"
)

// shelf is an ensemble with one directory of znodes. The test chooses the outcome of each create.
type shelf struct {
	*ensemble
	nodes map[string]wire.SessionID
	fates []string // outcomes of the creates, in order: "" answered, "lost" carried out and not answered, "cut" not carried out
	tries int
}

func newShelf(t *testing.T, fates ...string) *shelf {
	s := &shelf{ensemble: newEnsemble(t), nodes: map[string]wire.SessionID{}, fates: fates}
	s.serve = s.handle
	return s
}

func (s *shelf) handle(p *peer, h wire.RequestHeader, body []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := pathOf(h.Op, body)
	if h.Op == wire.OpCreate2 && !strings.Contains(at, "n_") {
		p.conn.Write(wire.AppendFrame(nil, &wire.ReplyHeader{Xid: h.Xid, Zxid: s.zxid, Err: wire.ErrNoNode}))
		return true // this request only asks whether the server knows create2
	}
	var resp wire.Record
	code := wire.OK
	switch h.Op {
	case wire.OpCreate2:
		fate := ""
		if s.tries < len(s.fates) {
			fate = s.fates[s.tries]
		}
		s.tries++
		if fate != "cut" {
			at = fmt.Sprintf("%s%010d", at, s.tries)
			s.nodes[at] = p.session
		}
		if fate != "" {
			p.conn.Close()
			return true
		}
		resp = &wire.PathStatResponse{Path: at, Stat: wire.Stat{EphemeralOwner: s.nodes[at]}}
	case wire.OpGetChildren2:
		names := []string{"unrelated"}
		for n := range s.nodes {
			names = append(names, path.Base(n))
		}
		resp = &wire.ChildrenStatResponse{Children: names}
	case wire.OpExists:
		owner, ok := s.nodes[at]
		if !ok {
			code = wire.ErrNoNode
			break
		}
		resp = &wire.StatResponse{Stat: wire.Stat{EphemeralOwner: owner, Czxid: 7}}
	case wire.OpDelete:
		delete(s.nodes, at)
	default:
		return false
	}
	out := []wire.Record{&wire.ReplyHeader{Xid: h.Xid, Zxid: s.zxid, Err: code}}
	if resp != nil && code == wire.OK {
		out = append(out, resp)
	}
	p.conn.Write(wire.AppendFrame(nil, out...))
	return true
}

func (s *shelf) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for n := range s.nodes {
		out = append(out, n)
	}
	return out
}

// TestCreateProtectedSurvivesLostAnswers: whatever is lost, exactly one znode exists at the end, and it
// is this client's.
func TestCreateProtectedSurvivesLostAnswers(t *testing.T) {
	for _, fates := range [][]string{{}, {"lost"}, {"cut"}, {"cut", "lost"}, {"cut", "cut", "cut"}} {
		t.Run(fmt.Sprint(fates), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				e := newShelf(t, fates...)
				c := e.connect(Options{}, "10.0.0.1/app")
				made, stat, err := c.CreateProtected(t.Context(), "/jobs/n_", nil, Ephemeral, Sequential)
				if err != nil {
					t.Fatal(err)
				}
				nodes := e.names()
				if len(nodes) != 1 || nodes[0] != "/app"+made || stat.EphemeralOwner != 1 {
					t.Errorf("made %s of %s, the server has %q", made, stat.EphemeralOwner, nodes)
				}
				name := path.Base(made)
				if len(name) != 32+len("-n_")+10 || name[32:35] != "-n_" || strings.Trim(name[:32], "0123456789abcdef") != "" {
					t.Errorf("name is %q, want 32 hex digits, -n_ and a number", name)
				}
			})
		})
	}
}

// TestCreateProtectedAcrossSessions: a session that expires while a create is outstanding takes the
// ephemeral with it.
func TestCreateProtectedAcrossSessions(t *testing.T) {
	for _, mode := range []Mode{Ephemeral, Persistent} {
		t.Run(fmt.Sprint(mode), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				e := newShelf(t, "lost")
				e.greet = func(p *peer, req wire.ConnectRequest) *wire.ConnectResponse {
					if p.n == 1 {
						return refused()
					}
					return e.accept(req)
				}
				c := e.connect(Options{})
				made, _, err := c.CreateProtected(t.Context(), "/n_", nil, mode, Sequential)
				if mode == Ephemeral {
					if !errors.Is(err, ErrSessionExpired) || isLost(err) {
						t.Errorf("error is %v, want ErrSessionExpired", err)
					}
					return
				}
				if nodes := e.names(); err != nil || len(nodes) != 1 || nodes[0] != made {
					t.Errorf("made %s, %v; the server has %q", made, err, nodes)
				}
			})
		})
	}
}

// TestCreateProtectedBoundToASession: a caller that is bound to a session is told at the end of the
// session that the outcome is unknown. The znode outlives the session, and is removed nevertheless.
func TestCreateProtectedBoundToASession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newShelf(t, "lost")
		e.greet = func(p *peer, req wire.ConnectRequest) *wire.ConnectResponse {
			if p.n == 1 {
				return refused()
			}
			return e.accept(req)
		}
		c := e.connect(Options{})
		_, _, err := c.CreateProtected(InSession(t.Context(), c.Session().ID), "/n_", nil, Sequential)
		if !isLost(err) {
			t.Errorf("error is %v, want an unknown outcome", err)
		}
		waitFor(t, c, Connected)
		synctest.Wait()
		if nodes := e.names(); len(nodes) != 0 {
			t.Errorf("the server still has %q", nodes)
		}
	})
}

// TestCreateProtectedFails: the server's errors are returned, with the path that the caller gave.
func TestCreateProtectedFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.serve = func(p *peer, h wire.RequestHeader, _ []byte) bool {
			if h.Op == wire.OpCreate2 {
				p.reply(h.Xid, wire.ErrNoNode, nil)
			}
			return h.Op == wire.OpCreate2
		}
		c := e.connect(Options{})
		_, _, err := c.CreateProtected(t.Context(), "/gone/n_", nil)
		if want := "create /gone/n_: node does not exist"; err == nil || err.Error() != want {
			t.Errorf("error is %v, want %s", err, want)
		}
		if _, _, err := c.CreateProtected(t.Context(), "no/slash", nil); !errors.Is(err, ErrBadArguments) {
			t.Errorf("error is %v", err)
		}
	})
}

// TestCleanUpGoesOn: the clean-up after a cancelled call continues over lost connections, and ends with
// the client.
func TestCleanUpGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newShelf(t, "lost")
		c := e.connect(Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		e.greetAfter(10 * time.Second)
		if _, _, err := c.CreateProtected(ctx, "/n_", nil, Sequential); !isLost(err) {
			t.Errorf("error is %v, want a lost write", err)
		}
		if nodes := e.names(); len(nodes) != 1 {
			t.Fatalf("the server has %q", nodes)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if nodes := e.names(); len(nodes) != 0 {
			t.Errorf("the server still has %q", nodes)
		}
	})
}

// greetAfter refuses connections for a while.
func (e *ensemble) greetAfter(d time.Duration) {
	began := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.greet = func(_ *peer, req wire.ConnectRequest) *wire.ConnectResponse {
		if time.Since(began) < d {
			return nil
		}
		return e.accept(req)
	}
}

// TestCancelledInTheQueue: a create that is cancelled while it waits for a connection was never sent, so
// there is nothing to clean up.
func TestCancelledInTheQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newShelf(t)
		e.away.Store(true)
		c := e.open(Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := c.CreateProtected(ctx, "/n_", nil, Ephemeral); !errors.Is(err, context.DeadlineExceeded) || isLost(err) {
			t.Errorf("error is %v", err)
		}
		e.away.Store(false)
		waitFor(t, c, Connected)
		time.Sleep(time.Second)
		if log := e.log(); len(log) != 0 {
			t.Errorf("the server saw %q", log)
		}
	})
}

func TestCreateOptions(t *testing.T) {
	cases := []struct {
		opts  []CreateOption
		op    wire.OpCode
		flags int32
		ok    bool
	}{
		{nil, wire.OpCreate2, 0, true},
		{[]CreateOption{Persistent}, wire.OpCreate2, 0, true},
		{[]CreateOption{Ephemeral}, wire.OpCreate2, 1, true},
		{[]CreateOption{Sequential}, wire.OpCreate2, 2, true},
		{[]CreateOption{Sequential, Ephemeral}, wire.OpCreate2, 3, true},
		{[]CreateOption{Ephemeral | Sequential}, wire.OpCreate2, 3, true},
		{[]CreateOption{Container}, wire.OpCreateContainer, 4, true},
		{[]CreateOption{TTL(time.Second)}, wire.OpCreateTTL, 5, true},
		{[]CreateOption{TTL(time.Second), Sequential}, wire.OpCreateTTL, 6, true},
		{[]CreateOption{TTL(time.Second), Ephemeral}, 0, 0, false},
		{[]CreateOption{TTL(time.Second), Container}, 0, 0, false},
		{[]CreateOption{Container, Sequential}, 0, 0, false},
		{[]CreateOption{Container, Ephemeral}, 0, 0, false},
	}
	for _, x := range cases {
		var req wire.CreateTTLRequest
		spec := specOf(x.opts)
		op, ok := spec.request("/a", nil, &req)
		if op != x.op || ok != x.ok || ok && req.Flags != x.flags {
			t.Errorf("%v: %s with flags %d, %v; want %s with %d, %v", x.opts, op, req.Flags, ok, x.op, x.flags, x.ok)
		}
		if op == wire.OpCreateTTL && req.TTL != 1000 {
			t.Errorf("%v: TTL is %d ms", x.opts, req.TTL)
		}
		if ok && !slices.Equal(req.ACL, wire.OpenACL()) {
			t.Errorf("%v: ACL is %v", x.opts, req.ACL)
		}
	}
	bubble(t, func(t *testing.T) {
		c := newEnsemble(t).connect(Options{})
		if _, _, err := c.Create(t.Context(), "/a", nil, Container, Ephemeral); !errors.Is(err, ErrBadArguments) {
			t.Errorf("error is %v", err)
		}
	})
}
