package interop

import (
	"bytes"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bellwether/internal/shadow/relay"
	"bellwether/interop/target"
)

// TestShadowObserverBesideReconfig: an observer that the others do not list joins an ensemble with reconfigEnabled=true. With this key it
// adopts their list of members, in which it is missing: like ZooKeeper's it goes on as a follower without a vote, and does not start
// again. With reconfigEnabled=false it stays an observer, also when its server lines are in a dynamic file. Shadow warns of the first.
func TestShadowObserverBesideReconfig(t *testing.T) {
	t.Parallel()
	a, b := target.Apache, target.Bellwether
	e, err := target.NewEnsemble(t.TempDir(), target.EnsembleOptions{Kinds: []target.Kind{a, a, b, b, b}, Observers: 4, Unlisted: true,
		Extra: map[string]string{"reconfigEnabled": "true", "standaloneEnabled": "false", "initLimit": "60", "syncLimit": "30"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		e.Kill()
		if t.Failed() {
			t.Log(target.Report(e.Servers...))
		}
	})
	fixed := strings.NewReplacer("reconfigEnabled=true", "reconfigEnabled=false")
	rewrite(t, e.Servers[3], fixed.Replace)
	rewrite(t, e.Servers[4], fixed.Replace)
	rewrite(t, e.Servers[4], func(text string) string { return intoDynamicFile(t, e.Servers[4], text) })
	if err := e.Begin(); err != nil {
		t.Fatal(err)
	}
	want := []string{"leader", "follower", "follower", "observer", "observer"}
	for i, role := range want {
		awaitRole(t, e.Servers[i], role)
	}
	for i, s := range e.Servers[2:] {
		text := checkLog(t, e.Servers[0].Addr, s.Addr)
		if warned := strings.Contains(text, "is not an observer"); warned != (i == 0) || strings.Contains(text, "not a Bellwether") {
			t.Errorf("server %d: %s", i+3, text)
		}
	}
	if text := checkLog(t, e.Servers[0].Addr, e.Servers[1].Addr); !strings.Contains(text, "is not a Bellwether server") {
		t.Errorf("ZooKeeper as the observer: %s", text)
	}
	if err := e.Servers[2].Restart(); err == nil || !strings.Contains(e.Servers[2].Log(), "there is no line server.3") {
		t.Errorf("the next start of the server with reconfigEnabled=true: %v", err)
	}
	for _, s := range e.Servers[3:] {
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
		awaitRole(t, s, "observer")
	}
}

// rewrite changes the zoo.cfg of a server.
func rewrite(t *testing.T, s *target.Server, change func(string) string) {
	t.Helper()
	text, err := os.ReadFile(s.ConfigPath())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.ConfigPath(), []byte(change(string(text))), 0o644); err != nil {
		t.Fatal(err)
	}
}

// intoDynamicFile moves the server lines of a zoo.cfg to a dynamic file, and returns the rest.
func intoDynamicFile(t *testing.T, s *target.Server, text string) string {
	t.Helper()
	var static, dynamic strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "server.") {
			dynamic.WriteString(line)
		} else {
			static.WriteString(line)
		}
	}
	file := filepath.Join(filepath.Dir(s.ConfigPath()), "zoo.cfg.dynamic")
	if err := os.WriteFile(file, []byte(dynamic.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return static.String() + "dynamicConfigFile=" + file + "\n"
}

func awaitRole(t *testing.T, s *target.Server, role string) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(eventTimeout); s.Role() != role; <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%s is %q, want %s", s.Addr, s.Role(), role)
		}
	}
}

// checkLog returns what the relay logs when it checks the servers at the start.
func checkLog(t *testing.T, old, observer string) string {
	t.Helper()
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listen.Close()
	var log bytes.Buffer
	r, err := relay.New(relay.Options{Listen: listen, Old: []string{old}, Observer: observer, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Check(t.Context()); err != nil {
		t.Error(err)
	}
	return log.String()
}
