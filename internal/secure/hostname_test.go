package secure

import (
	"context"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"
)

// TestHosts shows which hosts a certificate is for.
func TestHosts(t *testing.T) {
	ca := authority(t, "ca")
	for _, c := range []struct {
		name  string // common name
		hosts []string
		host  string
		want  bool
	}{
		{"x", []string{"a.example.com"}, "a.example.com", true},
		{"x", []string{"a.example.com"}, "A.EXAMPLE.com", true},
		{"x", []string{"A.example.com"}, "a.example.com", true},
		{"x", []string{"a.example.com"}, "b.example.com", false},
		{"x", []string{"a.example.com"}, "x", false}, // the common name does not count
		{"x", []string{"*.example.com"}, "a.example.com", true},
		{"x", []string{"*.example.com"}, "a.b.example.com", false},
		{"x", []string{"*.example.com"}, "example.com", false},
		{"x", []string{"zk-*.example.com"}, "zk-1.example.com", true},
		{"x", []string{"zk-*.example.com"}, "kafka-1.example.com", false},
		{"x", []string{"a*a"}, "a", false},
		{"x", []string{"10.0.0.1"}, "10.0.0.1", true},
		{"x", []string{"10.0.0.1"}, "10.0.0.2", false},
		{"x", []string{"10.0.0.1"}, "::ffff:10.0.0.1", true},
		{"x", []string{"fe80::1"}, "fe80:0:0:0:0:0:0:1", true},
		{"x", []string{"fe80::1"}, "[fe80::1]", true},
		{"x", []string{"fe80::1"}, "fe80::1%eth0", true},
		{"10.0.0.1", []string{"a.example.com"}, "10.0.0.1", false},
		{"a.example.com", nil, "a.example.com", true},
		{"*.example.com", nil, "a.example.com", true},
		{"10.0.0.1", nil, "10.0.0.1", true},
		{"*.0.0.1", nil, "10.0.0.1", false},
		{"", nil, "a", false},
		{"", nil, "", false},
	} {
		cert := ca.issue(t, c.name, hosts(c.hosts...)).cert
		if got := matches(cert, c.host); got != c.want {
			t.Errorf("CN %q, names %q, host %q: %t", c.name, c.hosts, c.host, got)
		}
	}
}

// TestHostsAreMatchedAsByZooKeeper compares the results with those that testdata/hosts.sh has recorded.
func TestHostsAreMatchedAsByZooKeeper(t *testing.T) {
	record, err := os.ReadFile("testdata/hosts.txt")
	if err != nil {
		t.Fatal(err)
	}
	var cert *x509.Certificate
	rows := 0
	for _, line := range strings.Split(strings.TrimSpace(string(record)), "\n") {
		f := strings.Fields(line)
		if f[0] == "certificate" {
			der, err := hex.DecodeString(f[2])
			if err != nil {
				t.Fatal(err)
			}
			if cert, err = x509.ParseCertificate(der); err != nil {
				t.Fatal(err)
			}
			continue
		}
		rows++
		if got := matches(cert, f[1]); got != (f[2] == "true") {
			t.Errorf("%s, names %v, host %s: %t, in ZooKeeper %s", NameOf(cert), hostsOf(cert), f[1], got, f[2])
		}
	}
	if rows < 500 {
		t.Errorf("only %d rows", rows)
	}
}

// names plays a name server.
type names struct {
	of      map[string][]string // names of an address
	to      map[string][]string // addresses of a name
	lookups int
}

func (n *names) LookupAddr(_ context.Context, address string) ([]string, error) {
	n.lookups++
	return n.of[address], nil
}

func (n *names) LookupHost(_ context.Context, host string) ([]string, error) {
	if a, ok := n.to[host]; ok {
		return a, nil
	}
	return nil, errors.New("no such host")
}

