package bugs

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"bellwether/internal/interleave/instrument"
	"bellwether/internal/patch"
)

// root is the module's folder, relative to this package.
const root = "../.."

// TestScenariosExist shows that each scenario of the table is a test of its package, and
// that each patch in testdata belongs to a scenario and applies to the code.
func TestScenariosExist(t *testing.T) {
	tests := map[string]map[string]bool{}
	used := map[string]bool{}
	for _, b := range all() {
		if len(b.scenarios) == 0 && b.rest == "" {
			t.Errorf("%s: no scenario, and no reason why", b.tickets)
		}
		for _, s := range b.scenarios {
			if tests[s.pkg] == nil {
				tests[s.pkg] = testsOf(t, s.pkg)
			}
			if !tests[s.pkg][s.test] {
				t.Errorf("%s: internal/%s has no %s", b.tickets, s.pkg, s.test)
			}
			if s.patch != "" && used[s.patch] {
				t.Errorf("%s: patch %s is used twice", b.tickets, s.patch)
			}
			used[s.patch] = true
		}
	}
	for _, f := range firing {
		used[f.patch] = true
	}
	files, err := filepath.Glob("testdata/*.patch")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".patch")
		if !used[name] {
			t.Errorf("%s belongs to no scenario", f)
		}
		if _, err := load(t, name).Apply(source); err != nil {
			t.Errorf("%s: %v%s", f, err, carryHelp)
		}
	}
	if len(files) < 25 {
		t.Errorf("%d patches", len(files))
	}
}

// testsOf returns the names of a package's tests.
func testsOf(t *testing.T, pkg string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "internal", pkg, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, f := range files { // all files, so that go test knows the inputs of its cached result
		tree, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range tree.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				names[f.Name.Name] = true
			}
		}
	}
	return names
}

// TestBugsAreFound brings each bug back and checks that its scenario fails. The package of
// the scenario shows that it passes without the patch.
func TestBugsAreFound(t *testing.T) {
	for _, b := range all() {
		for _, s := range b.scenarios {
			if s.patch == "" {
				continue
			}
			t.Run(s.patch, func(t *testing.T) {
				t.Parallel()
				out, failed := runWith(t, s, "-run=^"+s.test+"$", "-timeout=10m")
				if why := notFound(out, failed, s.test); why != "" {
					t.Fatalf("%s: %s\n%s", load(t, s.patch).What, why, tail(out))
				}
				t.Log(tail(out))
			})
		}
	}
}

// notFound returns why a run of a test has not found the bug, or "" if it has.
func notFound(out string, failed bool, test string) string {
	switch {
	case strings.Contains(out, "[build failed]"), strings.Contains(out, "[setup failed]"):
		return "the code does not compile with the patch"
	case strings.Contains(out, "panic: test timed out"):
		return "the test timed out"
	case !failed || !strings.Contains(out, "--- FAIL: "+test):
		return test + " does not find the bug"
	}
	return ""
}

// TestNotFoundIsReported shows that only the failure of the scenario's own test counts as finding the bug: a build
// that fails, a timeout and the failure of another test do not.
func TestNotFoundIsReported(t *testing.T) {
	for _, c := range []struct {
		out    string
		failed bool
		want   string
	}{
		{"--- FAIL: TestX (0.00s)\nFAIL", true, ""},
		{"--- FAIL: TestX (0.00s)\npanic: boom", true, ""},
		{"ok  \tx\t0.1s", false, "does not find"},
		{"ok  \tx\t0.1s [no tests to run]", false, "does not find"},
		{"# x\nundefined: y\nFAIL\tx [build failed]", true, "does not compile"},
		{"panic: test timed out after 60s\n--- FAIL: TestX", true, "timed out"},
		{"--- FAIL: TestPortblockProcess (0.00s)\nFAIL", true, "does not find"},
	} {
		if got := notFound(c.out, c.failed, "TestX"); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%q: %q", c.out, got)
		}
	}
}

