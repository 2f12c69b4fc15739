package measure

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Time limits of the tests of one group.
const (
	limitMin    = 20 * time.Second // the shortest time limit
	limitFactor = 5                // the limit is so many times what the tests need without a mutant
)

// baseline is what the tests of a package do without a mutant.
type baseline struct {
	once   sync.Once
	groups []group
	err    error
}

// group is tests of a package that take about the same time. A mutant is judged by the group
// of the fastest tests first, because most mutants fail there already.
type group struct {
	tests []string
	limit time.Duration
}

// groupBounds are the times that separate the groups.
var groupBounds = []time.Duration{100 * time.Millisecond, time.Second}

// groups returns the groups of a package's tests, the fastest first. It runs the tests once
// without a mutant, to be sure that they pass.
func (r *Runner) groups(ctx context.Context, pkg string) ([]group, error) {
	r.mu.Lock()
	b := r.baselines[pkg]
	if b == nil {
		b = new(baseline)
		r.baselines[pkg] = b
	}
	r.mu.Unlock()
	b.once.Do(func() { b.groups, b.err = r.measure(ctx, pkg) })
	return b.groups, b.err
}

func (r *Runner) measure(ctx context.Context, pkg string) ([]group, error) {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "tests")
	if text, err := r.build(ctx, "", program, pkg); err != nil {
		return nil, fmt.Errorf("build the tests of %s: %w\n%s", pkg, err, text)
	}
	if _, err := os.Stat(program); errors.Is(err, fs.ErrNotExist) {
		return nil, nil // the package has no tests
	}
	run, err := r.run(ctx, pkg, program, time.Hour)
	switch {
	case err != nil:
		return nil, err
	case run.failed:
		return nil, fmt.Errorf("%s of %s fails without a mutant, so no score would mean anything: correct it first\n%s", run.test, pkg, run.text())
	}
	return groupTests(run.durations), nil
}

// groupTests returns the groups of tests, given how long each of them took.
func groupTests(durations map[string]time.Duration) []group {
	var groups []group
	for from, i := time.Duration(0), 0; i <= len(groupBounds); i++ {
		to := time.Duration(math.MaxInt64)
		if i < len(groupBounds) {
			to = groupBounds[i]
		}
		var g group
		for _, test := range slices.Sorted(maps.Keys(durations)) {
			if took := durations[test]; from <= took && took < to {
				g.tests = append(g.tests, test)
				g.limit += limitFactor * took
			}
		}
		g.limit = max(limitMin, g.limit)
		if from = to; len(g.tests) > 0 {
			groups = append(groups, g)
		}
	}
	return groups
}