// TestNameOfTheOtherEnd shows which names count: the address, the name that was dialled, or a name to
// which the address resolves, if that name resolves back to the address.
func TestNameOfTheOtherEnd(t *testing.T) {
	cert := authority(t, "ca").issue(t, "x", hosts("a.example.com", "10.0.0.9")).cert
	at := netip.MustParseAddr
	for _, c := range []struct {
		what string
		end  end
		dns  *names
		want string
	}{
		{"address", end{address: at("10.0.0.9")}, nil, ""},
		{"address and another name", end{address: at("10.0.0.9"), host: "b.example.com"}, nil, ""},
		{"name", end{address: at("10.0.0.1"), host: "a.example.com"}, nil, ""},
		{"other name", end{address: at("10.0.0.1"), host: "b.example.com"}, &names{of: map[string][]string{"10.0.0.1": {"a.example.com"}}, to: map[string][]string{"a.example.com": {"10.0.0.1"}}},
			"its names (a.example.com, 10.0.0.9) are not those of the other end (10.0.0.1, b.example.com)"},
		{"no lookup", end{address: at("10.0.0.1")}, nil, "are not those of the other end (10.0.0.1)"},
		{"lookup", end{address: at("10.0.0.1")}, &names{of: map[string][]string{"10.0.0.1": {"a.example.com."}}, to: map[string][]string{"a.example.com": {"10.0.0.1"}}}, ""},
		{"lookup that does not lead back", end{address: at("10.0.0.1")}, &names{of: map[string][]string{"10.0.0.1": {"a.example.com."}}, to: map[string][]string{"a.example.com": {"10.0.0.2"}}}, "not those of the other end"},
		{"mapped address", end{address: at("::ffff:10.0.0.9")}, nil, ""},
		{"nothing known", end{}, nil, "the address of the other end is not known"},
	} {
		var lookup resolver
		if c.dns != nil {
			lookup = c.dns
		}
		wants(t, c.what, checkName(t.Context(), cert, c.end, lookup), c.want)
		if c.end.host != "" && c.dns != nil && c.dns.lookups > 0 {
			t.Errorf("%s: a name was given, and the address was looked up", c.what)
		}
	}
}

// TestMemberNames shows which member of an ensemble a certificate may belong to.
func TestMemberNames(t *testing.T) {
	cert := authority(t, "ca").issue(t, "x", hosts("zk1.example.com")).cert
	wants(t, "own name", CheckNames(cert, "10.0.0.1", "zk1.example.com"), "")
	wants(t, "other member", CheckNames(cert, "10.0.0.2", "zk2.example.com"),
		`the certificate "CN=x": its names ([zk1.example.com]) are none of [10.0.0.2 zk2.example.com]: issue it for the address in the server line`)
	wants(t, "no names", CheckNames(cert), "are none of []")

	dns := &names{to: map[string][]string{"zk1.example.com": {"10.0.0.1"}, "zk2.example.com": {"127.0.0.1", "::1", "::ffff:127.0.0.1"}, "localhost": {"127.0.0.1"}}}
	byAddress := authority(t, "ca").issue(t, "x", hosts("10.0.0.1", "127.0.0.1", "::1")).cert
	wants(t, "an address of its name", checkMember(t.Context(), byAddress, []string{"zk1.example.com"}, dns), "")
	wants(t, "an address of no name", checkMember(t.Context(), byAddress, []string{"zk3.example.com"}, dns), "are none of [zk3.example.com]")
	wants(t, "localhost", checkMember(t.Context(), byAddress, []string{"localhost"}, dns), "")
	// Every member's certificate may hold a loopback address, so whoever changes what a name resolves to must not
	// make the certificate of one member prove another one.
	wants(t, "a loopback address", checkMember(t.Context(), byAddress, []string{"zk2.example.com"}, dns), "are none of [zk2.example.com]")

	with := func(more ...string) *Store { return openStore(t, Servers, nil, authority(t, "ca"), more...) }
	wants(t, "no shared name", with().CheckMember(t.Context(), cert, "10.0.0.2"), "are none of [10.0.0.2]")
	wants(t, "the shared name", with("sharedName", "zk1.example.com").CheckMember(t.Context(), cert, "10.0.0.2"), "")
	wants(t, "another shared name", with("sharedName", "zk.example.com").CheckMember(t.Context(), cert, "10.0.0.2"), "are none of [10.0.0.2]")
	wants(t, "its own name beside a shared one", with("sharedName", "zk.example.com").CheckMember(t.Context(), cert, "zk1.example.com"), "")
	wants(t, "not compared", with("hostnameVerification", "false").CheckMember(t.Context(), cert, "10.0.0.2"), "")
}
