package interleave

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bellwether/internal/interleave/instrument"
	"bellwether/internal/interleave/schedule"
)

var (
	oneSeed = flag.Uint64("seed", 0, "make only the run of this seed, and print its trace if a rule is broken")
	forTime = flag.Duration("for", 0, "make runs of fresh seeds for this time, beginning with a seed that depends on the clock")
	seeds   = flag.Uint64("seeds", 100, "number of runs, of the seeds from 1")
)

// root is the module's folder, relative to this package.
const root = "../.."

// TestOrders makes runs of seeds and checks the rules. In a build without the stand-ins, it
// makes such a build and runs itself there.
func TestOrders(t *testing.T) {
	if !schedule.Instrumented {
		inBuildWithStandIns(t)
		return
	}
	start, total := time.Now(), outcome{}
	first, runs := uint64(1), *seeds
	switch {
	case *oneSeed != 0:
		first, runs = *oneSeed, 1
	case *forTime > 0:
		first, runs = uint64(start.UnixNano()), 1<<62
	}
	made := uint64(0)
	for ; made < runs && (*forTime == 0 || time.Since(start) < *forTime) && !t.Failed(); made++ {
		o := run(t, first+made, *oneSeed != 0)
		report(t, o)
		total.steps, total.images, total.events = total.steps+o.steps, total.images+o.images, total.events+o.events
	}
	t.Logf("%d runs, %d steps, %d power failures, %d events in %v", made, total.steps, total.images, total.events, time.Since(start).Round(time.Millisecond))
}

// traceShown is how many lines of a trace a report shows.
const traceShown = 120

// report fails the test if a rule was broken. The run is then repeated with a trace, if it
// had none.
func report(t *testing.T, o *outcome) {
	t.Helper()
	if len(o.faults) == 0 {
		return
	}
	seed := o.seed
	if o.trace == nil && !o.stuck {
		o = run(t, o.seed, true)
	}
	if len(o.faults) == 0 {
		t.Errorf("seed %d breaks rules, but not when it is repeated", seed)
		return
	}
	slices.SortStableFunc(o.faults, func(a, b fault) int { return a.line - b.line })
	var rules []string
	for _, f := range o.faults {
		rules = append(rules, f.what)
	}
	shown := o.trace
	if *oneSeed == 0 {
		end := min(o.faults[0].line, len(o.trace))
		shown = o.trace[max(0, end-traceShown):end]
	}
	t.Errorf("seed %d breaks rules; the trace until the first one is seen to be broken:\n%s\n%s\nagain:   go test ./internal/interleave -run TestOrders -seed %d",
		seed, strings.Join(shown, "\n"), strings.Join(rules, "\n"), seed)
}

// TestSeedRepeats shows that a seed decides the order of all steps, until the server is
// stopped. Then it goes through its connections in the order of a map.
func TestSeedRepeats(t *testing.T) {
	if !schedule.Instrumented {
		return // TestOrders runs it in the build with the stand-ins
	}
	for seed := uint64(1); seed <= 5; seed++ {
		a, b := run(t, seed, true), run(t, seed, true)
		if a.digest != b.digest {
			t.Errorf("seed %d: %d steps, then %d steps; the first difference:\n%s", seed, a.steps, b.steps, difference(a.trace, b.trace))
		}
	}
}

// difference returns the first lines in which two traces differ, and some before.
func difference(a, b []string) string {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	from := max(0, i-10)
	return strings.Join(a[from:min(i+3, len(a))], "\n") + "\n\n" + strings.Join(b[from:min(i+3, len(b))], "\n")
}

// inBuildWithStandIns runs the tests of this package in a build with the stand-ins of
// package schedule.
func inBuildWithStandIns(t *testing.T) {
	args := []string{"test", "-overlay=" + overlay(t), "-vet=off", "-count=1", "-timeout=0", "-v", "-cpu=1", "-run=^(TestOrders|TestSeedRepeats)$", ".", "-args",
		fmt.Sprint("-seed=", *oneSeed), fmt.Sprint("-for=", *forTime), fmt.Sprint("-seeds=", *seeds)}
	out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
		return
	}
	t.Logf("%s", out)
}

// overlay writes the changed files and returns the overlay file for go test.
func overlay(t *testing.T) string {
	t.Helper()
	changed, err := instrument.Files(listFolder, readFile)
	if err != nil {
		t.Fatal(err)
	}
	dir, replace := t.TempDir(), map[string]string{}
	for file, text := range changed {
		from, err := filepath.Abs(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		replace[from] = to
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return list
}

func listFolder(folder string) (files []string, err error) {
	entries, err := os.ReadDir(filepath.Join(root, folder))
	for _, e := range entries {
		files = append(files, path.Join(folder, e.Name()))
	}
	return files, err
}

func readFile(file string) (string, error) {
	b, err := os.ReadFile(filepath.Join(root, file))
	return string(b), err
}
