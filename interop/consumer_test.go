package interop

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bellwether/interop/target"
)

// A program in a module of its own builds on the public packages through a
// replace line, as the README shows it: also for Windows, from the standard library
// alone, and without asking the network. It runs on both servers.
func TestConsumerModule(t *testing.T) {
	program := buildConsumer(t)
	eachShared(t, func(t *testing.T, s *target.Server) {
		r := target.Script{Args: []string{program, s.Addr, fresh("consumer")}}.Pass(t)
		if want := "written by a consumer\n"; r.Stdout != want {
			t.Errorf("it printed %q, want %q", r.Stdout, want)
		}
	})
}

// buildConsumer lays out the module and returns the program built for here.
func buildConsumer(t *testing.T) string {
	t.Helper()
	root, err := target.Root()
	if err != nil {
		t.Fatal(err)
	}
	module := strings.TrimSpace(target.Script{Args: []string{"go", "list", "-m"}, Dir: root}.Pass(t).Stdout)
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/consumer")); err != nil {
		t.Fatal(err)
	}
	modFile := "module consumer\n\ngo 1.26.0\n\nrequire " + module + " v0.0.0\n\nreplace " + module + " => " + root + "\n"
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(modFile), 0o644); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "consumer")
	build(t, dir, filepath.Join(dir, "consumer.exe"), "GOOS=windows")
	build(t, dir, program)
	return program
}

// build compiles the module in dir without reaching for the network.
func build(t *testing.T, dir, program string, env ...string) {
	t.Helper()
	args := append([]string{"env", "GOPROXY=off", "GOWORK=off", "CGO_ENABLED=0"}, env...)
	target.Script{Args: append(args, "go", "build", "-o", program, "."), Dir: dir}.Pass(t)
}
