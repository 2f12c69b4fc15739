package fourletter

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// TestParseSrvr shows that all fields are read from the answer of a leader of Apache ZooKeeper 3.8, and
// that values are cut and cleaned for terminals.
func TestParseSrvr(t *testing.T) {
	got := ParseSrvr("Zookeeper version: 3.8.0-5a02a05eddb59aee6ac762f7ea82e92a68eb9c0f, built on 2022-02-25 08:49 UTC\n" +
		"Latency min/avg/max: 0/0.1538/4\nReceived: 3\nSent: 2\nConnections: 1\nOutstanding: 5\nZxid: 0x100000003\n" +
		"Mode: leader\nNode count: 7\nProposal sizes last/min/max: 89/48/89\n")
	want := Srvr{Mode: "leader", Zxid: "0x100000003", Version: "3.8.0-5a02a05eddb59aee6ac762f7ea82e92a68eb9c0f",
		Latency: "0/0.1538/4", Received: 3, Connections: 1, Outstanding: 5, Nodes: 7}
	if got != want {
		t.Errorf("%+v", got)
	}
	if got := ParseSrvr("Mode: \x1b[2Jleader\n").Mode; got != "?[2Jleader" {
		t.Errorf("control characters stay: %q", got)
	}
	if got := ParseSrvr("Mode: " + strings.Repeat("x", 1000)).Mode; len(got) > ValueMax+len("…") {
		t.Errorf("a value has %d bytes", len(got))
	}
}

// TestReasons shows which reasons of a server say that its tree differs, and which that its election port is closed.
func TestReasons(t *testing.T) {
	for _, c := range []struct{ reason, differs, closed string }{
		{"its tree differs from that of server 1 since 0x5", "its tree differs from that of server 1 since 0x5", ""},
		{"its tree was wrong: its digest after 0x5 was 1, that of a quorum under server 1 2; a snapshot of its leader has replaced it", "", ""},
		{"election port h:1 is in use by another process", "", "election port h:1 is in use by another process"},
		{"the disk does not answer", "", ""},
	} {
		const because = "Serves only in part because: "
		s := ParseSrvr("Mode: follower\n" + because + "its main loop is busy\n" + because + c.reason + "\n" + because + "another server should lead\n")
		if s.Differs != c.differs || s.ClosedPort != c.closed {
			t.Errorf("%s: differs %q, closed port %q", c.reason, s.Differs, s.ClosedPort)
		}
		if want := "its main loop is busy; " + c.reason + "; another server should lead"; s.Reason != want {
			t.Errorf("the reasons are %q, want %q", s.Reason, want)
		}
	}
}

// TestBehind shows that zxids of different epochs are not compared.
func TestBehind(t *testing.T) {
	for _, c := range []struct {
		leader, own string
		n           int64
		ok          bool
	}{
		{"0x500000012", "0x50000000f", 3, true}, {"0x500000012", "0x500000013", 0, true},
		{"0x500000012", "0x400000012", 0, false}, {"0x500000012", "", 0, false}, {"?", "0x1", 0, false},
	} {
		if n, ok := Behind(c.leader, c.own); n != c.n || ok != c.ok {
			t.Errorf("%+v: %d, %v", c, n, ok)
		}
	}
}

// TestLists shows what is read from mntr, dirs and elog, and that a refused word gives nothing.
func TestLists(t *testing.T) {
	const refused = "mntr is not executed because it is not in the whitelist.\n"
	m := ParseMntr("zk_version\t3.8.0, built\nzk_watch_count\t7\nzk_avg_latency\t0.5\nother\t1\n")
	if len(m) != 2 || m["watch_count"] != 7 || m["avg_latency"] != 0.5 || len(ParseMntr(refused)) != 0 {
		t.Errorf("mntr: %v", m)
	}
	if s, l, ok := ParseDirs("datadir_size: 67108880\nlogdir_size: 134217744\n"); s != 67108880 || l != 134217744 || !ok {
		t.Errorf("dirs: %d %d %v", s, l, ok)
	}
	if _, _, ok := ParseDirs(refused); ok {
		t.Error("a refused dirs has sizes")
	}
	const elog = `[{"server":2,"phase":"over"},{"server":2,"began":"2026-11-25T10:00:00Z","phase":"serve","state":"LEADING","epoch":5,"look_ms":200,"discover_ms":30,"synchronise_ms":20}]`
	e, err := Serving(elog)
	if err != nil || e == nil || e.State != "LEADING" || !e.Since().Equal(time.Date(2026, 11, 25, 10, 0, 0, 250e6, time.UTC)) {
		t.Errorf("elog: %+v %v", e, err)
	}
	if e, err := Serving(`[{"server":2,"phase":"search"}]`); e != nil || err != nil {
		t.Errorf("a server that looks: %+v %v", e, err)
	}
	for _, text := range []string{refused, "", "[]"} {
		if _, err := ParseElog(text); err == nil {
			t.Errorf("ParseElog(%q) gives no error", text)
		}
	}
}

// TestAsk shows that an answer is read to its end, and that a server that does not answer is given up when the
// context ends.
func TestAsk(t *testing.T) {
	here, there := net.Pipe()
	go func() {
		word := make([]byte, 4)
		_, _ = io.ReadFull(there, word)
		_, _ = there.Write([]byte("answer to "))
		_, _ = there.Write(word)
		there.Close()
	}()
	if got, err := Ask(context.Background(), here, "ruok", time.Minute); got != "answer to ruok" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	here, there = net.Pipe()
	defer there.Close()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.ReadFull(there, make([]byte, 4))
		cancel()
	}()
	if _, err := Ask(ctx, here, "ruok", time.Minute); err == nil {
		t.Error("a server that does not answer gives no error")
	}
	here, _ = net.Pipe()
	if _, err := Ask(ctx, here, "ruok", time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
}
