package measure

import (
	"testing"

	"bellwether/internal/mutants"
)

// sampleLen is the number of mutants that TestSample checks.
const sampleLen = 50

// TestSample checks for some mutants that the test that has killed them still does. The
// mutants are fixed, and of packages whose tests are small.
func TestSample(t *testing.T) {
	r := runner(t)
	known, err := r.Known()
	if err != nil {
		t.Fatal(err)
	}
	names, err := r.Module.Sample()
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != sampleLen {
		t.Errorf("%s has %d mutants, want %d", sampleFile, len(names), sampleLen)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := r.Check(t.Context(), known[name][mutants.Unit]); err != nil {
				t.Error(err)
			}
		})
	}
}

// runner returns a Runner of this module.
func runner(t *testing.T) *Runner {
	t.Helper()
	m, err := Open("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return &Runner{Module: m, Results: m.Path(ResultsFile), Log: t.Output()}
}

// TestMutantsApply shows that each semantic mutant changes the present code.
func TestMutantsApply(t *testing.T) {
	const listMin = 100
	m := runner(t).Module
	n := 0
	for i := range m.Mutants {
		x := &m.Mutants[i]
		if x.Set() != mutants.Semantic {
			continue
		}
		n++
		if _, err := x.Apply(m.source); err != nil {
			t.Errorf("%s: %v\nIf the code has changed: go run ./cmd/bellwether-mutants --carry COMMIT, with the last commit at which the mutant applied", x.Name, err)
		}
	}
	if n < listMin {
		t.Errorf("there are %d semantic mutants, want at least %d", n, listMin)
	}
}

// TestDocument fails when the tables of docs/testing.md differ from the results.
func TestDocument(t *testing.T) {
	is, want, err := runner(t).Document()
	if err != nil {
		t.Fatal(err)
	}
	if is != want {
		t.Error("docs/testing.md is stale; run: go run ./cmd/bellwether-mutants --table")
	}
}
