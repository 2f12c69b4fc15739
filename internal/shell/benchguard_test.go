package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"bellwether/internal/bench"
	"bellwether/wire"
	"bellwether/zk"
)

// TestCensus shows for which answers of servers a measurement is refused. The own session is
// 0x7.
func TestCensus(t *testing.T) {
	srvr := func(connections int) string {
		return fmt.Sprintf("Zookeeper version: 3.8.0-x, built on 2022\nConnections: %d\nMode: follower\n", connections)
	}
	const (
		word  = " /127.0.0.1:1[0](queued=0,recved=1,sent=0)\n"
		own   = " /127.0.0.1:2[1](queued=0,recved=4,sent=4,sid=0x7,lop=CREA)\n"
		other = " /192.0.2.1:3[1](queued=0,recved=4,sent=4,sid=0x8,lop=CREA)\n"
		no    = "cons is not executed because it is not in the whitelist.\n"
	)
	for _, c := range []struct {
		what    string
		servers []map[string]string
		want    string
	}{
		{"alone", []map[string]string{{"srvr": srvr(2), "cons": word + own}}, ""},
		{"another client", []map[string]string{{"srvr": srvr(3), "cons": word + own + other}}, "1 other client (192.0.2.1:3), which"},
		{"a client of another server", []map[string]string{{"srvr": srvr(2), "cons": word + own}, {"srvr": srvr(2), "cons": word + other}}, "1 other client (192.0.2.1:3), which"},
		{"alone, known from srvr", []map[string]string{{"srvr": srvr(2), "cons": no}, {"srvr": srvr(1), "cons": no}}, ""},
		{"two others, known from srvr", []map[string]string{{"srvr": srvr(3), "cons": no}, {"srvr": srvr(2), "cons": no}}, "2 other clients, which"},
		{"one of two servers answers cons", []map[string]string{{"srvr": srvr(2), "cons": word + own}, {"srvr": srvr(2), "cons": no}}, "1 other client, which"},
		{"no word is answered", []map[string]string{{"srvr": "no", "cons": no}}, "do not answer srvr or cons"},
	} {
		a := newApp()
		a.timeout = time.Minute
		found := &census{app: a, own: map[wire.SessionID]bool{7: true}, others: map[string]bool{}}
		for _, answers := range c.servers {
			server := wordServer(t, answers)
			if v := found.ask(t.Context(), server); v.Address != server || strings.Contains(answers["srvr"], "Mode") != (v.Mode == "follower") {
				t.Errorf("%s: %+v", c.what, v)
			}
		}
		err := found.verdict()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
	}
}

// TestBenchErrors shows that the error of a run keeps its status, and that what the run has left
// comes last, with the command that deletes it.
func TestBenchErrors(t *testing.T) {
	b := &benchRun{app: newApp()}
	b.app.servers = "zk1:2181"
	left := &bench.LeftError{Root: "/b", Err: errors.New("gone")}
	const remedy = "/b and the znodes below it may be left: gone; to delete them: bellwether deleteall --server zk1:2181 /b"
	unreachable := &StatusError{ExitNoConnection, errors.New("no connection")}
	for _, c := range []struct {
		err    error
		status int
		text   string
	}{
		{errors.Join(zk.ErrConnectionLoss, left), ExitNoConnection, zk.ErrConnectionLoss.Error() + "\n" + remedy},
		{left, ExitFailed, remedy},
		{errors.Join(nil, left), ExitFailed, remedy},
		{fmt.Errorf("3 of 5: %w", unreachable), ExitNoConnection, "3 of 5: no connection"},
		{&zk.OpError{Op: "create", Path: "/b", Err: zk.ErrNoAuth}, ExitFailed, "Insufficient permission : /b; give --auth, or --path of a znode below which everybody may create znodes"},
	} {
		err := b.explain(c.err)
		status := &StatusError{Status: ExitFailed}
		errors.As(err, &status)
		if err.Error() != c.text || status.Status != c.status {
			t.Errorf("%v: %d %q, want %d %q", c.err, status.Status, err, c.status, c.text)
		}
	}
	if err := b.explain(nil); err != nil {
		t.Errorf("no error: %v", err)
	}
}

// TestOnlyCleanUpFails shows that a measurement after which only the clean-up fails is printed and kept, and that one
// which fails itself leaves no files.
func TestOnlyCleanUpFails(t *testing.T) {
	left := &bench.LeftError{Root: "/x", Err: errors.New("refused")}
	for _, c := range []struct {
		reports []*bench.Report
		files   int
	}{{[]*bench.Report{{Kind: "read"}}, 3}, {nil, 0}} {
		var out, log strings.Builder
		b := &benchRun{app: newApp(), kind: "read", results: t.TempDir()}
		b.out, b.err = &out, &log
		err := b.explain(b.run(t.Context(), func(context.Context) ([]*bench.Report, error) { return c.reports, errors.Join(nil, left) }))
		var status *StatusError
		if !errors.As(err, &status) || status.Status != ExitFailed || !strings.Contains(err.Error(), "/x and the znodes below it may be left: refused; to delete them: ") {
			t.Errorf("%v", err)
		}
		files, err := os.ReadDir(b.results)
		if err != nil || len(files) != c.files || strings.Contains(out.String(), "read") != (c.files > 0) {
			t.Errorf("%v files %v, output %q", err, files, out.String())
		}
	}
}
