package kerberos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/keytab"

	"bellwether/zk"
)

// silentKDC returns options for a realm whose KDC accepts connections and does not answer.
func silentKDC(t *testing.T) Options {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() }) // resets the connections that were not accepted
	dir := t.TempDir()
	o := Options{Conf: filepath.Join(dir, "krb5.conf"), Principal: "bob", KeyTab: filepath.Join(dir, "keytab")}
	keys := keytab.New()
	if err := keys.AddEntry("bob", "EXAMPLE.COM", "secret", time.Now(), 1, etypeID.AES256_CTS_HMAC_SHA1_96); err != nil {
		t.Fatal(err)
	}
	text, err := keys.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	conf := fmt.Sprintf("[libdefaults]\n default_realm = EXAMPLE.COM\n udp_preference_limit = 1\n[realms]\n EXAMPLE.COM = {\n  kdc = %s\n }\n", l.Addr())
	for path, text := range map[string][]byte{o.KeyTab: text, o.Conf: []byte(conf)} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// TestKDCDoesNotAnswer: Begin ends with its context, Close does not wait for the KDC, and after it a login
// cannot begin.
func TestKDCDoesNotAnswer(t *testing.T) {
	l, err := New(silentKDC(t))
	if err != nil {
		t.Fatal(err)
	}
	server := zk.Server{Host: "zk1", Address: "127.0.0.1:2181"}
	for range 2 { // the second one finds the first one waiting
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err := l.Begin(ctx, server)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no ticket for zookeeper/") || !strings.Contains(err.Error(), "the KDC of Kerberos has not answered") {
			t.Errorf("error is %v", err)
		}
	}
	start := time.Now()
	l.Close()
	if took := time.Since(start); took > time.Second {
		t.Errorf("Close took %v", took)
	}
}

// TestClosedLogin: a login that is closed says so.
func TestClosedLogin(t *testing.T) {
	l, err := New(silentKDC(t))
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	l.Close()
	if _, err := l.Begin(t.Context(), zk.Server{Host: "zk1", Address: "127.0.0.1:2181"}); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("error is %v", err)
	}
}

// names answers from maps.
type names struct{ names, addresses map[string]string }

func (n names) LookupAddr(_ context.Context, address string) ([]string, error) {
	if name := n.names[address]; name != "" {
		return []string{name}, nil
	}
	return nil, errors.New("no such address")
}

func (n names) LookupHost(_ context.Context, host string) ([]string, error) {
	return []string{n.addresses[host]}, nil
}

// TestService: the principal of a server has the name to which the server's address resolves, if that name
// resolves back to the address. Otherwise it has the name in the server list.
func TestService(t *testing.T) {
	lookup := names{
		map[string]string{"10.0.0.1": "ZK1.example.", "10.0.0.2": "liar.example."},
		map[string]string{"ZK1.example": "10.0.0.1", "liar.example": "10.9.9.9"},
	}
	for _, x := range []struct {
		service, ip string
		asGiven     bool
		want        string
	}{
		{"", "10.0.0.1", false, "zookeeper/zk1.example"},
		{"", "10.0.0.1", true, "zookeeper/given.example"},
		{"", "10.0.0.2", false, "zookeeper/given.example"}, // the name does not resolve to the address
		{"", "10.0.0.3", false, "zookeeper/given.example"}, // the address has no name
		{"zk/_HOST@OTHER.COM", "10.0.0.1", false, "zk/zk1.example@OTHER.COM"},
		{"zookeeper/fixed@OTHER.COM", "10.0.0.1", false, "zookeeper/fixed@OTHER.COM"},
	} {
		o := silentKDC(t)
		o.Service, o.HostAsGiven = x.service, x.asGiven
		l, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		l.lookup = lookup
		if got := l.service(t.Context(), zk.Server{Host: "Given.example", Address: x.ip + ":2181"}); got != x.want {
			t.Errorf("%+v: %s", x, got)
		}
		l.Close()
	}
}