// runWith runs tests of a scenario's package with its patch.
func runWith(t *testing.T, s scenario, args ...string) (out string, failed bool) {
	t.Helper()
	p := load(t, s.patch)
	list := overlay(t, p)
	if s.pkg == "interleave" {
		list = scheduledOverlay(t, p)
		args = append(args, "-seeds=500") // order-watch needs 284
	}
	args = append([]string{"test", "-overlay=" + list, "-vet=off", "-count=1",
		"-gcflags=./...=-N -l -dwarf=false", "-ldflags=-s -w", "-failfast", "./internal/" + s.pkg}, args...) // flags that make the build fast
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = root
	b, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(b), err != nil
}

// source returns the text of a file of the module.
func source(file string) (string, error) {
	b, err := os.ReadFile(filepath.Join(root, file))
	return string(b), err
}

// overlay writes the patched files and returns the overlay file for go build.
func overlay(t *testing.T, p *patch.Patch) string {
	t.Helper()
	changed, err := p.Apply(source)
	if err != nil {
		t.Fatal(err)
	}
	return writeOverlay(t, changed)
}

// scheduledOverlay is overlay for a build in which package schedule decides the order of the
// server's goroutines.
func scheduledOverlay(t *testing.T, p *patch.Patch) string {
	t.Helper()
	changed, err := p.Apply(source)
	if err != nil {
		t.Fatal(err)
	}
	scheduled, err := instrument.Files(filesOf, func(file string) (string, error) {
		if text, ok := changed[file]; ok {
			return text, nil
		}
		return source(file)
	})
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(changed, scheduled)
	return writeOverlay(t, changed)
}

// filesOf returns the names of the files of a folder of the module.
func filesOf(folder string) (files []string, err error) {
	entries, err := os.ReadDir(filepath.Join(root, folder))
	for _, e := range entries {
		files = append(files, path.Join(folder, e.Name()))
	}
	return files, err
}

// writeOverlay writes changed files and returns the overlay file.
func writeOverlay(t *testing.T, changed map[string]string) string {
	t.Helper()
	dir, replace := t.TempDir(), map[string]string{}
	for file, text := range changed {
		from, err := filepath.Abs(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, strings.ReplaceAll(file, "/", "-"))
		if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		replace[from] = to
	}
	list := filepath.Join(dir, "overlay.json")
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(list, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return list
}

// tail returns the end of an output, without goroutine traces.
func tail(out string) string {
	out = regexp.MustCompile(`(?s)\ngoroutine \d+ .*`).ReplaceAllString(out, "\n")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return strings.Join(lines[max(0, len(lines)-12):], "\n")
}

// models are the tests of a package that make random runs.
var models = map[string]string{
	"zab":      "TestOneHistory",
	"election": "TestElectionsOfARandomNetwork",
	"tree":     "TestDigestFollowsTheTree|TestPipelinedEqualsOneByOne|TestFuzzySnapshot|TestWatchesExactlyOnce",
}

// runsMax is the number of random runs that measure tries.
const runsMax = 500

// measure returns how many random runs a package's model needs to find a bug. It returns ""
// if the package has no model or runsMax runs do not find the bug.
func measure(t *testing.T, s scenario) string {
	t.Helper()
	if models[s.pkg] == "" {
		return ""
	}
	out, failed := runWith(t, s, "-run=^("+models[s.pkg]+")$", "-timeout=300s", "-args", "-rapid.seed=1",
		fmt.Sprint("-rapid.checks=", runsMax), "-rapid.nofailfile", "-rapid.shrinktime=0s")
	if found := regexp.MustCompile(`failed after (\d+) tests|panic after (\d+) tests`).FindStringSubmatch(out); failed && found != nil {
		before, _ := strconv.Atoi(found[1] + found[2])
		return strconv.Itoa(before + 1)
	}
	if !failed || slices.Contains(strings.Fields(out), "timed") {
		return ""
	}
	t.Fatalf("%s: %s", s.patch, tail(out))
	return ""
}
