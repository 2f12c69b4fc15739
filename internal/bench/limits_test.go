package bench

import (
	"context"
	"strings"
	"testing"
	"time"
)

// TestBadInput shows that each measurement refuses numbers that are out of range, and names
// them.
func TestBadInput(t *testing.T) {
	s := Setting{Duration: time.Second}
	load := Load{Setting: s, Kind: Read, Connections: 1, Outstanding: 1, Keys: 1}
	with := func(change func(*Load)) Load {
		l := load
		change(&l)
		return l
	}
	for _, c := range []struct {
		m    interface{ Check() error }
		want string
	}{
		{load, ""},
		{with(func(l *Load) { l.Connections = 0 }), "connections: 0, want 1 to 100000"},
		{with(func(l *Load) { l.Outstanding = 0 }), "outstanding: 0"},
		{with(func(l *Load) { l.Keys = 10_000_001 }), "keys: 10000001"},
		{with(func(l *Load) { l.Size = -1 }), "size: -1"},
		{with(func(l *Load) { l.Rate = -1 }), "rate: -1"},
		{with(func(l *Load) { l.Operations, l.Rate = 1000, 1 }), "operations: 1000 with rate 1, want one of the two"},
		{with(func(l *Load) { l.Operations, l.Connections, l.Outstanding = 5, 2, 3 }), "operations: 5, want at least one for each request in flight, which are 6"},
		{with(func(l *Load) { l.Reads = 101 }), "reads: 101"},
		{with(func(l *Load) { l.Duration = 0 }), "duration: 0s, want more than 0"},
		{with(func(l *Load) { l.Warmup = -1 }), "warmup: -1ns, want 0 or more"},
		{with(func(l *Load) { l.Filled = true }), "without the client library"},
		{with(func(l *Load) { l.Kind = List }), "without the client library"},
		{with(func(l *Load) { l.Beside = func(context.Context) error { return nil } }), "without the client library"},
		{with(func(l *Load) { l.Raw, l.Operations, l.Beside = &Raw{}, 1, func(context.Context) error { return nil } }), "operations: want none"},
		{Departures{Setting: s, Candidates: 2, Leaders: 2}, "without the client library"},
		{Departures{Setting: Setting{Raw: &Raw{}}, Candidates: 5, Leaders: 6}, "leaders: 6, want 2 to 5"},
		{Abandon{Setting: s, Sessions: 1}, "without the client library"},
		{Abandon{Setting: Setting{Raw: &Raw{}}}, "sessions: 0"},
		{Abandon{Setting: Setting{Raw: &Raw{}}, Sessions: 10_000_000, Hold: true}, "ulimit -n"},
		{Watches{Setting: s, Watches: 1, Connections: 1, Changes: 2}, "changes: 2, want 0 to 1"},
		{Latency{Setting: s}, "keys: 0"},
		{Elections{Setting: s, Candidates: 1}, "candidates: 1, want 2 to 100000"},
		{Fanout{Setting: s}, "watchers: 0"},
		{Watches{Setting: s, Watches: 1}, "connections: 0"},
		{Sessions{Setting: s}, "sessions: 0"},
		{Restart{Znodes: 1}, "rounds: 0"},
		{Memory{Znodes: 1, Watches: 2}, "watches: 2, want 0 to 1"},
		{Failover{Servers: 2, Znodes: 1, Rounds: 1}, "servers: 2, want 3 to 9"},
		{Failover{Servers: 3, Rounds: 1}, "znodes: 0, want 1 to"},
		{Failover{Servers: 3, Znodes: 1, Rounds: 1, Failures: []Failure{"burn"}}, `failures: "burn", want kill, stop or pause`},
		{Failover{Servers: 3, Znodes: 1, Rounds: 1, Failures: []Failure{Kill, Stop, Kill}}, "failures: kill is there twice"},
		{Failover{Servers: 3, Znodes: 1, Rounds: 1}, "failures: none, want kill, stop, pause"},
		{Failover{Servers: 3, Znodes: 1, Rounds: 1, Failures: Failures()}, ""},
		{Ceiling{Connections: 1, Outstanding: 1, Batch: 0, Duration: 1}, "batch: 0"},
	} {
		err := c.m.Check()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.m, err, c.want)
		}
	}
	if err := checkFiles(1 << 40); err == nil || !strings.Contains(err.Error(), "ulimit -n") {
		t.Errorf("a trillion connections: %v", err)
	}
}
