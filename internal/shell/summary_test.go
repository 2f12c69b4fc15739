package shell

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// srvrOf returns a server's answer to srvr.
func srvrOf(mode, more string) string {
	return "Zookeeper version: 3.9.5-x, built on 2026-01-01\nLatency min/avg/max: 0/0.5/3\nReceived: 1\nSent: 1\nConnections: 2\nOutstanding: 0\n" +
		"Zxid: 0x500000012\nMode: " + mode + "\nNode count: 7\n" + more
}

// TestStatusNamesServersThatRefuseWrites shows that the exit status is 0 only if every server
// accepts writes, and that the text says which server does not and why.
func TestStatusNamesServersThatRefuseWrites(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		status       int
		says         string
	}{
		{"leader", srvrOf("leader", ""), ExitDone, ""},
		{"observer", srvrOf("observer", ""), ExitDone, ""},
		{"standalone", srvrOf("standalone", ""), ExitDone, ""},
		{"ZooKeeper's read-only server", "READ-ONLY mode; serving only read-only clients\n" + srvrOf("read-only", ""), ExitFailed, "accepts no writes: it is read-only"},
		{"a full disk", srvrOf("read-only", "Read-only because: no space\n"), ExitFailed, "accepts no writes: no space"},
		{"a slow disk", srvrOf("follower", "Serves only in part because: the disk is slow\n"), ExitFailed, "serves only in part: the disk is slow"},
		{"a disk that answers late", srvrOf("follower", "Slow disk: a call took 900 ms\n"), ExitDone, " (follower) has a slow disk: a call took 900 ms\n"},
		{"a preferred server", srvrOf("leader", "Preferred leader: server 2, when it has kept up for 10s\n"), ExitDone, "prefers as leader server 2, when it has kept up for 10s"},
		{"a server that should not lead", srvrOf("leader", "Should not lead: server 2: the disk is full\n"), ExitDone, "knows servers that should not lead: server 2: the disk is full"},
		{"no quorum", "This ZooKeeper instance is not currently serving requests\n", ExitNoConnection, "does not answer: This ZooKeeper instance is not currently serving requests"},
		{"closed", "", ExitNoConnection, "closed the connection without an answer; if its port is for TLS, use --tls-ca and --tls-cert"},
		{"not a ZooKeeper server", "SSH-2.0-x\x1b[31m\n", ExitNoConnection, "does not answer: SSH-2.0-x?[31m"},
		{"an unknown mode", srvrOf("other\x1b]0;x", ""), ExitFailed, "accepts no writes: it is other?]0;x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			a := &app{servers: wordServer(t, map[string]string{"srvr": c.answer}), timeout: time.Minute, output: "text", out: &out}
			if got := exitStatus(a.status(t.Context())); got != c.status {
				t.Errorf("exit status %d, want %d", got, c.status)
			}
			if !strings.Contains(out.String(), c.says) {
				t.Errorf("the text must contain %q:\n%s", c.says, out.String())
			}
			// With another, healthy server the status is never 4.
			a.servers += "," + wordServer(t, map[string]string{"srvr": srvrOf("follower", "")})
			if got := exitStatus(a.status(t.Context())); got != min(c.status, ExitFailed) {
				t.Errorf("with another one: exit status %d", got)
			}
		})
	}
}

func exitStatus(err error) int {
	if err == nil {
		return ExitDone
	}
	return err.(*StatusError).Status
}

// TestStatusFitsTheTerminal shows that no line is wider than the terminal unless it is a
// single value, and that no value is left out.
func TestStatusFitsTheTerminal(t *testing.T) {
	var short []serverStatus
	for i := range 9 {
		short = append(short, serverStatus{Server: fmt.Sprintf("10.0.0.%d:2181", i), Mode: "follower", Writes: true, Zxid: "0x500000012",
			Latency: "0/0.1/3", Connections: 4321, Outstanding: 99, Nodes: 12345, Version: "3.9.5-bellwether-0.1.0"})
	}
	long := append([]serverStatus{{Server: "[2001:db8:1111:2222:3333:4444:5555:6666]:2181", Mode: "leader", Writes: true, Zxid: "0x500000012",
		Latency: "0/0.1/3", Version: "3.8.0-1"}, {Server: "dead.example.com:2181", Mode: "unreachable", Error: "connection refused"}}, short...)
	for _, c := range []struct {
		all    []serverStatus
		width  int
		header string // the header of a table; empty: paragraphs are expected
	}{
		{short, 0, "CONNECTIONS"}, {short, 120, "CONNECTIONS"}, {short, 80, "CONNS"}, {short, 40, ""}, {short, 20, ""}, {short, 1, ""},
		{long, 0, "CONNECTIONS"}, {long, 80, ""}, {long, 40, ""}, {long, 20, ""},
	} {
		text := statusText(c.all, c.width)
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\n")
			if n := utf8.RuneCountInString(strings.TrimRight(line, " ")); c.width > 0 && n > c.width && strings.Contains(strings.TrimSpace(line), " ") && !unbreakable(line) {
				t.Errorf("width %d: line of %d: %q", c.width, n, line)
			}
		}
		if first, _, _ := strings.Cut(text, "\n"); strings.Contains(first, "SERVER") != (c.header != "") || !strings.Contains(first, c.header) {
			t.Errorf("width %d begins with %q, want %q", c.width, first, c.header)
		}
		for _, s := range c.all {
			if !strings.Contains(text, s.Server) || !strings.Contains(text, s.Version) {
				t.Errorf("width %d: server %s is missing in\n%s", c.width, s.Server, text)
			}
		}
		for _, figure := range []string{"4321", "12345", "99", "0/0.1/3", "0x500000012"} {
			if !strings.Contains(text, figure) {
				t.Errorf("width %d: %s is missing", c.width, figure)
			}
		}
	}
}

// unbreakable reports whether a line is one value with its label.
func unbreakable(line string) bool {
	for _, f := range statusFields[aboutServer:] {
		if strings.HasPrefix(strings.TrimSpace(line), f.label+" ") && strings.Count(line, ",") <= 1 {
			return true
		}
	}
	return false
}
