package interop

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"bellwether/interop/target"
)

// shared holds the servers that all tests without restarts use together. Each test uses its
// own path.
var shared struct {
	sync.Mutex
	dir     string
	servers map[target.Kind]*target.Server
	errs    map[target.Kind]error
}

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "bellwether-interop-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	shared.dir = dir
	shared.servers = map[target.Kind]*target.Server{}
	shared.errs = map[target.Kind]error{}
	code := m.Run()
	for kind, s := range shared.servers {
		if code != 0 {
			fmt.Printf("the server that tests share, %s: %s\n", kind, target.Report(s))
		}
		s.Kill()
	}
	if err := target.RemoveBinary(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// sharedServer returns the shared server of a kind. The first call starts it.
func sharedServer(t *testing.T, kind target.Kind) *target.Server {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.servers[kind] == nil && shared.errs[kind] == nil {
		dir := filepath.Join(shared.dir, string(kind))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		shared.servers[kind], shared.errs[kind] = target.Start(kind, dir, target.Options{})
	}
	if err := shared.errs[kind]; err != nil {
		t.Fatal(err)
	}
	return shared.servers[kind]
}

// eachTarget runs body against every kind of server, in parallel.
func eachTarget(t *testing.T, body func(t *testing.T, kind target.Kind)) {
	t.Parallel()
	for _, kind := range target.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			body(t, kind)
		})
	}
}

// eachShared is like eachTarget, but with the shared server of each kind.
func eachShared(t *testing.T, body func(t *testing.T, s *target.Server)) {
	eachTarget(t, func(t *testing.T, kind target.Kind) { body(t, sharedServer(t, kind)) })
}

// proxyCommands returns the commands that a script can print while it runs: cut its
// connections through the proxy once, refuse them for a while, or accept them again.
func proxyCommands(p *target.Proxy) map[string]func() error {
	return map[string]func() error{
		"@cut":  func() error { p.Cut(); return nil },
		"@down": func() error { p.Down(); return nil },
		"@up":   func() error { p.Up(); return nil },
	}
}

// used counts the paths that fresh has returned.
var used atomic.Int64

// fresh returns a path on the shared servers that no other test, and no other run of the same
// test, uses.
func fresh(name string) string {
	return fmt.Sprintf("/%s-%d", name, used.Add(1))
}
