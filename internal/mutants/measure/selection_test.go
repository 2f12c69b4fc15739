package measure

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"bellwether/internal/mutants"
)

// names returns the names of the mutants that a selection chooses.
func names(s Selection, all []mutants.Mutant) []string {
	var names []string
	selected, _ := s.Of(all) // an error: none
	for _, m := range selected {
		names = append(names, m.Name)
	}
	return names
}

// TestSampleOfEachPackage shows that a sample has as many generated mutants of each package as
// asked, or all if there are fewer; that the same seed chooses the same ones, another seed
// others; and that a larger sample contains the smaller one. Semantic mutants are all chosen.
func TestSampleOfEachPackage(t *testing.T) {
	_, dir := smallRunner(t)
	write(t, dir, map[string]string{"internal/zab/b.go": "package zab\n\nfunc Less(a, b int) bool { return a < b }\n"})
	r := open(t, dir)
	all := r.Module.Mutants
	count := map[string]int{}
	for _, m := range all {
		if m.Set() == mutants.Generated {
			count[m.Package()]++
		}
	}
	const n = 4
	if count["internal/election"] <= n || count["internal/zab"] == 0 || count["internal/zab"] >= n {
		t.Fatalf("the small module has %v generated mutants", count)
	}
	sample := names(Selection{Set: mutants.Generated, Sample: n, Seed: 1}, all)
	got := map[string]int{}
	for _, name := range sample {
		file, _, _ := strings.Cut(name, ":")
		got[path.Dir(file)]++
	}
	if got["internal/election"] != n || got["internal/zab"] != count["internal/zab"] {
		t.Errorf("the sample has %v of %v", got, count)
	}
	if again := names(Selection{Set: mutants.Generated, Sample: n, Seed: 1}, all); !slices.Equal(again, sample) {
		t.Errorf("the same seed chooses %q, then %q", sample, again)
	}
	if other := names(Selection{Set: mutants.Generated, Sample: n, Seed: 2}, all); slices.Equal(other, sample) {
		t.Errorf("two seeds choose the same: %q", sample)
	}
	larger := names(Selection{Sample: n + 1, Seed: 1, Only: regexp.MustCompile("internal|alike")}, all)
	for _, name := range append(sample, "alike") {
		if !slices.Contains(larger, name) {
			t.Errorf("a larger sample lacks %s: %q", name, larger)
		}
	}
	if slices.Contains(larger, "killed") {
		t.Error("the sample has a mutant whose name does not match")
	}
}
