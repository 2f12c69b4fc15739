package interop

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"bellwether/internal/peerwire"
	"bellwether/internal/sasl"
	"bellwether/internal/sasl/jaas"
	"bellwether/internal/sasl/kerberos"
	"bellwether/internal/sasl/quorumauth"
	"bellwether/interop/target"
	"bellwether/wire"
)

// quorumSASLTimeout bounds each exchange with a server that may still be starting.
const quorumSASLTimeout = time.Minute

// quorumLogin is one way in which servers log in to each other.
type quorumLogin struct {
	jaas       string   // the sections of the JAAS file
	properties []string // further Java properties
	// dial begins the exchange of a server that dials another one, and accept that of a server
	// that was dialled. A stranger is a server that does not belong to the ensemble.
	dial   func(t *testing.T, stranger bool) sasl.Exchange
	accept func(t *testing.T, stranger bool) sasl.Acceptor
	id     string // id of the server
}

// TestQuorumSASLPassword: on the election port a server of either kind accepts a peer that logs in with
// the password of the JAAS file, refuses one with another password, and logs in itself where it dials.
func TestQuorumSASLPassword(t *testing.T) {
	password := func(stranger bool) sasl.Secret {
		if stranger {
			return sasl.NewSecret("another")
		}
		return sasl.NewSecret("mypassword")
	}
	quorumLoginAtEach(t, quorumLogin{
		jaas: "QuorumServer { " + jaas.DigestModule + " required user_test=\"mypassword\"; };\n" +
			"QuorumLearner { " + jaas.DigestModule + " required username=\"test\" password=\"mypassword\"; };\n",
		id: "test",
		dial: func(_ *testing.T, stranger bool) sasl.Exchange {
			return sasl.NewDigestClient(sasl.DigestLogin{Service: sasl.QuorumService, User: "test", Password: password(stranger), AuthorizationID: "test"})
		},
		accept: func(_ *testing.T, stranger bool) sasl.Acceptor {
			users := sasl.NewDigestUsers(sasl.QuorumService, map[string]sasl.Secret{"test": password(stranger)})
			return sasl.NewDigestServer(users, sasl.AuthorizePeer(nil), "")
		},
	})
}

