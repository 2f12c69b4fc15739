package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"bellwether/internal/portblock"
	"bellwether/interop/target"
	"bellwether/zk"
)

// adminCommands are the commands of ZooKeeper 3.8, some of them by an alias or with a parameter, and one command that
// does not exist. Restore and snapshot, which only 3.9 has, are not among them.
var adminCommands = []string{"configuration", "connections", "dirs", "dump", "get_trace_mask", "hash", "initial_configuration", "is_read_only", "last_snapshot",
	"leader", "observers", "ruok", "server_stats", "stats", "set_trace_mask", "set_trace_mask?traceMask=abc", "set_trace_mask?traceMask=5", "voting_view",
	"watches", "watches_by_path", "watch_summary", "zabstate", "nosuch", "cons", "lead", "obsr", "connection_stat_reset", "observer_connection_stat_reset", "stat_reset"}

// fieldNames returns the names of the fields of an answer in their order, each with its indentation and the kind of
// its value. It returns KEY in place of names that are ids or paths.
func fieldNames(t *testing.T, text string) []string {
	t.Helper()
	if !json.Valid([]byte(text)) {
		t.Fatalf("not JSON: %s", text)
	}
	var all []string
	for line := range strings.Lines(text) {
		m := regexp.MustCompile(`^( +)"((?:[^"\\]|\\.)*)" : (.)`).FindStringSubmatch(line)
		if m == nil {
			continue
		}
		name := m[2]
		if regexp.MustCompile(`^(\d+|/.*)$`).MatchString(name) {
			name = "KEY"
		}
		all = append(all, fmt.Sprintf("%s%s %s", m[1], name, kindOf(m[3])))
	}
	return all
}

// kindOf returns the kind of a value by its first character.
func kindOf(first string) string {
	if strings.Contains("-0123456789", first) {
		return "0"
	}
	return first
}

// adminServer starts a server with an admin port and returns the address of its commands.
func adminServer(t *testing.T, kind target.Kind) (s *target.Server, url string) {
	t.Helper()
	free, err := portblock.Free("127.0.0.1", 1)
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(free[0])
	s = target.StartFor(t, kind, target.Options{Extra: map[string]string{
		"admin.enableServer": "true", "admin.serverAddress": "127.0.0.1", "admin.serverPort": port,
	}})
	return s, "http://127.0.0.1:" + port + "/commands"
}

// adminAnswer asks for a command and returns the status, the content type and the body.
func adminAnswer(t *testing.T, method, url string) (status int, kind, text string) {
	t.Helper()
	q, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, r.Header.Get("Content-Type"), string(b)
}

// TestAdminCommands compares the commands of a Bellwether server with those of a real AdminServer in the same state:
// names, order and kinds of all fields, status and content type.
func TestAdminCommands(t *testing.T) {
	t.Parallel()
	var urls []string
	for _, kind := range []target.Kind{target.Apache, target.Bellwether} {
		s, url := adminServer(t, kind)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		c, err := zk.Connect(ctx, s.Addr, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(ctx)
		for i := range 130 { // so that there is a digest of the 128th transaction
			if _, _, err := c.Create(ctx, fmt.Sprintf("/n%d", i), nil); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := c.Create(ctx, "/e", nil, zk.Ephemeral); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := c.GetW(ctx, "/e"); err != nil {
			t.Fatal(err)
		}
		urls = append(urls, url)
	}
	for _, command := range adminCommands {
		status, kind, want := adminAnswer(t, "GET", urls[0]+"/"+command)
		gotStatus, gotKind, got := adminAnswer(t, "GET", urls[1]+"/"+command)
		w, g := fieldNames(t, want), fieldNames(t, got)
		if strings.HasPrefix(command, "stat") || strings.HasPrefix(command, "server_stats") {
			slices.Sort(w)
			slices.Sort(g)
		}
		if w, g = slices.CompactFunc(w, isKey), slices.CompactFunc(g, isKey); !slices.Equal(w, g) || status != gotStatus || kind != gotKind {
			t.Errorf("%s: %d %s\n%s\nwant %d %s\n%s", command, gotStatus, gotKind, got, status, kind, want)
		}
	}
	for _, method := range []string{"POST", "PUT", "TRACE"} {
		status, _, _ := adminAnswer(t, method, urls[0]+"/ruok")
		got, _, _ := adminAnswer(t, method, urls[1]+"/ruok")
		if target.OtherZooKeeper() && method == "POST" && status == http.StatusInternalServerError {
			status = http.StatusMethodNotAllowed // 3.9 throws a NullPointerException
		}
		if got != status {
			t.Errorf("%s: status %d, want %d", method, got, status)
		}
	}
	_, _, list := adminAnswer(t, "GET", urls[0])
	_, _, ours := adminAnswer(t, "GET", urls[1])
	for line := range strings.Lines(list) {
		if !strings.Contains(ours, line) {
			t.Errorf("the list lacks %s", line)
		}
	}
}

// isKey reports whether two fields in a row are keys of the same kind, such as two sessions.
func isKey(a, b string) bool { return a == b && strings.Contains(a, "KEY") }
