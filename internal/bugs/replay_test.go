package bugs

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// broken builds bellwether-sim with a patch and returns the path of the program.
func broken(t *testing.T, name string) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "bellwether-sim")
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay="+overlay(t, load(t, name)), "-gcflags=-N -l", "-ldflags=-s -w",
		"-o", program, "./cmd/bellwether-sim")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// simulate runs a printed command in a shell. It must fail because of rule, or of any rule
// if rule is empty.
func simulate(t *testing.T, program, command, rule string) string {
	t.Helper()
	run := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(command, "bellwether-sim", `"$0"`, 1), program)
	out, err := run.Output()
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 1 || !strings.Contains(string(out), " breaks "+rule) {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

// printed returns the command that a report prints after a word.
func printed(t *testing.T, report, word string) string {
	t.Helper()
	for line := range strings.Lines(report) {
		if rest, ok := strings.CutPrefix(line, word+":"); ok {
			return strings.TrimSpace(rest)
		}
	}
	t.Fatalf("no line begins with %s:\n%s", word, report)
	return ""
}

// TestReplay shows that the command in a failure report reproduces the report byte for
// byte in another process. This holds for the shrunk run as well as for the whole one.
func TestReplay(t *testing.T) {
	for _, patch := range []string{"fires-quorum", "readonly-start"} {
		t.Run(patch, func(t *testing.T) {
			t.Parallel()
			program := broken(t, patch)
			out := simulate(t, program, "bellwether-sim --seed 1 --for 10m", "")
			at := strings.Index(out, " breaks ")
			whole := out[strings.LastIndex(out[:at], "seed "):]
			rule, _, _ := strings.Cut(out[at+len(" breaks "):], ":")
			if again := simulate(t, program, printed(t, whole, "again"), rule); again != whole {
				t.Errorf("first\n%s\nthen\n%s", whole, again)
			}
			small := simulate(t, program, printed(t, whole, "smaller"), rule)
			if again := simulate(t, program, printed(t, small, "again"), rule); again != small {
				t.Errorf("shrunk\n%s\nthen\n%s", small, again)
			}
			if strings.Count(small, "\n") > strings.Count(whole, "\n") || strings.Count(whole, "\n") > 140 {
				t.Errorf("the report is too long:\n%s\nshrunk\n%s", whole, small)
			}
		})
	}
}
