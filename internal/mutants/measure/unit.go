package measure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"bellwether/internal/mutants"
)

// Limits of the tests of one package.
const (
	memoryKiB = 6 << 20  // virtual memory: a mutant may use memory without end
	outputMax = 64 << 10 // bytes of output that are kept for messages
)

// buildFlags make builds of tests fast. The compiler optimises: without that, a build takes
// half a second less, but the tests take twice as long, and those that count allocations fail.
var buildFlags = []string{"-vet=off", "-gcflags=./...=-dwarf=false", "-ldflags=-s -w"}

// collectLess makes the garbage collector of builds and tests run less often, which saves a
// third of the processor time.
const collectLess = "GOGC=400"

// unit judges a mutant by the unit tests. dir is a folder for its files, and before is what
// is known from a run with other sources.
func (r *Runner) unit(ctx context.Context, m *mutants.Mutant, dir, overlay string, before mutants.Result) (mutants.Result, error) {
	out := mutants.Result{Mutant: m.Name, Score: mutants.Unit, Verdict: mutants.Survived}
	tests := mutants.TestsOf(m.Package())
	for i, pkg := range tests {
		groups, err := r.groups(ctx, pkg)
		if err != nil {
			return out, err
		}
		began := time.Now()
		program := filepath.Join(dir, fmt.Sprintf("tests-%d", i))
		if text, err := r.build(ctx, overlay, program, pkg); err != nil {
			if ctx.Err() == nil && isCompilerError(text) { // without the mutant it compiles
				out.Verdict = mutants.Invalid
				return out, nil
			}
			return out, fmt.Errorf("build the tests of %s with %s: %w\n%s", pkg, m.Name, err, text)
		}
		known := ""
		if before.Where == pkg {
			known = before.By
		}
		test, err := r.killer(ctx, pkg, program, known, groups)
		if err != nil {
			return out, err
		}
		out.Seconds += time.Since(began).Seconds()
		if test != "" {
			out.Verdict, out.Where, out.By = mutants.Killed, pkg, test
			return out, nil
		}
	}
	out.Where = strings.Join(tests, ",")
	return out, nil
}

// build builds the test program of a package, with an overlay unless that is empty.
func (r *Runner) build(ctx context.Context, overlay, program, pkg string) (text string, err error) {
	args := append([]string{"test", "-c", "-o", program}, buildFlags...)
	if overlay != "" {
		args = append(args, "-overlay="+overlay)
	}
	return r.goCommand(ctx, append(args, "./"+pkg)...)
}

// goCommand runs the go command in the module's folder.
func (r *Runner) goCommand(ctx context.Context, args ...string) (text string, err error) {
	r.building.RLock()
	defer r.building.RUnlock()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = r.Module.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", collectLess)
	if r.temporary != "" { // a go command that is killed leaves its folder
		cmd.Env = append(cmd.Env, "GOTMPDIR="+r.temporary)
	}
	if r.Cache != "" {
		cmd.Env = append(cmd.Env, "GOCACHE="+r.Cache)
	}
	b, err := cmd.CombinedOutput()
	return string(b), err
}

var compilerError = regexp.MustCompile(`(?m)^(\./|/|[\w.-]+/).*\.go:\d+:\d+: `)

// isCompilerError reports whether a build has failed because of the source.
func isCompilerError(text string) bool { return compilerError.MatchString(text) }

// killer returns the test of a package that kills a mutant, "" if none does. A test kills
// it only if it fails again when it is run alone: a test that fails because the machine is
// busy does not count. known is a test that is tried first.
func (r *Runner) killer(ctx context.Context, pkg, program, known string, groups []group) (string, error) {
	for _, g := range groups {
		if slices.Contains(g.tests, known) {
			if run, err := r.run(ctx, pkg, program, g.limit, only(known)); err != nil || run.failed {
				return known, err
			}
		}
	}
	for _, g := range groups {
		if test, err := r.killerOf(ctx, pkg, program, g); err != nil || test != "" {
			return test, err
		}
	}
	return "", nil
}

