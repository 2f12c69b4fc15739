package measure

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"bellwether/internal/mutants"
)

// small is a module with the folders of the core, in which one package has a test, another
// one uses it, and the simulator checks one rule.
var small = map[string]string{
	"go.mod": "module small\n\ngo 1.26\n",
	"internal/election/a.go": `package election

func Larger(a, b int) bool { return a > b }

func Sum(a, b int) int { return a + b }

func Spare(a int) int { return a }

func Endless(n int) (sum int) {
	for i := 0; i < n; i++ {
		sum += i
	}
	return sum
}
`,
	"internal/election/a_test.go": `package election

import "testing"

func TestLarger(t *testing.T) {
	if !Larger(2, 1) || Larger(1, 1) {
		t.Error("Larger is wrong")
	}
}
`,
	"internal/replica/b.go": "package replica\n",
	"internal/replica/b_test.go": `package replica

import (
	"testing"

	"small/internal/election"
)

func TestSum(t *testing.T) {
	if election.Sum(1, 2) != 3 {
		t.Error("Sum is wrong")
	}
}
`,
	"internal/sim/sim.go": "package sim\n",
	"cmd/bellwether-sim/main.go": `package main

import (
	"fmt"
	"os"
	"strconv"

	"small/internal/election"
)

func main() {
	seed, _ := strconv.Atoi(os.Args[2])
	if got := election.Spare(seed); got != seed && seed > 2 {
		fmt.Printf("seed %d breaks Agreement: %d\n", seed, got)
		os.Exit(1)
	}
	if election.Sum(1, 2) != 3 {
		panic("no rule")
	}
	for n := 0; n < 1e7; n++ { // uses up the budget
		election.Larger(n, 2)
	}
}
`,
	"internal/mutants/testdata/equivalent.txt": "alike because the compiler does not mind\n",
	"internal/mutants/testdata/unseen.txt":     "",
	"internal/mutants/testdata/semantic/election.txt": entry("killed", "func Larger(a, b int) bool { return a > b }", "func Larger(a, b int) bool { return a >= b }") +
		entry("killed-by-a-user", "func Sum(a, b int) int { return a + b }", "func Sum(a, b int) int { return a - b }") +
		entry("survives", "func Spare(a int) int { return a }", "func Spare(a int) int { return a + 1 }") +
		entry("broken", "func Spare(a int) int { return a }", "func Spare(a int) int { return b }") +
		entry("alike", "func Spare(a int) int { return a }", "func Spare(a int) int { return (a) }"),
}

// entry returns an entry of a list.
func entry(name, old, put string) string {
	return fmt.Sprintf("== %s\n# It breaks.\n--- internal/election/a.go\n@@\n-%s\n+%s\n", name, old, put)
}

// write writes files below a folder.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// smallRunner writes the small module and returns its Runner.
func smallRunner(t *testing.T) (*Runner, string) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, small)
	for _, other := range []string{"zab", "ensemble", "tree", "store", "driver", "claim", "server"} {
		write(t, dir, map[string]string{"internal/" + other + "/doc.go": "package " + other + "\n"})
	}
	write(t, dir, map[string]string{"zk/doc.go": "package zk\n"})
	return open(t, dir), dir
}

func open(t *testing.T, dir string) *Runner {
	t.Helper()
	m, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return &Runner{Module: m, Results: filepath.Join(dir, "results.txt"), Jobs: 2, Budget: 100 * time.Millisecond, Log: t.Output()}
}

var semantic = Selection{Set: mutants.Semantic, Unit: true, Simulator: true}

