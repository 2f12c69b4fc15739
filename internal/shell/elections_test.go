package shell

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// wordServer answers four-letter words until the test ends. Like ZooKeeper, it does not
// answer other words.
func wordServer(t *testing.T, answers map[string]string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			word := make([]byte, 4)
			if _, err := io.ReadFull(c, word); err == nil {
				if string(word) == "hand" { // the only word with an argument
					io.CopyN(io.Discard, c, 8)
				}
				io.WriteString(c, answers[string(word)])
			}
			c.Close()
		}
	}()
	return l.Addr().String()
}

// srvr returns an answer to the word srvr.
func srvr(mode, zxid string) string {
	return "Zookeeper version: 3.9.5, built on x\nConnections: 1\nZxid: " + zxid + "\nMode: " + mode + "\nNode count: 5\n"
}

// elogEntry returns an election in the form of the word elog.
func elogEntry(server int, began, state, phase string, epoch int) string {
	return fmt.Sprintf(`{"server":%d,"began":%q,"state":%q,"phase":%q,"epoch":%d,"look_ms":3,"discover_ms":4,"synchronise_ms":5,"line":"line %d of %d","story":"story %d of %d"}`,
		server, began, state, phase, epoch, epoch, server, epoch, server)
}

// ask runs a command of the app against servers and returns its output and exit status.
func ask(run func(*app) error, output string, servers ...string) (out, errs string, status int) {
	var o, e bytes.Buffer
	a := newApp()
	a.out, a.err, a.servers, a.output, a.timeout = &o, &e, strings.Join(servers, ","), output, 10*time.Second
	if err := run(a); err != nil {
		status = err.(*StatusError).Status
	}
	return o.String(), e.String(), status
}

func showStatus(a *app) error { return a.status(context.Background()) }

// TestStatusOfAnEnsemble shows that status names the leader and since when it leads, and how
// far a follower in the same epoch is behind.
func TestStatusOfAnEnsemble(t *testing.T) {
	leader := wordServer(t, map[string]string{
		"srvr": srvr("leader", "0x200000009"),
		"elog": "[" + elogEntry(1, "2026-01-02T03:04:05Z", "FOLLOWING", "serve", 1) + "," + elogEntry(1, "2026-01-02T03:05:00Z", "LEADING", "serve", 2) + "]",
	})
	level := wordServer(t, map[string]string{"srvr": srvr("follower", "0x200000009")})
	behind := wordServer(t, map[string]string{"srvr": srvr("observer", "0x200000002")})
	joins := wordServer(t, map[string]string{"srvr": srvr("follower", "0x100000002")})
	out, _, status := ask(showStatus, "text", leader, level, behind, joins)
	_, below, _ := strings.Cut(out, joins)
	_, below, _ = strings.Cut(below, "\n")
	if want := leader + " leads epoch 2 since 2026-01-02T03:05:00.012Z\n" + behind + " is 7 transactions behind\n"; below != want || status != 0 {
		t.Errorf("status %d\n%swant %s", status, out, want)
	}
	out, _, _ = ask(showStatus, "json", leader, level, behind, joins)
	for _, want := range []string{
		`"epoch":2,"leads_since":"2026-01-02T03:05:00.012Z"}`, `"mode":"observer","zxid":"0x200000002"`, `"behind":7}`, `"behind":0}`,
	} {
		if strings.Count(out, want) != 1 {
			t.Errorf("%s must appear once: %s", want, out)
		}
	}
}

// TestStatusWithoutAnAnswer shows that a server without an answer has its row in the table,
// and that the reason follows below.
func TestStatusWithoutAnAnswer(t *testing.T) {
	a := wordServer(t, map[string]string{"srvr": srvr("follower", "0x200000009")})
	b := wordServer(t, map[string]string{"srvr": srvr("follower", "0x200000009")})
	out, _, status := ask(showStatus, "text", a, "127.0.0.1:1", b)
	rows := strings.Split(out, "\n")
	if len(rows) < 5 || status != 1 || strings.Index(rows[1], "0x2") != strings.Index(rows[3], "0x2") || rows[1][20:] != rows[3][20:] ||
		!strings.HasPrefix(rows[4], "127.0.0.1:1 does not answer: ") {
		t.Errorf("status %d\n%s", status, out)
	}
}

// TestStatusWithoutARecord shows the status of a leader that has no record of its elections,
// as ZooKeeper's, or whose record says that it no longer leads.
func TestStatusWithoutARecord(t *testing.T) {
	for _, elog := range []string{"", "elog is not executed because it is not in the whitelist.\n", "[]",
		"[" + elogEntry(1, "2026-01-02T03:05:00Z", "LEADING", "serve", 2) + "," + elogEntry(1, "2026-01-02T03:06:00Z", "", "search", 0) + "]"} {
		s := wordServer(t, map[string]string{"srvr": srvr("leader", "0x200000009"), "elog": elog})
		out, errs, status := ask(showStatus, "text", s)
		if status != 0 || errs != "" || strings.Contains(out, "since") || strings.Count(out, "\n") != 2 {
			t.Errorf("elog %q: status %d %s\n%s", elog, status, errs, out)
		}
	}
}