// killerOf returns the test of a group that kills a mutant, "" if none does.
func (r *Runner) killerOf(ctx context.Context, pkg, program string, g group) (string, error) {
	tests := slices.Clone(g.tests)
	for len(tests) > 0 {
		all, err := r.run(ctx, pkg, program, g.limit, "-test.failfast", only(tests...))
		if err != nil || !all.failed {
			return "", err
		}
		i := slices.Index(tests, all.test)
		if i < 0 {
			return "", fmt.Errorf("the tests of %s fail, and no test fails\n%s", pkg, all.text())
		}
		alone, err := r.run(ctx, pkg, program, g.limit, only(all.test))
		if err != nil || alone.failed {
			return all.test, err
		}
		tests = slices.Delete(tests, i, i+1)
	}
	return "", nil
}

// only is the argument that runs only some tests.
func only(tests ...string) string { return "-test.run=^(" + strings.Join(tests, "|") + ")$" }

// testRun is what a run of a test program has shown.
type testRun struct {
	failed  bool
	test    string // the first test that has failed or, after a crash, the last one that ran
	running string // the last test that was begun
	// durations are how long each test took or, if it runs subtests in parallel, the longest
	// of these.
	durations map[string]time.Duration
	rest      []byte // the beginning of the line that is not complete
	end       []byte // the last lines
}

// run runs a test program in the folder of its package.
func (r *Runner) run(ctx context.Context, pkg, program string, limit time.Duration, args ...string) (*testRun, error) {
	args = append([]string{"-c", fmt.Sprintf(`ulimit -v %d; exec "$0" "$@"`, memoryKiB), program,
		"-test.v", "-test.timeout=" + limit.String()}, args...)
	if r.usesRapid(pkg) { // the same inputs in each run, so that the score does not depend on luck
		args = append(args, "-rapid.seed=1", "-rapid.nofailfile", "-rapid.shrinktime=0s")
	}
	ctx, cancel := context.WithTimeout(ctx, limit+limitMin) // more than the program's own limit
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", args...)
	cmd.Dir = filepath.Join(r.Module.root, pkg)
	cmd.Env = append(os.Environ(), collectLess)
	run := &testRun{durations: map[string]time.Duration{}}
	cmd.Stdout, cmd.Stderr = run, run
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, err
	}
	if run.failed = err != nil; run.failed && run.test == "" {
		run.test = run.running
	}
	return run, nil
}

// usesRapid reports whether the tests of a package have the flags of rapid.
func (r *Runner) usesRapid(pkg string) bool {
	files, _ := filepath.Glob(filepath.Join(r.Module.root, pkg, "*_test.go"))
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte(`"pgregory.net/rapid"`)) {
			return true
		}
	}
	return false
}

// Write takes output of the program.
func (t *testRun) Write(b []byte) (int, error) {
	n := len(b)
	t.end = append(t.end, b...)
	if len(t.end) > 2*outputMax {
		t.end = append(t.end[:0], t.end[len(t.end)-outputMax:]...)
	}
	for len(b) > 0 {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		if t.rest = append(t.rest, line[:min(len(line), outputMax)]...); whole {
			t.line(string(t.rest))
			t.rest = t.rest[:0]
		}
		b = rest
	}
	return n, nil
}

var (
	failedLine  = regexp.MustCompile(`^--- FAIL: (\w+)`)
	endLine     = regexp.MustCompile(`^ *--- (?:PASS|SKIP|FAIL): (\w+)(?:/.*)? \((\d+\.\d+s)\)$`)
	runLine     = regexp.MustCompile(`^=== (?:RUN|CONT) +(\w+)`)
	timeoutLine = regexp.MustCompile(`^\t\t(\w+)[^ ]* \(\d`)
)

func (t *testRun) line(line string) {
	if m := failedLine.FindStringSubmatch(line); m != nil && t.test == "" {
		t.test = m[1]
	}
	if m := endLine.FindStringSubmatch(line); m != nil {
		took, _ := time.ParseDuration(m[2])
		t.durations[m[1]] = max(t.durations[m[1]], took)
	}
	if m := runLine.FindStringSubmatch(line); m != nil {
		t.running = m[1]
	}
	if m := timeoutLine.FindStringSubmatch(line); m != nil {
		t.running = m[1]
	}
}

// text returns the end of the output.
func (t *testRun) text() string {
	lines := strings.Split(strings.TrimSpace(string(t.end)), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}
