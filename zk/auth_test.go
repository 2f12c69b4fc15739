package zk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/wire"
)

// TestRefusedCredentialIsFinal: a refused credential of the options finishes the client.
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

// refuseAuth refuses credentials that contain this text, as servers do.
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

// TestRefusedAddAuth: a refused AddAuth costs the connection; the session and the others
// stay.
func TestRefusedAddAuth(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.refuseAuth("bad")
		c := e.connect(Options{})
		for range 2 { // a known credential is not stored twice
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

// TestRequiredAuthenticationIsFinal: a server that wants authentication and does not get
// it is no server to come back to.
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

// TestDigestMD5: the exchange recorded from a 3.8.0 server.
func TestDigestMD5(t *testing.T) {
	d := &digestMD5{user: "bob", password: "bobsecret", cnonce: "0123456789abcdef"}
	if token, done, err := d.Step(nil); len(token) != 0 || token == nil || done || err != nil {
		t.Fatalf("first step: %q, %v, %v", token, done, err)
	}
	token, done, err := d.Step([]byte(`realm="zk-sasl-md5",nonce="zK6o/7qVnZ+HfCLurNdOZ4CUi4nIt2c17/QoL/f5",charset=utf-8,algorithm=md5-sess`))
	f := parseDigest(string(token))
	if err != nil || done || f["response"] != "6c861ee0cc04894459329ec79988cac7" || f["username"] != "bob" || f["qop"] != "auth" {
		t.Fatalf("second step: %s, %v, %v", token, done, err)
	}
	if _, _, err := (&digestMD5{step: 2, proof: d.proof}).Step([]byte("rspauth=00")); err == nil {
		t.Error("a server that does not know the password is accepted")
	}
	if token, done, err := d.Step([]byte("rspauth=9c55bd55791d576f99a988d67413100e")); token != nil || !done || err != nil {
		t.Errorf("last step: %q, %v, %v", token, done, err)
	}
}

func TestDigestMD5RefusesOtherChallenges(t *testing.T) {
	for _, challenge := range []string{"", "x", `nonce="a"`, `realm="r",nonce="",algorithm=md5-sess`, `nonce="n",algorithm=md5`} {
		d := &digestMD5{step: 1}
		if token, _, err := d.Step([]byte(challenge)); err == nil {
			t.Errorf("challenge %q was answered with %q", challenge, token)
		}
	}
}

func TestParseDigest(t *testing.T) {
	got := parseDigest(`a=1,b="two, \"quoted\"",  c="",d=last`)
	if want := map[string]string{"a": "1", "b": `two, "quoted"`, "c": "", "d": "last"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// FuzzDigest: whatever is quoted reads back, and no input makes the parser fail.
func FuzzDigest(f *testing.F) {
	f.Add("bob", `realm="x",nonce="y"`)
	f.Add(`a"b\c`, `a="\`)
	f.Fuzz(func(t *testing.T, user, challenge string) {
		parseDigest(challenge)
		if got := parseDigest("username=" + quoteDigest(user))["username"]; got != user {
			t.Errorf("%q reads back as %q", user, got)
		}
	})
}

// saslServer answers tokens by a script: the n-th token gets the n-th answer.
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

// echoSASL returns each challenge until it reads "end".
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
				var server string
				c := e.open(Options{SASL: func(_ context.Context, s string) (SASL, error) {
					server = s
					return echoSASL{}, nil
				}})
				waitFor(t, c, x.want)
				if server != "10.0.0.1:2181" {
					t.Errorf("the exchange was for %q", server)
				}
			})
		})
	}
}

// TestSASLThatCannotBeginIsNoRefusal: what stands in the way of an exchange, say a ticket
// that is not to be had, says nothing about the credentials either.
func TestSASLThatCannotBeginIsNoRefusal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.saslServer(token([]byte("end")))
		tries := 0
		waitFor(t, e.open(Options{SASL: func(context.Context, string) (SASL, error) {
			if tries++; tries < 3 {
				return nil, errors.New("no ticket")
			}
			return echoSASL{}, nil
		}}), Connected)
	})
}

// TestSASLCutIsNoRefusal: the connection ends within the exchange: that says nothing about
// the credentials.
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
		c := e.open(Options{SASL: func(context.Context, string) (SASL, error) { return echoSASL{}, nil }})
		waitFor(t, c, Connected)
	})
}

// TestReadOnlyServerIsLeft: a read-only server is accepted when asked for; the client asks
// the others and moves to the first that has a quorum, with a new session if it had none.
func TestReadOnlyServerIsLeft(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		readOnly := "10.0.0.1:2181"
		var healed atomic.Bool
		e.refuse = func(address string) error {
			if address != readOnly && !healed.Load() {
				return errNobodyHome
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

// TestReplyHeaderInPlaceOfASession: a server without local sessions answers a read-only
// handshake with a reply's header; that is no session.
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
