package server

import (
	"fmt"
	"testing"

	"bellwether/internal/store"
	"bellwether/wire"
)

func auth(scheme wire.NullString, secret []byte) *wire.AuthRequest {
	return &wire.AuthRequest{Scheme: scheme, Auth: secret}
}

// TestAuthPackets shows which identities auth packets prove, and which packets close the
// connection.
func TestAuthPackets(t *testing.T) {
	s := start(t, Options{})
	for _, a := range []struct {
		name string
		q    *wire.AuthRequest
		want wire.Code
	}{
		{"digest", auth(wire.Text("digest"), []byte("bob:pw")), wire.OK},
		{"digest without a colon", auth(wire.Text("digest"), []byte("x")), wire.OK},
		{"digest with empty data", auth(wire.Text("digest"), []byte{}), wire.OK},
		{"digest with null data", auth(wire.Text("digest"), nil), wire.ErrAuthFailed},
		{"ip", auth(wire.Text("ip"), nil), wire.OK},
		{"x509 over plain TCP", auth(wire.Text("x509"), []byte("CN=a")), wire.ErrAuthFailed},
		{"world", auth(wire.Text("world"), []byte("anyone")), wire.ErrAuthFailed},
		{"auth", auth(wire.Text("auth"), nil), wire.ErrAuthFailed},
		{"sasl", auth(wire.Text("sasl"), []byte("bob")), wire.ErrAuthFailed},
		{"super", auth(wire.Text("super"), nil), wire.ErrAuthFailed},
		{"unknown", auth(wire.Text("nosuch"), []byte("x")), wire.ErrAuthFailed},
		{"null scheme", auth(wire.NullString{}, []byte("x")), wire.ErrAuthFailed},
	} {
		t.Run(a.name, func(t *testing.T) {
			c := s.connect()
			c.t = t
			c.write(request(33, wire.OpAuth, a.q))
			if h := c.reply(nil); h != (wire.ReplyHeader{Xid: 33, Err: a.want}) {
				t.Errorf("%+v, want %v", h, a.want)
			}
			if a.want == wire.OK {
				c.must(wire.OpPing, nil, nil)
			} else {
				c.closed()
			}
		})
	}
}

// TestWhoAmI shows that whoAmI lists the identities, and of a digest identity only the
// user.
func TestWhoAmI(t *testing.T) {
	o := Options{Config: testConfig()}
	o.Config.Access.SuperDigest = "super:D/InIHSb7yEEbrWz8b9l71RjZJU=" // of super:test
	c := start(t, o).connect()
	var r wire.WhoAmIResponse
	c.must(wire.OpWhoAmI, nil, &r)
	if len(r.Clients) != 1 || r.Clients[0] != (wire.ClientInfo{Scheme: "ip", User: "127.0.0.1"}) {
		t.Errorf("new connection: %+v", r.Clients)
	}
	c.must(wire.OpAuth, auth(wire.Text("digest"), []byte("bob:pw")), nil)
	c.must(wire.OpAuth, auth(wire.Text("digest"), []byte("bob:pw")), nil)
	c.must(wire.OpAuth, auth(wire.Text("digest"), []byte("super:test")), nil)
	c.must(wire.OpWhoAmI, nil, &r)
	want := []wire.ClientInfo{{Scheme: "ip", User: "127.0.0.1"}, {Scheme: "digest", User: "bob"}, {Scheme: "digest", User: "super"}, {Scheme: "super"}}
	if len(r.Clients) != len(want) {
		t.Fatalf("%+v", r.Clients)
	}
	for i := range want {
		if r.Clients[i] != want[i] {
			t.Errorf("%d: %+v, want %+v", i, r.Clients[i], want[i])
		}
	}
}

// TestIdentitiesAreLimited shows that both the number and the bytes of the identities of a
// connection are limited, and that a connection that exceeds a limit is closed.
func TestIdentitiesAreLimited(t *testing.T) {
	s := start(t, Options{})
	for name, bytes := range map[string]int{"number": 1, "bytes": identityBytesMax / 8} {
		t.Run(name, func(t *testing.T) {
			c := s.connect()
			c.t = t
			for ids, h := 1, (wire.ReplyHeader{}); h.Err == wire.OK; ids++ { // the first one is the address
				if ids > identitiesMax || ids*bytes > identityBytesMax {
					t.Fatalf("%d identities of %d bytes", ids, bytes)
				}
				c.write(request(33, wire.OpAuth, auth(wire.Text("digest"), fmt.Appendf(nil, "%0*d:pw", bytes, ids))))
				if h = c.reply(nil); h.Err != wire.OK && h.Err != wire.ErrAuthFailed {
					t.Fatalf("%+v", h)
				}
			}
			c.closed()
		})
	}
}

