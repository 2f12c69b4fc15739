package relay

import (
	"net/netip"
	"testing"
)

// TestReaches shows which addresses arrive at a listener of this machine.
func TestReaches(t *testing.T) {
	for _, c := range []struct {
		to, listen string
		want       bool
	}{
		{"127.0.0.1:2181", "127.0.0.1:2181", true},
		{"[::ffff:127.0.0.1]:2181", "127.0.0.1:2181", true},
		{"127.0.0.1:2182", "127.0.0.1:2181", false},
		{"127.0.0.2:2181", "127.0.0.1:2181", false}, // another server can listen there
		{"127.0.0.2:2181", "[::]:2181", true},
		{"[::1]:2181", "[::]:2181", true},
		{"0.0.0.0:2181", "[::]:2181", true},
		{"0.0.0.0:2181", "127.0.0.1:2181", true},
		{"192.0.2.1:2181", "[::]:2181", false}, // of no machine
		{"192.0.2.1:2181", "192.0.2.1:2181", true},
	} {
		if got := reaches(netip.MustParseAddrPort(c.to), netip.MustParseAddrPort(c.listen)); got != c.want {
			t.Errorf("%s at %s: %v", c.to, c.listen, got)
		}
	}
}