// TestQuorumSASLKerberos is the same with Kerberos, where a server recognises the members of its ensemble by the
// hosts in their principals.
func TestQuorumSASLKerberos(t *testing.T) {
	k := startKDC(t)
	const service, member = "zkquorum/localhost", "zkquorum/127.0.0.1"
	serviceKeys, memberKeys, strangerKeys := k.keytab(t, service, "", ""), k.keytab(t, member, "", ""), k.keytab(t, "zkquorum/elsewhere", "", "")
	section := func(name, principal, keytab string) string {
		b, err := os.ReadFile(k.jaas(t, name, principal, keytab))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	logins := map[bool]*kerberos.Login{
		false: k.login(t, kerberos.Config{Principal: member, KeyTab: memberKeys}),
		true:  k.login(t, kerberos.Config{Principal: "zkquorum/elsewhere", KeyTab: strangerKeys}),
	}
	accepting, err := kerberos.NewService(service+"@"+kdcRealm, serviceKeys)
	if err != nil {
		t.Fatal(err)
	}
	quorumLoginAtEach(t, quorumLogin{
		jaas:       section("QuorumServer", service, serviceKeys) + section("QuorumLearner", member, memberKeys),
		properties: []string{"java.security.krb5.conf=" + k.conf},
		id:         member + "@" + kdcRealm,
		dial:       func(t *testing.T, stranger bool) sasl.Exchange { return beginLogin(t, logins[stranger], service) },
		accept: func(t *testing.T, stranger bool) sasl.Acceptor {
			hosts := []string{"127.0.0.1"}
			if stranger {
				hosts = []string{"elsewhere"}
			}
			a, err := accepting.Accept(sasl.AuthorizePeer(hosts))
			if err != nil {
				t.Fatal(err)
			}
			return a
		},
	})
}

func quorumLoginAtEach(t *testing.T, x quorumLogin) {
	eachTarget(t, func(t *testing.T, kind target.Kind) { quorumLoginAt(t, kind, x) })
}

// quorumLoginAt plays the other server of an ensemble of two, in both directions.
func quorumLoginAt(t *testing.T, kind target.Kind, x quorumLogin) {
	dir := t.TempDir()
	file := filepath.Join(dir, "jaas.conf")
	if err := os.WriteFile(file, []byte(x.jaas), 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := target.NewEnsemble(dir, target.EnsembleOptions{
		Kinds:      []target.Kind{kind, kind},
		Extra:      quorumFiles{lines: map[string]string{"fips-mode": "false"}}.required(),
		Properties: append([]string{"java.security.auth.login.config=" + file}, x.properties...),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(target.Report(e.Servers...))
		}
		e.Kill()
	})
	election := electionAddresses(t, filepath.Join(dir, "1", "zoo.cfg"))

	t.Run("it accepts", func(t *testing.T) {
		if err := e.Servers[0].Begin(); err != nil {
			t.Fatal(err)
		}
		// A peer that receives a vote was accepted.
		awaitVote(t, knock(t, election, x.dial(t, false), nil))
		knock(t, election, x.dial(t, true), quorumauth.ErrRefused)
		e.Servers[0].Kill()
	})
	t.Run("it dials", func(t *testing.T) {
		l, err := net.Listen("tcp", election[0])
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if err := e.Servers[1].Begin(); err != nil {
			t.Fatal(err)
		}
		for _, stranger := range []bool{true, false} {
			l.(*net.TCPListener).SetDeadline(time.Now().Add(quorumSASLTimeout))
			c, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			c.SetDeadline(time.Now().Add(quorumSASLTimeout))
			r := bufio.NewReader(c)
			var hello peerwire.InitialMessage
			if err := wire.ReadRecord(r, &hello, peerwire.InitialMax); err != nil || hello.Server != 2 {
				t.Fatalf("%+v, %v", hello, err)
			}
			id, err := quorumauth.Accept(r, c, x.accept(t, stranger))
			switch {
			case stranger && (id != "" || err == nil):
				t.Errorf("a server that is no member is accepted as %q", id)
			case !stranger && (id != x.id || err != nil):
				t.Errorf("%q, %v", id, err)
			case !stranger:
				awaitVote(t, r)
			}
			c.Close()
		}
	})
}

// electionAddresses reads the election addresses of two servers in a zoo.cfg.
func electionAddresses(t *testing.T, config string) [2]string {
	t.Helper()
	b, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^server\.\d=([^:]+):\d+:(\d+)`).FindAllSubmatch(b, -1)
	if len(found) != 2 {
		t.Fatalf("%s has %d servers", config, len(found))
	}
	var out [2]string
	for i, m := range found {
		out[i] = net.JoinHostPort(string(m[1]), string(m[2]))
	}
	return out
}

// knock plays server 2 at the election port of server 1 until it listens.
func knock(t *testing.T, election [2]string, x sasl.Exchange, want error) *bufio.Reader {
	t.Helper()
	var c net.Conn
	for deadline := time.Now().Add(quorumSASLTimeout); ; time.Sleep(50 * time.Millisecond) {
		var err error
		if c, err = net.Dial("tcp", election[0]); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(quorumSASLTimeout))
	hello := peerwire.InitialMessage{Version: peerwire.InitialOne, Server: 2, Addresses: []string{election[1]}}
	if _, err := c.Write(wire.Append(nil, &hello)); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	if err := quorumauth.Dial(r, c, x); !errors.Is(err, want) {
		t.Fatalf("%v, want %v", err, want)
	}
	return r
}

// awaitVote reads the length of a notification.
func awaitVote(t *testing.T, r io.Reader) {
	t.Helper()
	var b [4]byte
	_, err := io.ReadFull(r, b[:])
	if size := binary.BigEndian.Uint32(b[:]); err != nil || size < 28 || size > 1000 {
		t.Errorf("no notification: length %d, %v", size, err)
	}
}