// TestRun judges the mutants of a small module: what kills them, that a second run judges
// nothing again, and that a change of the sources does.
func TestRun(t *testing.T) {
	r, dir := smallRunner(t)
	if err := r.Run(t.Context(), semantic); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"killed unit":                "killed internal/election TestLarger",
		"killed simulator":           "survived  ",
		"killed-by-a-user unit":      "killed internal/replica TestSum",
		"killed-by-a-user simulator": "killed crash 1",
		"survives unit":              "survived internal/election,internal/replica ",
		"survives simulator":         "killed Agreement 3",
		"broken unit":                "invalid  ",
	}
	check(t, r, want)
	first := read(t, r.Results)
	if err := r.Run(t.Context(), semantic); err != nil || read(t, r.Results) != first {
		t.Errorf("a second run judges again: %v\n%s", err, read(t, r.Results))
	}

	test := strings.Replace(small["internal/election/a_test.go"], "func TestLarger", "func TestSpare(t *testing.T) {\n\tif Spare(1) != 1 {\n\t\tt.Error(\"Spare is wrong\")\n\t}\n}\n\nfunc TestLarger", 1)
	write(t, dir, map[string]string{"internal/election/a_test.go": test})
	r = open(t, dir)
	if err := r.Run(t.Context(), semantic); err != nil {
		t.Fatal(err)
	}
	want["survives unit"] = "killed internal/election TestSpare"
	check(t, r, want)
	known, err := r.Known()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Check(t.Context(), known["survives"][mutants.Unit]); err != nil {
		t.Error(err)
	}
	stale := known["survives"][mutants.Unit]
	stale.By = "TestLarger"
	if err := r.Check(t.Context(), stale); err == nil || !strings.Contains(err.Error(), "TestLarger of internal/election does not fail with the mutant survives") {
		t.Errorf("a test that kills nothing is accepted: %v", err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// check compares the last results with "verdict where by"; the number of seeds is left out.
func check(t *testing.T, r *Runner, want map[string]string) {
	t.Helper()
	known, err := r.Known()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, scores := range known {
		for _, x := range scores {
			n++
			if x.Score == mutants.Simulator && x.Verdict == mutants.Survived {
				x.By = ""
			}
			key, got := x.Mutant+" "+string(x.Score), fmt.Sprintf("%s %s %s", x.Verdict, x.Where, x.By)
			if want[key] != got {
				t.Errorf("%s: %q, want %q", key, got, want[key])
			}
		}
	}
	if n != len(want) {
		t.Errorf("%d results, want %d", n, len(want))
	}
}

// TestEndlessMutant shows that a mutant that does not end is killed, by the test that was
// running.
func TestEndlessMutant(t *testing.T) {
	r, dir := smallRunner(t)
	write(t, dir, map[string]string{"internal/election/e_test.go": `package election

import "testing"

func TestEndless(t *testing.T) { Endless(3) }
`})
	program := filepath.Join(dir, "tests")
	changed := map[string]string{"internal/election/a.go": strings.Replace(small["internal/election/a.go"], "i < n", "i < n || true", 1)}
	overlay, err := r.Module.overlay(t.TempDir(), changed)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := r.build(t.Context(), overlay, program, "internal/election"); err != nil {
		t.Fatal(err, text)
	}
	test, err := r.killer(t.Context(), "internal/election", program, "", []group{{tests: []string{"TestEndless", "TestLarger"}, limit: time.Second}})
	if err != nil || test != "TestEndless" {
		t.Errorf("%q, %v", test, err)
	}
}

// TestBrokenBaseline shows that nothing is judged while a test or the simulator fails without
// a mutant, and that a seed that fails in any case kills no mutant.
func TestBrokenBaseline(t *testing.T) {
	r, dir := smallRunner(t)
	write(t, dir, map[string]string{"internal/election/a_test.go": strings.Replace(small["internal/election/a_test.go"], "!Larger", "Larger", 1)})
	s := semantic
	s.Simulator, s.Only = false, regexp.MustCompile("^killed$")
	if err := r.Run(t.Context(), s); err == nil || !strings.Contains(err.Error(), "TestLarger of internal/election fails without a mutant") {
		t.Error(err)
	}
	write(t, dir, map[string]string{"internal/election/a.go": strings.Replace(small["internal/election/a.go"], "return a }", "return a + 1 }", 1)})
	s.Simulator, s.Unit = true, false
	if err := r.Run(t.Context(), s); err == nil || !strings.Contains(err.Error(), "seed 3 breaks Agreement without a mutant") {
		t.Error(err)
	}
	write(t, dir, map[string]string{
		"internal/election/a.go":     small["internal/election/a.go"],
		"cmd/bellwether-sim/main.go": strings.Replace(small["cmd/bellwether-sim/main.go"], "got != seed && seed > 2", "seed == 7", 1),
	})
	if text := read(t, r.Results); text != "" {
		t.Errorf("results:\n%s", text)
	}
	var log strings.Builder
	r.Log, r.Budget = &log, time.Second
	if err := r.Run(t.Context(), s); err != nil || !strings.Contains(log.String(), "seed 7 kills no mutant, because it breaks Agreement") {
		t.Error(err, log.String())
	}
	check(t, r, map[string]string{"killed simulator": "survived  "})
}

// TestBadData shows that lists and results that cannot be read are refused before anything is
// judged.
func TestBadData(t *testing.T) {
	for file, c := range map[string]struct{ text, err string }{
		"internal/mutants/testdata/equivalent.txt":        {"nobody why\n", "equivalent.txt: there is no mutant nobody"},
		"internal/mutants/testdata/unseen.txt":            {"nobody why\n", "unseen.txt: there is no mutant nobody"},
		"internal/mutants/testdata/semantic/election.txt": {"== a\nx\n", "election.txt:1: the mutant a cannot be read"},
		"internal/mutants/testdata/semantic/zab.txt":      {entry("killed", "a", "b"), "two mutants have the name killed"},
		"internal/zab/doc.go":                             {"package\n", "doc.go:1:9: expected"},
	} {
		_, dir := smallRunner(t)
		write(t, dir, map[string]string{file: c.text})
		if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %q", file, err, c.err)
		}
	}
	r, dir := smallRunner(t)
	write(t, dir, map[string]string{"results.txt": "killed unit\n", "internal/mutants/testdata/sample.txt": "# names\nnobody\n"})
	if err := r.Run(t.Context(), semantic); err == nil || !strings.Contains(err.Error(), "results.txt:1: ") {
		t.Error(err)
	}
	if _, err := r.Module.Sample(); err == nil || !strings.Contains(err.Error(), "sample.txt:2: there is no mutant nobody") {
		t.Error(err)
	}
}

// TestOutput shows which test a run of a test program names.
func TestOutput(t *testing.T) {
	for out, want := range map[string]string{
		"=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\n":                                                          "",
		"=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n--- FAIL: TestB (0.00s)\nFAIL\n":                "TestB",
		"=== RUN   TestA\n=== RUN   TestA/x\n    --- FAIL: TestA/x (0.00s)\n--- FAIL: TestA (0.00s)\n":              "TestA",
		"--- FAIL: TestA (0.00s)\n--- FAIL: TestB (0.00s)\n":                                                        "TestA",
		"=== RUN   TestA\n=== PAUSE TestA\n=== RUN   TestB\n=== CONT  TestA\nfatal error: stack overflow\n":         "TestA",
		"=== RUN   TestB\npanic: test timed out after 1s\n\trunning tests:\n\t\tTestA/x (1s)\n\ngoroutine 7:\nx.go": "TestA",
	} {
		run := &testRun{durations: map[string]time.Duration{}}
		for i := range len(out) { // in pieces
			run.Write([]byte(out[i : i+1]))
		}
		got := run.test
		if got == "" && !strings.Contains(out, "PASS\n") {
			got = run.running
		}
		if got != want {
			t.Errorf("%q names %q, want %q", out, got, want)
		}
	}
}

// TestFastTestsFirst shows in which groups the tests of a package run. A test with parallel
// subtests, whose own line has no time, takes as long as the longest of them.
func TestFastTestsFirst(t *testing.T) {
	run := &testRun{durations: map[string]time.Duration{}}
	run.Write([]byte("--- PASS: TestSlow (2.50s)\n--- PASS: TestFast (0.00s)\n--- SKIP: TestNone (0.00s)\n" +
		"--- PASS: TestParallel (0.00s)\n    --- PASS: TestParallel/a (0.10s)\n    --- PASS: TestParallel/b (30.00s)\n" +
		"--- PASS: TestMedium (0.10s)\n    --- PASS: TestMedium/a_b (0.05s)\nPASS\n"))
	want := []group{
		{[]string{"TestFast", "TestNone"}, limitMin},
		{[]string{"TestMedium"}, limitMin},
		{[]string{"TestParallel", "TestSlow"}, limitFactor * 32500 * time.Millisecond},
	}
	if got := groupTests(run.durations); !reflect.DeepEqual(got, want) {
		t.Errorf("the groups are %v, want %v", got, want)
	}
}

// TestKillerOfAnyGroup shows that a test that kills a mutant is found in the last group, that
// the recorded killer is tried first, and that it is forgotten if it does not kill any more.
func TestKillerOfAnyGroup(t *testing.T) {
	r, dir := smallRunner(t)
	write(t, dir, map[string]string{"internal/election/b_test.go": `package election

import "testing"

func TestFirst(t *testing.T) {}

func TestSecond(t *testing.T) { t.Error("it fails") }

func TestThird(t *testing.T) { t.Error("it fails") }
`})
	program := filepath.Join(dir, "tests")
	if text, err := r.build(t.Context(), "", program, "internal/election"); err != nil {
		t.Fatal(err, text)
	}
	groups := []group{{[]string{"TestFirst"}, time.Minute}, {[]string{"TestSecond"}, time.Minute}, {[]string{"TestThird"}, time.Minute}}
	for known, want := range map[string]string{"": "TestSecond", "TestThird": "TestThird", "TestFirst": "TestSecond", "TestGone": "TestSecond"} {
		if test, err := r.killer(t.Context(), "internal/election", program, known, groups); err != nil || test != want {
			t.Errorf("known %q: %q, %v; want %s", known, test, err, want)
		}
	}
}

// TestRunAfterOneThatWasKilled: a run that was killed may leave a line without an end. The next run removes it
// and judges that mutant again. A run that can select nothing says so.
func TestRunAfterOneThatWasKilled(t *testing.T) {
	r, dir := smallRunner(t)
	const known = "other unit 0123456789ab killed internal/x TestX 1.0\n"
	write(t, dir, map[string]string{"results.txt": known + "killed unit 0123"})
	s := Selection{Set: mutants.Semantic, Unit: true, Only: regexp.MustCompile("^killed$")}
	if err := r.Run(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(r.Results)
	lines := strings.SplitAfter(string(text), "\n")
	if err != nil || len(lines) != 3 || lines[0] != known || !strings.HasPrefix(lines[1], "killed unit ") || !strings.Contains(lines[1], " killed ") {
		t.Errorf("%v\n%s", err, text)
	}
	s.Only = regexp.MustCompile("^no such mutant$")
	if err := r.Run(t.Context(), s); err == nil {
		t.Error("nothing is selected, and the run does not say so")
	}
}

// TestForeignFileOfResults shows that a file that has other text than a result at its end is refused and left as it is.
func TestForeignFileOfResults(t *testing.T) {
	r, dir := smallRunner(t)
	for _, text := range []string{"a diary", "one line\nkilled unless", "killed unit 0123 "} {
		write(t, dir, map[string]string{"results.txt": text})
		if err := r.Run(t.Context(), semantic); err == nil || !strings.Contains(err.Error(), "is not the beginning of a result") {
			t.Errorf("%q: %v", text, err)
		}
		if now := read(t, r.Results); now != text {
			t.Errorf("%q has become %q", text, now)
		}
	}
}
