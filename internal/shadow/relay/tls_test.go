package relay_test

import (
	"crypto/tls"
	"net"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"bellwether/internal/authority"
	"bellwether/internal/secure"
	"bellwether/internal/shadow"
	"bellwether/internal/shadow/relay"
	"bellwether/wire"
)

// stores opens stores with certificates that an authority has made in a folder.
type stores struct {
	t   *testing.T
	dir string
}

func newStores(t *testing.T) stores {
	t.Helper()
	s := stores{t, t.TempDir()}
	subjects := []authority.Subject{{File: "server", Name: "server", Hosts: []string{"127.0.0.1"}}, {File: "alice", Name: "alice"}, {File: "bob", Name: "bob"}}
	if _, err := authority.Init(authority.Plan{Dir: s.dir, Now: time.Now(), Subjects: subjects}); err != nil {
		t.Fatal(err)
	}
	return s
}

// store opens a store with the certificate of a name; empty: without one.
func (s stores) store(f secure.Family, name string) *secure.Store {
	s.t.Helper()
	prefix := string(f)
	values := map[string]secure.Value{prefix + "trustStore.location": {Text: filepath.Join(s.dir, authority.CertFile)},
		prefix + "trustStore.type": {Text: "PEM"}, prefix + "keyStore.type": {Text: "PEM"}}
	if f == secure.Clients {
		values[prefix+"clientAuth"] = secure.Value{Text: "want"}
	}
	if name != "" {
		values[prefix+"keyStore.location"] = secure.Value{Text: filepath.Join(s.dir, name)}
	}
	settings, err := secure.Parse(f, values)
	if err != nil {
		s.t.Fatal(err)
	}
	store, err := secure.Open(settings)
	if err != nil {
		s.t.Fatal(err)
	}
	return store
}

// serve starts a fake server with TLS.
func (s stores) serve(answer handler) *fake {
	s.t.Helper()
	config, err := s.store(secure.Clients, "server").Server()
	if err != nil {
		s.t.Fatal(err)
	}
	return start(&fake{Listener: tls.NewListener(listen(s.t), config), answer: answer})
}

// dial opens a session with the certificate of a name. It returns nil if it is refused.
func (s stores) dial(addr, name string) *session {
	s.t.Helper()
	conn, err := tls.Dial("tcp", addr, s.store(secure.Programs, name).Client(s.t.Context(), "127.0.0.1", addressOf(addr)))
	if err != nil {
		s.t.Fatal(err)
	}
	return begin(s.t, conn)
}

// TestTLS has clients with and without a certificate. Both servers see the same certificate, and replies are compared.
func TestTLS(t *testing.T) {
	s := newStores(t)
	for name, data := range map[string]string{"alice": "data", "": "data", "bob": "datb"} {
		old, observer := s.serve(holds(9, "data")), s.serve(holds(9, data))
		with := []*secure.Store{s.store(secure.Programs, "alice"), s.store(secure.Programs, ""), s.store(secure.Programs, "bob")}
		r := runWith(t, relay.Options{Old: []string{old.Addr().String()}, Observer: observer.Addr().String(), ListenTLS: s.store(secure.Clients, "server"), OldTLS: with, ObserverTLS: with})
		if err := r.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		c := s.dial(r.addr, name)
		c.get()
		r.await(t, "comparison", replies(wire.OpGetData, 1))
		want := ""
		if name != "" {
			want = "CN=" + name
		}
		differing := int64(0)
		if data == "datb" {
			differing = 1
		}
		if tally := r.end().Operations["getData"]; old.shown != want || observer.shown != want || tally.Differing != differing || tally.Equal != 1-differing {
			t.Errorf("%q: old server sees %q, observer %q: %+v", name, old.shown, observer.shown, tally)
		}
	}
}

// TestNobodyActsAsSomebodyElse: a client whose certificate shadow does not have is not connected to an old server.
func TestNobodyActsAsSomebodyElse(t *testing.T) {
	s := newStores(t)
	old, observer := s.serve(holds(9, "data")), s.serve(holds(9, "data"))
	alice := []*secure.Store{s.store(secure.Programs, "alice")}
	r := runWith(t, relay.Options{Old: []string{old.Addr().String()}, Observer: observer.Addr().String(), ListenTLS: s.store(secure.Clients, "server"), OldTLS: alice, ObserverTLS: alice})
	for _, name := range []string{"bob", ""} {
		conn, err := tls.Dial("tcp", r.addr, s.store(secure.Programs, name).Client(t.Context(), "127.0.0.1", addressOf(r.addr)))
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(waitMax))
		conn.Write(wire.AppendFrame(nil, &wire.ConnectRequest{Password: make([]byte, wire.PasswordLen)}))
		if n, err := conn.Read(make([]byte, 1)); n > 0 || err == nil {
			t.Errorf("%q is connected", name)
		}
		conn.Close()
	}
	if r.end(); old.hosted != 0 {
		t.Errorf("%d connections", old.hosted)
	}
}

// TestTLSOnOneSide: clients without TLS act with the first certificate; an observer without TLS does not know them.
func TestTLSOnOneSide(t *testing.T) {
	s := newStores(t)
	old := s.serve(holds(9, "data"))
	refuses := serve(t, func(op wire.OpCode, body []byte) (wire.ReplyHeader, wire.Record) {
		if op == wire.OpGetData {
			return wire.ReplyHeader{Zxid: 9, Err: wire.ErrNoAuth}, nil
		}
		return holds(9, "data")(op, body)
	})
	for _, opt := range []relay.Options{
		{Observer: refuses.Addr().String()},
		{Observer: s.serve(holds(9, "data")).Addr().String(), ObserverTLS: []*secure.Store{s.store(secure.Programs, "")}},
	} {
		opt.Old, opt.OldTLS = []string{old.Addr().String()}, []*secure.Store{s.store(secure.Programs, "alice"), s.store(secure.Programs, "bob")}
		r := runWith(t, opt)
		dial(t, r.addr).get()
		r.await(t, "comparison", replies(wire.OpGetData, 1))
		if tally := r.end().Operations["getData"]; old.shown != "CN=alice" || tally.NotCompared[shadow.UnsureRights] != 1 {
			t.Errorf("the old server sees %q: %+v", old.shown, tally)
		}
	}
}

func addressOf(addr string) netip.Addr {
	at, _ := net.ResolveTCPAddr("tcp", addr)
	return at.AddrPort().Addr().Unmap()
}
