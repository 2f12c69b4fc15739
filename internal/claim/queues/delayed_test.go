package queues

import (
	"strings"
	"testing"
)

// TestParseDelayed checks which names are those of items that are not due yet.
func TestParseDelayed(t *testing.T) {
	due := strings.Repeat("0", dueDigits-3) + "720"
	item, ok := parseDelayed(due + "-entry-100-0000000007")
	if want := (delayedItem{due + "-entry-100-0000000007", 720, "entry-100-"}); !ok || item != want {
		t.Errorf("%+v, %v, want %+v", item, ok, want)
	}
	for _, name := range []string{"", "entry-100-0000000007", due, due + "-", due + "-entry-100-", due[1:] + "-entry-100-0000000007", "0" + due + "-entry-100-0000000007",
		"x" + due[1:] + "-entry-100-0000000007", strings.Repeat("9", dueDigits) + "9-entry-100-0000000007"} {
		if got, ok := parseDelayed(name); ok {
			t.Errorf("%q is the name of %+v", name, got)
		}
	}
}
