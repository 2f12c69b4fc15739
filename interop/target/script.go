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

// ScriptTimeout is the default timeout of a client program.
const ScriptTimeout = 6 * time.Minute

// Script describes one run of a client program.
type Script struct {
	Args    []string      // the program and its arguments
	Dir     string        // its working directory; empty: the current one
	Env     []string      // additional environment variables
	Stdin   string        // its standard input
	Timeout time.Duration // 0 means ScriptTimeout

	// Commands maps a line that the program prints, such as "@cut", to a function that the
	// test then calls. An error ends the program.
	Commands map[string]func() error
}

// Result is the output and exit status of a program.
type Result struct {
	Stdout, Stderr string
	Exit           int
}

// Output returns both streams, for failure messages.
func (r Result) Output() string {
	return fmt.Sprintf("exit %d\n--- stdout\n%s--- stderr\n%s", r.Exit, r.Stdout, r.Stderr)
}

// Tool returns the path of a program that the tests need. If it is missing, the test fails
// and names the package that make test would install.
func Tool(t testing.TB, name, pkg string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is missing: make test installs it (Debian package %s)", name, pkg)
	}
	return path
}

// File fails the test unless path exists; pkg is the package that contains it.
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

// Run runs the script. The test fails only if the script could not be run or did not end
// in time.
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
		t.Fatalf("%s: stopped, because a command that it printed failed: %s", strings.Join(s.Args, " "), r.Output())
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", strings.Join(s.Args, " "), err)
	}
	return r
}

// follow reads the program's output and calls the functions of its commands.
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
