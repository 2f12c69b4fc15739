package zk

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/wire"
)

// TestRefusedCredentialIsFinal: if a server refuses a credential of the options, the client is closed.
func TestRefusedCredentialIsFinal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.refuseAuth("secret")
		c := e.open(Options{Auth: []Auth{{"digest", []byte("a:secret")}}})
		s := waitFor(t, c, AuthFailed)
		if !errors.Is(s.Err, ErrAuthFailed) {
			t.Errorf("status is %+v", s)
		}
		synctest.Wait()
		if _, _, err := c.Get(t.Context(), "/a"); !errors.Is(err, ErrAuthFailed) {
			t.Errorf("call: %v", err)
		}
		_, err := Connect(t.Context(), "10.0.0.1", &Options{Dial: e.dial, Auth: []Auth{{"digest", []byte("a:secret")}}})
		if !errors.Is(err, ErrAuthFailed) {
			t.Errorf("connect: %v", err)
		}
	})
}

// refuseAuth makes the servers refuse credentials that contain this text.
func (e *ensemble) refuseAuth(bad string) {
	e.serve = func(p *peer, h wire.RequestHeader, body []byte) bool {
		if h.Op != wire.OpAuth || !strings.Contains(string(body), bad) {
			return false
		}
		p.replyAt(h.Xid, 0, wire.ErrAuthFailed, nil)
		p.conn.Close()
		return true
	}
}

// TestRefusedAddAuth: a refused AddAuth ends the connection. The session and the other credentials stay.
func TestRefusedAddAuth(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.refuseAuth("bad")
		c := e.connect(Options{})
		for range 2 { // a credential that is stored already is not stored twice
			if err := c.AddAuth(t.Context(), Auth{"digest", []byte("good")}); err != nil {
				t.Error(err)
			}
		}
		if err := c.AddAuth(t.Context(), Auth{"digest", []byte("bad")}); !errors.Is(err, ErrAuthFailed) {
			t.Errorf("error is %v", err)
		}
		if err := c.Sync(t.Context(), "/"); err != nil {
			t.Error(err)
		}
		if got := count(e.log(), "auth "); got != 4 || c.Session().ID != 1 {
			t.Errorf("%d credentials sent in session %s, want good, good, bad, good", got, c.Session().ID)
		}
	})
}

// TestRequiredAuthenticationIsFinal: if a server requires an authentication that the client does not
// offer, the client does not connect to it again.
func TestRequiredAuthenticationIsFinal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.serve = func(p *peer, h wire.RequestHeader, _ []byte) bool {
			p.replyAt(h.Xid, 0, wire.ErrSessionClosedRequireAuth, nil)
			p.conn.Close()
			return true
		}
		c := e.open(Options{})
		if s := waitFor(t, c, AuthFailed); !errors.Is(s.Err, wire.ErrSessionClosedRequireAuth) {
			t.Errorf("status is %+v", s)
		}
	})
}

// saslServer answers the n-th token with the n-th answer of a list.
func (e *ensemble) saslServer(answers ...func(p *peer, xid int32)) {
	step := make(map[*peer]int)
	e.serve = func(p *peer, h wire.RequestHeader, _ []byte) bool {
		if h.Op != wire.OpSASL {
			return false
		}
		e.mu.Lock()
		n := step[p]
		step[p]++
		e.mu.Unlock()
		answers[n](p, h.Xid)
		return true
	}
}

func token(b []byte) func(p *peer, xid int32) {
	return func(p *peer, xid int32) { p.replyAt(xid, 0, 0, &wire.SASLResponse{Token: b}) }
}

// echoSASL is an exchange that returns each challenge until it reads "end".
type echoSASL struct{}

func (echoSASL) Step(challenge []byte) ([]byte, bool, error) {
	switch string(challenge) {
	case "end":
		return nil, true, nil
	case "fail":
		return nil, false, errors.New("the challenge is no good")
	case "last":
		return []byte("bye"), true, nil
	}
	return challenge, false, nil
}

