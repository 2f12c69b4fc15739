package shell

import (
	"context"
	"strings"
	"testing"
)

func handOver(a *app) error { return a.handover(context.Background(), 2) }

// TestHandover shows that the command finds the leader, asks it, and passes on its answer.
func TestHandover(t *testing.T) {
	follower := wordServer(t, map[string]string{"srvr": srvr("follower", "0x200000009")})
	const gone = "127.0.0.1:1"
	for _, c := range []struct {
		what, answer, output string
		out, err             string
	}{
		{"done", `{"from":1,"to":2,"epoch":3,"took_ms":7}`, "text", "server 2 leads epoch 3; server 1 transferred leadership to it in 7 ms\n", ""},
		{"as JSON", `{"from":1,"to":2,"epoch":3,"took_ms":7}` + "\n", "json", `{"from":1,"to":2,"epoch":3,"took_ms":7}` + "\n", ""},
		{"refused", `{"from":1,"error":"server 2 cannot take over: it has no vote"}`, "text", "", "cannot take over: it has no vote"},
		{"shut", "hand is not executed because it is not in the whitelist.\n", "text", "", "hand is not executed"},
		{"foreign", "", "text", "", "does not support leadership transfer"},
	} {
		leader := wordServer(t, map[string]string{"srvr": srvr("leader", "0x200000009"), "hand": c.answer})
		var failed error
		out, _, _ := ask(func(a *app) error {
			failed = handOver(a)
			return nil
		}, c.output, gone, follower, leader)
		if out != c.out || (failed != nil) != (c.err != "") || failed != nil && !strings.Contains(failed.Error(), c.err) {
			t.Errorf("%s: %q, %v", c.what, out, failed)
		}
	}
	if err := func() (err error) {
		ask(func(a *app) error { err = handOver(a); return nil }, "text", follower)
		return err
	}(); err == nil || !strings.Contains(err.Error(), "none of these servers is the leader") {
		t.Errorf("without a leader: %v", err)
	}
	if _, errs, status := ask(handOver, "text", gone); status != ExitNoConnection || !strings.Contains(errs, gone) {
		t.Errorf("no server: status %d, %q", status, errs)
	}
}
