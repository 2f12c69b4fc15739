package queues

import (
	"strings"
	"testing"
	"time"
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

// TestDuePrefix checks the first part of the name of an item that is not due yet, at the ends of the range too.
func TestDuePrefix(t *testing.T) {
	for _, c := range []struct {
		due  time.Time
		want string
	}{
		{time.UnixMilli(1720), "000000000001720-"},
		{time.UnixMilli(-5), "000000000000000-"},
		{time.Time{}, "000000000000000-"},
		{time.UnixMilli(dueMax), "999999999999999-"},
		{time.UnixMilli(dueMax + 1), "999999999999999-"},
		{time.Unix(1<<60, 0), "999999999999999-"},
	} {
		got := DuePrefix(c.due)
		if got != c.want {
			t.Errorf("%v: %q, want %q", c.due, got, c.want)
		}
		if name := got + "entry-100-0000000007"; !IsDelayed(name) {
			t.Errorf("%q is not the name of an item that is not due yet", name)
		}
	}
	if IsDelayed("entry-100-0000000007") {
		t.Error("an item that is due is taken for one that is not")
	}
}
