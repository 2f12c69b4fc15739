package notice

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// lines is a log in memory, without times.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.b.Reset()
	return strings.FieldsFunc(l.b.String(), func(r rune) bool { return r == '\n' })
}

func logTo(l *lines, level slog.Level) *Log {
	return New(slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})))
}

// TestRepetitionsAreCounted shows that a message is logged once, that summaries follow
// after one minute and then after two, and that a message that has stopped is new again.
func TestRepetitionsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out lines
		l := logTo(&out, slog.LevelInfo)
		defer l.Close()
		for i := range 1000 {
			l.Say(slog.LevelWarn, "garbage", fmt.Sprintf("10.0.0.1:%d", i), "err", i)
		}
		want(t, &out, `level=WARN msg=garbage peer=10.0.0.1:0 err=0`)
		time.Sleep(periodFirst)
		synctest.Wait()
		want(t, &out, `level=WARN msg="repeated: garbage" times=999 within=1m0s last=10.0.0.1:999`)
		l.Say(slog.LevelWarn, "garbage", "[::1]:7")
		l.Say(slog.LevelWarn, "garbage", "[::1]:8")
		want(t, &out, `level=WARN msg=garbage peer=[::1]:7`)
		time.Sleep(2 * periodFirst)
		synctest.Wait()
		want(t, &out, `level=WARN msg="repeated: garbage" times=1 within=2m0s last=[::1]:8`)
		time.Sleep(4 * periodFirst)
		synctest.Wait()
		want(t, &out)
		l.Say(slog.LevelWarn, "garbage", "10.0.0.1:1")
		want(t, &out, `level=WARN msg=garbage peer=10.0.0.1:1`)
	})
}

// TestAttackersAreBounded shows that any number of addresses and kinds causes few lines,
// and that none of them stays in memory.
func TestAttackersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out lines
		l := logTo(&out, slog.LevelInfo)
		defer l.Close()
		for i := range 100_000 {
			l.Say(slog.LevelWarn, "garbage", fmt.Sprintf("[2001:db8::%x]:1", i))
		}
		if n := len(out.take()); n != hostsMax {
			t.Errorf("%d lines of one kind, want %d", n, hostsMax)
		}
		for i := range 10_000 {
			l.Say(slog.LevelWarn, fmt.Sprint("kind ", i), "10.0.0.1:1")
		}
		if n := len(out.take()); n > kindsMax+hostsMax {
			t.Errorf("%d lines, want at most %d", n, kindsMax+hostsMax)
		}
		if n := len(l.kinds); n > kindsMax+1 {
			t.Errorf("%d kinds are in memory, want 0", n)
		}
		time.Sleep(periodFirst)
		synctest.Wait()
		if got := strings.Join(out.take(), "\n"); !strings.Contains(got, fmt.Sprintf("times=%d ", 100_000-hostsMax)) || !strings.Contains(got, rest) {
			t.Errorf("summaries:\n%s", got)
		}
	})
}

// TestDebugLeavesNothingOut shows that level debug logs every message, and that Close
// writes the summaries once.
func TestDebugLeavesNothingOut(t *testing.T) {
	var out lines
	l := logTo(&out, slog.LevelDebug)
	l.Say(slog.LevelError, "no file descriptor", "")
	l.Say(slog.LevelError, "no file descriptor", "")
	l.Close()
	l.Close()
	want(t, &out, `level=ERROR msg="no file descriptor"`, `level=DEBUG msg="no file descriptor"`,
		`level=ERROR msg="repeated: no file descriptor" times=1 within=1m0s last=""`)
}

func want(t *testing.T, out *lines, lines ...string) {
	t.Helper()
	if got := out.take(); strings.Join(got, "\n") != strings.Join(lines, "\n") {
		t.Errorf("logged\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(lines, "\n"))
	}
}
