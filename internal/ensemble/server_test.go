package ensemble

import (
	"strings"
	"testing"
)

// TestParseServerPrintsCanonically shows what a server line may look like and
// the one form in which it is printed.
func TestParseServerPrintsCanonically(t *testing.T) {
	cases := []struct{ in, want string }{
		{"zk1:2888:3888", "zk1:2888:3888:participant"},
		{"zk1:2888:3888:participant", "zk1:2888:3888:participant"},
		{"zk1:2888:3888:OBSERVER", "zk1:2888:3888:observer"},
		{"127.0.0.1:2888:3888;2181", "127.0.0.1:2888:3888:participant;0.0.0.0:2181"},
		{"zk1:2888:3888:observer;10.0.0.1:2181", "zk1:2888:3888:observer;10.0.0.1:2181"},
		{"zk1:2888:3888;0", "zk1:2888:3888:participant;0.0.0.0:0"},
		{"zk1:2888:3888;", "zk1:2888:3888:participant"},
		{"zk1:2888:3888:", "zk1:2888:3888:participant"},
		{"[::1]:2888:3888", "[0:0:0:0:0:0:0:1]:2888:3888:participant"},
		{"[2001:db8::1]:2888:3888:observer;[::]:2181", "[2001:db8:0:0:0:0:0:1]:2888:3888:observer;[0:0:0:0:0:0:0:0]:2181"},
		{"[::ffff:10.0.0.1]:2888:3888", "10.0.0.1:2888:3888:participant"},
		{"[fe80::1%eth0]:2888:3888;[::1]:2181", "[fe80:0:0:0:0:0:0:1%eth0]:2888:3888:participant;[0:0:0:0:0:0:0:1]:2181"},
		{"b:1:2|a:3:4:observer", "a:3:4|b:1:2:observer"},
		{"b:1:2:participant|a:3:4:participant;2181", "a:3:4|b:1:2:participant;0.0.0.0:2181"},
	}
	for _, c := range cases {
		s, err := ParseServer(7, c.in)
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if got := s.String(); got != c.want {
			t.Errorf("%s: got %s, want %s", c.in, got, c.want)
		}
		if got := s.Line(); got != "server.7="+c.want {
			t.Errorf("%s: line %s", c.in, got)
		}
		if again, err := ParseServer(7, s.String()); err != nil || again.String() != c.want {
			t.Errorf("%s: canonical form reads as %s, %v", c.in, again, err)
		}
	}
}

// TestParseServerRefuses shows the error of each wrong form.
func TestParseServerRefuses(t *testing.T) {
	cases := []struct{ in, want string }{
		{"", "empty address"},
		{";2181", "empty address"},
		{"zk1", "does not have the form"},
		{"zk1:2888", "does not have the form"},
		{"zk1:1:2:observer:x", "does not have the form"},
		{"::1:2888:3888", "IPv6 host stands in brackets"},
		{"[::1:2888:3888", "no closing bracket"},
		{"[::1]2888:3888", "a colon must follow the bracket"},
		{"zk1:2888:2888", "both 2888; they must differ"},
		{"zk1:2888:x", `election port "x" is not a number from 1 to 65535`},
		{"zk1:0:3888", `quorum port "0"`},
		{"zk1:2888:65536", `election port "65536"`},
		{"zk1:2888:3888:leader", "neither participant nor observer"},
		{"a:1:2:observer|b:1:2:participant", "different roles"},
		{"zk1:2888:3888;2181;2182", "more than one semicolon"},
		{"zk1:2888:3888;a:b:c", "not port or host:port"},
		{"zk1:2888:3888;host:", `client port "host"`},
		{"zk1:2888:3888;-1", `client port "-1"`},
		{"z k1:2888:3888", "contains ' '"},
		{":2888:3888", "a host is missing"},
		{strings.Repeat("a", 256) + ":1:2", "longer than 255"},
		{strings.Repeat("a:1:2|", 16) + "a:1:2", "at most 16"},
	}
	for _, c := range cases {
		if _, err := ParseServer(1, c.in); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want %q", c.in, err, c.want)
		}
	}
}

// TestAddresses shows the form of addresses for dialling and listening, and which hosts
// are wildcards or loopback.
func TestAddresses(t *testing.T) {
	s, err := ParseServer(1, "[::1]:2888:3888;[::]:2181")
	if err != nil {
		t.Fatal(err)
	}
	a := s.Addresses[0]
	for _, c := range [][2]string{{a.Quorum(), "[::1]:2888"}, {a.Election(), "[::1]:3888"}, {s.Client.String(), "[::]:2181"}, {HostPort{}.String(), ""}} {
		if c[0] != c[1] {
			t.Errorf("got %s, want %s", c[0], c[1])
		}
	}
	if !s.Client.IsWildcard() || !(HostPort{Host: Wildcard}).IsWildcard() || (HostPort{Host: "::1"}).IsWildcard() {
		t.Error("wildcard not told apart")
	}
	for host, want := range map[string]bool{"localhost": true, "LocalHost": true, "127.0.0.2": true, "::1": true, "0.0.0.0": false, "db.localhost": false, "": false} {
		if (HostPort{Host: host}).IsLoopback() != want {
			t.Errorf("loopback %q: %v", host, !want)
		}
	}
}