func TestSASL(t *testing.T) {
	deny := func(p *peer, xid int32) {
		p.replyAt(xid, 0, wire.ErrAuthFailed, &wire.SASLResponse{})
		p.conn.Close()
	}
	cases := []struct {
		name    string
		answers []func(*peer, int32)
		want    State
	}{
		{"ends with the server's token", []func(*peer, int32){token([]byte("one")), token([]byte("end"))}, Connected},
		{"ends with the client's token", []func(*peer, int32){token([]byte("last")), token(nil)}, Connected},
		{"refused", []func(*peer, int32){token([]byte("one")), deny}, AuthFailed},
		{"not configured", []func(*peer, int32){token(nil)}, AuthFailed},
		{"the mechanism fails", []func(*peer, int32){token([]byte("fail"))}, AuthFailed},
		{"never ends", slices.Repeat([]func(*peer, int32){token([]byte("again"))}, saslStepsMax), AuthFailed},
	}
	for _, x := range cases {
		t.Run(x.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				e := newEnsemble(t)
				e.saslServer(x.answers...)
				var server Server
				c := e.open(Options{SASL: func(_ context.Context, s Server) (Exchange, error) {
					server = s
					return echoSASL{}, nil
				}})
				waitFor(t, c, x.want)
				if server != (Server{"10.0.0.1", "10.0.0.1:2181"}) {
					t.Errorf("the exchange was for %+v", server)
				}
			})
		})
	}
}

// TestSASLThatCannotBeginIsNoRefusal: an exchange that cannot begin, for example because no ticket can be
// obtained, does not show that the credentials are wrong.
func TestSASLThatCannotBeginIsNoRefusal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.saslServer(token([]byte("end")))
		tries := 0
		waitFor(t, e.open(Options{SASL: func(context.Context, Server) (Exchange, error) {
			if tries++; tries < 3 {
				return nil, errors.New("no ticket")
			}
			return echoSASL{}, nil
		}}), Connected)
	})
}

// TestSASLCutIsNoRefusal: a connection that ends during the exchange does not show that the credentials
// are wrong.
func TestSASLCutIsNoRefusal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.serve = func(p *peer, h wire.RequestHeader, _ []byte) bool {
			if h.Op == wire.OpSASL && p.n < 3 {
				p.conn.Close()
				return true
			}
			if h.Op == wire.OpSASL {
				token([]byte("end"))(p, h.Xid)
			}
			return h.Op == wire.OpSASL
		}
		c := e.open(Options{SASL: func(context.Context, Server) (Exchange, error) { return echoSASL{}, nil }})
		waitFor(t, c, Connected)
	})
}

// TestReadOnlyServerIsLeft: a client that accepts read-only servers stays connected to one while it asks
// the others. It moves to the first server that has a quorum, with a new session if it had none.
func TestReadOnlyServerIsLeft(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		readOnly := "10.0.0.1:2181"
		var healed atomic.Bool
		e.refuse = func(address string) error {
			if address != readOnly && !healed.Load() {
				return errNoListener
			}
			return nil
		}
		e.greet = func(p *peer, req wire.ConnectRequest) *wire.ConnectResponse {
			resp := e.accept(req)
			resp.ReadOnly = p.address == readOnly
			return resp
		}
		e.serve = func(p *peer, h wire.RequestHeader, _ []byte) bool {
			if p.address == readOnly && h.Op.IsWrite() {
				p.reply(h.Xid, wire.ErrNotReadOnly, nil)
				return true
			}
			return false
		}
		c := e.open(Options{ReadOnly: true}, "10.0.0.1")
		waitFor(t, c, ReadOnly)
		if _, err := c.Set(t.Context(), "/a", nil, 0); !errors.Is(err, ErrNotReadOnly) {
			t.Errorf("write: %v", err)
		}
		if l := c.Lease(); l.Session != 0 || l.Left() > 0 {
			t.Errorf("a read-only server proved %+v", l)
		}
		c.mu.Lock()
		c.servers = append(c.servers, server{"10.0.0.2", "2181"})
		c.mu.Unlock()
		time.Sleep(2 * time.Minute)
		if got := c.State().State; got != ReadOnly {
			t.Fatalf("state is %v while the other is away", got)
		}
		e.isro.Store("rw")
		healed.Store(true)
		s := waitFor(t, c, Connected)
		if s.Server != "10.0.0.2:2181" {
			t.Errorf("status is %+v", s)
		}
		if req := e.lastConnectRequest(); req.Session != 0 || !req.ReadOnly {
			t.Errorf("request is %+v, want a new session", req)
		}
	})
}

// TestReplyHeaderInPlaceOfASession: a server without local sessions answers a read-only handshake with
// the header of a reply. The client does not take the header for a session.
func TestReplyHeaderInPlaceOfASession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.greet = func(p *peer, req wire.ConnectRequest) *wire.ConnectResponse {
			if p.n == 0 {
				p.conn.Write(wire.AppendFrame(nil, &wire.ReplyHeader{Zxid: 5, Err: wire.ErrNotReadOnly}))
				return nil
			}
			return e.accept(req)
		}
		c := e.connect(Options{ReadOnly: true})
		if e.connections() != 2 {
			t.Errorf("%d connections", e.connections())
		}
		if got := c.State(); got.State != Connected {
			t.Errorf("status is %+v", got)
		}
	})
}
