package target

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// ScriptTimeout bounds one client program unless the Script says otherwise.
const ScriptTimeout = 6 * time.Minute

// Script is one run of a client program.
type Script struct {
	Args    []string      // the program and its arguments
	Dir     string        // where it runs; empty means here
	Env     []string      // what its environment has besides ours
	Stdin   string        // what it reads
	Timeout time.Duration // 0 means ScriptTimeout

	// Commands maps a line that the program prints, such as "@cut", to what
	// the test does then. A failing command ends the program.
	Commands map[string]func() error
}

// Result is what a program left behind.
type Result struct {
	Stdout, Stderr string
	Exit           int
}

// Output is both streams, for a failure's message.
func (r Result) Output() string {
	return fmt.Sprintf("exit %d\n--- stdout\n%s--- stderr\n%s", r.Exit, r.Stdout, r.Stderr)
}

// Tool returns the path of a program that the tests need, or fails the test and
// names the package that make test would install.
func Tool(t testing.TB, name, pkg string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is missing: make test installs it (Debian package %s)", name, pkg)
	}
	return path
}

// File fails the test unless path exists; pkg is the package that brings it.
func File(t testing.TB, path, pkg string) string {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s is missing: make test installs it (Debian package %s)", path, pkg)
	}
	return path
}

// Pass runs the script and fails the test unless it exits with 0.
func (s Script) Pass(t testing.TB) Result {
	t.Helper()
	r := s.Run(t)
	if r.Exit != 0 {
		t.Fatalf("%s: %s", strings.Join(s.Args, " "), r.Output())
	}
	return r
}

// Run runs the script to its end and fails the test only if it could not be run
// or did not end in time.
func (s Script) Run(t testing.TB) Result {
	t.Helper()
	timeout := s.Timeout
	if timeout == 0 {
		timeout = ScriptTimeout
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.Args[0], s.Args[1:]...)
	cmd.Dir = s.Dir
	cmd.Env = append(os.Environ(), s.Env...)
	cmd.Stdin = strings.NewReader(s.Stdin)
	cmd.SysProcAttr = childAttr()
	cmd.WaitDelay = time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, in := io.Pipe()
	cmd.Stdout = in
	lines := make(chan string, 1) // one value: all of stdout, when it has ended
	go func() { lines <- s.follow(stdout, cancel) }()
	err := cmd.Run()
	in.Close()
	r := Result{Stdout: <-lines, Stderr: stderr.String(), Exit: cmd.ProcessState.ExitCode()}
	switch ctx.Err() {
	case context.DeadlineExceeded:
		t.Fatalf("%s: stopped after %v: %s", strings.Join(s.Args, " "), timeout, r.Output())
	case context.Canceled:
		t.Fatalf("%s: stopped, as what it asked for failed: %s", strings.Join(s.Args, " "), r.Output())
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", strings.Join(s.Args, " "), err)
	}
	return r
}

// follow reads the program's output and carries out its commands.
func (s Script) follow(stdout io.Reader, stop func()) string {
	var all strings.Builder
	scan := bufio.NewScanner(stdout)
	for scan.Scan() {
		line := scan.Text()
		all.WriteString(line + "\n")
		if command := s.Commands[line]; command != nil {
			if err := command(); err != nil {
				fmt.Fprintf(&all, "%s: %v\n", line, err)
				stop()
			}
		}
	}
	_, _ = io.Copy(io.Discard, stdout) // a line that is too long must not block the program
	return all.String()
}