// TestCredentialsThatAreNotUTF8: a credential may be invalid UTF-8 or hold a character
// outside the basic plane. Its owner then has access to the owner's znode at once and
// after a restart: the identity is the same text in memory, in the log and in a snapshot.
func TestCredentialsThatAreNotUTF8(t *testing.T) {
	credentials := []string{"m\xfcller:secret", "anna:stra\xdfe", "\xff\xed\xa0\x80:\xc0", "\U0001f600:secret"}
	disk := store.NewMem(1)
	login := func(s *running, i int) *client {
		c := s.connect()
		c.must(wire.OpAuth, auth(wire.Text("digest"), []byte(credentials[i])), nil)
		return c
	}
	r := start(t, Options{FS: disk})
	for i := range credentials {
		own := create(fmt.Sprint("/own", i), "mine")
		own.ACL = wire.CreatorACL()
		c := login(r, i)
		c.must(wire.OpCreate, own, nil)
		c.data(own.Path)
		var list wire.ACLResponse
		c.must(wire.OpGetACL, &wire.PathRequest{Path: own.Path}, &list)
		if want := wire.DigestID(credentials[i]); len(list.ACL) != 1 || list.ACL[0].ID.ID != want {
			t.Errorf("the list is %q, want the id %q", list.ACL, want)
		}
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	r = start(t, Options{FS: disk})
	for i, credential := range credentials {
		if got := login(r, i).data(fmt.Sprint("/own", i)); got != "mine" {
			t.Errorf("%q reads %q after a restart", credential, got)
		}
	}
}

// TestIdentitiesReachTheTree: requests after an auth packet carry its identity, even if
// they are pipelined or wait for a write. The super user has access to everything.
func TestIdentitiesReachTheTree(t *testing.T) {
	o := Options{Config: testConfig()}
	o.Config.Access.SuperDigest = "super:D/InIHSb7yEEbrWz8b9l71RjZJU="
	s := start(t, o)
	c := s.connect()
	own := create("/own", "secret")
	own.ACL = wire.CreatorACL()
	if h := c.call(wire.OpCreate, own, nil); h.Err != wire.ErrInvalidACL {
		t.Fatalf("creator ACL without an identity: %v", h.Err)
	}
	out := request(1, wire.OpAuth, auth(wire.Text("digest"), []byte("bob:pw")))
	out = append(out, request(2, wire.OpCreate, own)...)
	out = append(out, request(3, wire.OpGetData, &wire.PathWatchRequest{Path: "/own"})...)
	c.write(out)
	for xid := int32(1); xid <= 3; xid++ {
		if h := c.reply(nil); h.Xid != xid || h.Err != wire.OK {
			t.Fatalf("%+v", h)
		}
	}
	other := s.connect()
	if h := other.call(wire.OpGetData, &wire.PathWatchRequest{Path: "/own"}, nil); h.Err != wire.ErrNoAuth {
		t.Errorf("another user reads: %v", h.Err)
	}
	other.must(wire.OpAuth, auth(wire.Text("digest"), []byte("super:test")), nil)
	if other.data("/own") != "secret" {
		t.Error("the super user has no access")
	}
}

// TestSASLNotConfigured: without SASL the exchange ends at once and proves nothing.
func TestSASLNotConfigured(t *testing.T) {
	c := start(t, Options{}).connect()
	r := wire.SASLResponse{Token: []byte("x")}
	if h := c.call(wire.OpSASL, &wire.SASLRequest{Token: []byte{}}, &r); h.Err != wire.OK || h.Zxid != 0 || r.Token != nil {
		t.Errorf("%+v %q", h, r.Token)
	}
	var who wire.WhoAmIResponse
	if c.must(wire.OpWhoAmI, nil, &who); len(who.Clients) != 1 {
		t.Errorf("%+v", who.Clients)
	}
}
