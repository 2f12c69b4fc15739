package admin

import (
	"slices"
	"strings"
	"testing"
	"time"

	"bellwether/internal/admin/trace"
	"bellwether/wire"
)

// TestTracesAreShown shows that the word trac prints the traced requests, but only if the
// whitelist contains the word.
func TestTracesAreShown(t *testing.T) {
	s := serve(t, "trac")
	if got := ask(t, s, "trac"); got != "[]\n" {
		t.Errorf("without traces: %q", got)
	}
	s.SetTracing(true)
	session(t, s, 20_000, create("/traced", 0), create("/traced", 0))
	var found []trace.Trace
	for end := time.Now().Add(time.Minute); len(found) < 2 && time.Now().Before(end); { // a trace is kept after its reply
		all, err := trace.Decode([]byte(ask(t, s, "trac")))
		if err != nil {
			t.Fatal(err)
		}
		found = slices.DeleteFunc(all, func(x trace.Trace) bool { return x.Path != "/traced" })
	}
	if len(found) != 2 || found[0].Cxid != 1 || found[0].Op != "create" || len(found[0].Stages) < 5 || found[0].Err != 0 || !strings.HasPrefix(found[0].Session, "0x") ||
		found[1].Err != int32(wire.ErrNodeExists) || found[1].Error == "" || found[0].TookNS <= 0 {
		t.Errorf("traces %+v", found)
	}
	closed := serve(t, "ruok")
	if got := ask(t, closed, "trac"); !strings.Contains(got, "not in the whitelist") {
		t.Errorf("without the whitelist: %q", got)
	} else if _, err := trace.Decode([]byte(got)); err == nil || !strings.Contains(err.Error(), "4lw.commands.whitelist") {
		t.Errorf("error %v", err)
	}
}
