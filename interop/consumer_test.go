package interop

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bellwether/interop/target"
)

// TestConsumerModule shows that a program in a separate module can use the public packages
// through a replace line, as in the README. It builds for Windows too, needs only the
// standard library, and uses no network to build. It runs against both servers.
func TestConsumerModule(t *testing.T) {
	program := buildConsumer(t)
	eachShared(t, func(t *testing.T, s *target.Server) {
		r := target.Script{Args: []string{program, s.Addr, fresh("consumer")}}.Pass(t)
		if want := "written by a consumer\n"; r.Stdout != want {
			t.Errorf("it printed %q, want %q", r.Stdout, want)
		}
	})
}

// TestConsumerModuleEmbeds shows that a test in a separate module can run servers in its
// process, with sockets and in a bubble of synctest. It needs only the servers'
// dependencies, and nothing from the network.
func TestConsumerModuleEmbeds(t *testing.T) {
	t.Parallel()
	root, dir := layOut(t, "embedded")
	need, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	_, need, _ = bytes.Cut(need, []byte("\n")) // drops the first line, which is the name of the module
	add(t, filepath.Join(dir, "go.mod"), need)
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	add(t, filepath.Join(dir, "go.sum"), sums)
	offline(t, dir, []string{"GOOS=windows"}, "test", "-c", "-o", "embedded.exe", ".")
	offline(t, dir, nil, "test", "-count=1", ".")
}

// buildConsumer creates the module and returns the program, built for this machine.
func buildConsumer(t *testing.T) string {
	t.Helper()
	_, dir := layOut(t, "consumer")
	add(t, filepath.Join(dir, "go.mod"), []byte("go 1.26.0\n"))
	program := filepath.Join(dir, "consumer")
	offline(t, dir, []string{"GOOS=windows"}, "build", "-o", program+".exe", ".")
	offline(t, dir, nil, "build", "-o", program, ".")
	return program
}

// layOut creates a module from a folder in testdata. Its go.mod still lacks the version of
// Go and its requirements.
func layOut(t *testing.T, name string) (root, dir string) {
	t.Helper()
	root, err := target.Root()
	if err != nil {
		t.Fatal(err)
	}
	module := strings.TrimSpace(target.Script{Args: []string{"go", "list", "-m"}, Dir: root}.Pass(t).Stdout)
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", name))); err != nil {
		t.Fatal(err)
	}
	add(t, filepath.Join(dir, "go.mod"), []byte("module consumer\n\nrequire "+module+" v0.0.0\n\nreplace "+module+" => "+root+"\n\n"))
	return root, dir
}

// add appends text to a file.
func add(t *testing.T, name string, text []byte) {
	t.Helper()
	before, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, append(before, text...), 0o644); err != nil {
		t.Fatal(err)
	}
}

// offline runs the go command for the module in dir without network access.
func offline(t *testing.T, dir string, env []string, args ...string) {
	t.Helper()
	with := append([]string{"env", "GOPROXY=off", "GOWORK=off", "CGO_ENABLED=0"}, env...)
	target.Script{Args: append(append(with, "go"), args...), Dir: dir, Timeout: buildTimeout}.Pass(t)
}
