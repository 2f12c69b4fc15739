package measure

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bellwether/internal/mutants"
)

// Sample returns the names of the mutants that make test checks.
func (m *Module) Sample() ([]string, error) {
	text, err := m.source(sampleFile)
	if err != nil {
		return nil, err
	}
	var names []string
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		name := strings.TrimSpace(lines.Text())
		switch {
		case name == "" || strings.HasPrefix(name, "#"):
		case m.find(name) == nil:
			return nil, fmt.Errorf("%s:%d: there is no mutant %s; a line is the name of a mutant, empty, or begins with #", sampleFile, n, name)
		default:
			names = append(names, name)
		}
	}
	return names, lines.Err()
}

// Known returns the results of the file of results.
func (r *Runner) Known() (mutants.Results, error) {
	err := r.load()
	return r.known, err
}

// Check builds a mutant and runs the test that has killed it according to a result. It
// returns an error if the test does not fail any more.
func (r *Runner) Check(ctx context.Context, x mutants.Result) error {
	m := r.Module.find(x.Mutant)
	if m == nil || x.Score != mutants.Unit || x.Verdict != mutants.Killed {
		return fmt.Errorf("%s has no result of a unit test that kills it", x.Mutant)
	}
	changed, err := m.Apply(r.Module.source)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	overlay, err := r.Module.overlay(dir, changed)
	if err != nil {
		return err
	}
	program := filepath.Join(dir, "tests")
	if text, err := r.build(ctx, overlay, program, x.Where); err != nil {
		return fmt.Errorf("%w\n%s", err, text)
	}
	run, err := r.run(ctx, x.Where, program, checkLimit, only(x.By))
	if err == nil && !run.failed {
		err = fmt.Errorf("%s of %s does not fail with the mutant %s (%s):\n%s\n"+
			"If another test kills it now, judge it again: go run ./cmd/bellwether-mutants --only '^%s$'", x.By, x.Where, m.Name, m.What, run.text(), m.Name)
	}
	return err
}

// checkLimit is the time limit of one test that has killed a mutant before.
const checkLimit = 2 * time.Minute