func logOf(a *app) error {
	return a.elections(context.Background(), func(all []recorded) []recorded { return all },
		func(r recorded) string { return r.Line + "\n" })
}

func explain(back int) func(*app) error {
	return func(a *app) error {
		return a.elections(context.Background(), func(all []recorded) []recorded { return lastOfEach(all, back) },
			func(r recorded) string { return r.Explanation + "\n" })
	}
}

// TestElectionsOfSeveralServers shows that the elections of all servers are printed in order
// of time, and that a server without a record is reported and changes the exit status.
func TestElectionsOfSeveralServers(t *testing.T) {
	a := wordServer(t, map[string]string{"elog": "[" + elogEntry(1, "2026-01-02T03:04:05Z", "FOLLOWING", "serve", 1) + "," + elogEntry(1, "2026-01-02T03:04:09Z", "LEADING", "serve", 2) + "]"})
	b := wordServer(t, map[string]string{"elog": "[" + elogEntry(2, "2026-01-02T03:04:07Z", "LEADING", "serve", 1) + "]"})
	none := wordServer(t, map[string]string{"elog": "[]"})
	foreign := wordServer(t, nil)
	shut := wordServer(t, map[string]string{"elog": "elog is not executed because it is not in the whitelist.\n"})
	const gone = "127.0.0.1:1"

	out, errs, status := ask(logOf, "text", a, b)
	if want := "line 1 of 1\nline 1 of 2\nline 2 of 1\n"; out != want || errs != "" || status != 0 {
		t.Errorf("log: status %d %q %q", status, out, errs)
	}
	for back, want := range []string{"story 1 of 2\nstory 2 of 1\n", "story 1 of 1\n"} {
		if out, _, status := ask(explain(back), "text", a, b); out != want || status != 0 {
			t.Errorf("explain --back %d: status %d %q, want %q", back, status, out, want)
		}
	}
	if out, errs, status := ask(explain(2), "text", a, b); out != "" || status != ExitFailed || errs != "no server has a record of so many elections: use a smaller --back\n" {
		t.Errorf("explain --back 2: status %d %q %q", status, out, errs)
	}
	if out, _, _ := ask(explain(0), "json", b); out != elogEntry(2, "2026-01-02T03:04:07Z", "LEADING", "serve", 1)+"\n" {
		t.Errorf("the JSON differs from the server's answer: %s", out)
	}
	if out, errs, status := ask(logOf, "text", none); out != "" || status != ExitFailed || !strings.Contains(errs, none+": no election") {
		t.Errorf("a standalone server: status %d %q %q", status, out, errs)
	}
	out, errs, status = ask(logOf, "text", b, foreign, shut, gone)
	if out != "line 1 of 2\n" || status != ExitFailed {
		t.Errorf("with foreign servers: status %d %q", status, out)
	}
	for _, want := range []string{foreign + ": the server has no record of elections, or does not show it: no answer; if its port is for TLS, use --tls-ca and --tls-cert\n",
		shut + ": the server has no record of elections, or does not show it: elog is not executed", gone + ": dial"} {
		if !strings.Contains(errs, want) {
			t.Errorf("%q is missing in: %s", want, errs)
		}
	}
	if _, _, status := ask(logOf, "text", foreign); status != ExitFailed {
		t.Errorf("only a foreign server: status %d", status)
	}
	if _, _, status := ask(logOf, "text", gone); status != ExitNoConnection {
		t.Errorf("only an unreachable server: status %d", status)
	}
}

func TestLeaderElection(t *testing.T) {
	leads := wordServer(t, map[string]string{"elog": "[" + elogEntry(2, "2026-01-02T03:04:07Z", "LEADING", "serve", 7) + "]"})
	follows := wordServer(t, map[string]string{"elog": "[" + elogEntry(2, "2026-01-02T03:04:07Z", "FOLLOWING", "serve", 7) + "]"})
	if l, err := LeaderElection(context.Background(), leads); err != nil || l == nil || l.Epoch != 7 {
		t.Errorf("leader: %+v %v", l, err)
	}
	if l, err := LeaderElection(context.Background(), follows); err != nil || l != nil {
		t.Errorf("follower: %+v %v", l, err)
	}
	if _, err := LeaderElection(context.Background(), wordServer(t, nil)); err == nil {
		t.Error("no record must be an error")
	}
	looks := wordServer(t, map[string]string{"elog": "[" + elogEntry(2, "2026-01-02T03:04:07Z", "LOOKING", "look", 7) + "]"})
	for server, want := range map[string]bool{leads: true, follows: true, looks: false} {
		if serves, err := Serves(context.Background(), server); err != nil || serves != want {
			t.Errorf("serves: %v %v, want %v", serves, err, want)
		}
	}
}
