package terminal

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func noPasswords(line string) bool { return strings.Contains(line, "secret") }

func openHistory(t *testing.T, path string) *History {
	t.Helper()
	h, err := OpenHistory(path, noPasswords)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func write(t *testing.T, h *History, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if _, err := h.Write(line); err != nil {
			t.Fatal(err)
		}
	}
}

// TestHistoryIsKept shows that another run has the lines, also those of several lines, and that
// passwords, empty lines, repeated ones and those after a blank are in no file.
func TestHistoryIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "history")
	h := openHistory(t, path)
	write(t, h, "ls /", "ls /", "", "  ", " hidden", "addauth digest ann:secret", "set /a 'two\nlines'", `"quoted" \n`, strings.Repeat("x", historyLineMax+1))
	want := []string{"ls /", "set /a 'two\nlines'", `"quoted" \n`}
	if got := openHistory(t, path).Dump(); !slices.Equal(got.([]string), want) {
		t.Errorf("%q, want %q", got, want)
	}
	b, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(b), "secret") || strings.Contains(string(b), "hidden") {
		t.Errorf("%s, %v", b, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := h.GetLine(3); err == nil {
		t.Error("a line that is not there")
	}
}

// TestHistoryIsBounded shows that the file does not grow without limit, and that its mode is
// corrected.
func TestHistoryIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	var b strings.Builder
	for i := range 3 * historyMax {
		fmt.Fprintf(&b, "ls /%d\n", i)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	h := openHistory(t, path)
	write(t, h, "last")
	if first, _ := h.GetLine(0); h.Len() != historyMax || first != fmt.Sprintf("ls /%d", 2*historyMax+1) {
		t.Errorf("%d lines, the first is %q", h.Len(), first)
	}
	text, err := os.ReadFile(path)
	if n := strings.Count(string(text), "\n"); err != nil || n != historyMax+1 {
		t.Errorf("%d lines in the file, %v", n, err)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}

// TestHistoryWithoutFile shows that a history that cannot be kept still works.
func TestHistoryWithoutFile(t *testing.T) {
	for _, path := range []string{"", filepath.Join(os.DevNull, "history"), t.TempDir()} {
		h, err := OpenHistory(path, noPasswords)
		if (path == "") != (err == nil) {
			t.Errorf("%s: %v", path, err)
		}
		write(t, h, "ls /")
		if h.Len() != 1 {
			t.Errorf("%s: %d lines", path, h.Len())
		}
	}
}
