package shell

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestGuardianEndsACommandForItsReason checks which reason is given when the guardian ends a command before the claim is
// lost: a server that answers no ping while this process runs, or a pause of this process, even if the server answers
// again before the command has ended.
func TestGuardianEndsACommandForItsReason(t *testing.T) {
	const tick, window, grace = 200 * time.Millisecond, 4 * time.Second, time.Second
	for name, c := range map[string]struct {
		silent, paused time.Duration // how long the server answers no ping, and how long the process does not run
		want           string
	}{
		"silent server":                     {silent: 5 * time.Second, want: "no ping of the last 5.2s was answered by a server"},
		"pause":                             {paused: 5 * time.Second, want: "this process was paused for 5.2s"},
		"silent server, then a long pause":  {silent: 6 * time.Second, paused: 5 * time.Second, want: "this process was paused for 5.2s"},
		"silent server, then a short pause": {silent: 4 * time.Second, paused: time.Second, want: "no ping of the last 4.2s was answered by a server"},
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			confirmed := begin
			p := newPulse(begin)
			run := func(d time.Duration, answers bool) {
				for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(tick) {
					if answers {
						confirmed = time.Now()
					}
					p.beat(confirmed)
					p.acts = window - grace - time.Since(confirmed)
				}
			}
			run(2*time.Second, true)
			if p.why != "" {
				t.Fatalf("%s: %s although nothing has happened", name, p.why)
			}
			run(c.silent-c.paused, false)
			time.Sleep(c.paused)
			run(time.Second, true) // the command takes a second to end
			if got := p.reason(); got != c.want {
				t.Errorf("%s: %s, want %s", name, got, c.want)
			}
		})
	}
}
