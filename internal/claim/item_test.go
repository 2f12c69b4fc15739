package claim

import (
	"strings"
	"testing"
)

// TestItemNames checks that names of other znodes are not parsed as items.
func TestItemNames(t *testing.T) {
	hex := strings.Repeat("0a", 16)
	for name, want := range map[string]int{
		hex + "-entry-007-0000000001": 7, "entry-100-0000000002": 100, "qn-0000000003": 100,
		"entry-0000000004": -1, "LEADER": -1, "entry-1-0000000005": -1, "taken": -1, hex + "-n_0000000006": -1,
	} {
		if it, ok := ParseItem(name); ok != (want >= 0) || ok && it.Priority != want {
			t.Errorf("%s: %+v %v", name, it, ok)
		}
	}
}
