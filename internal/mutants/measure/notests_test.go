package measure

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"bellwether/internal/mutants"
)

// TestPackageWithoutTests shows that the tests of a user judge the mutants of a package that has no tests.
func TestPackageWithoutTests(t *testing.T) {
	r, dir := smallRunner(t)
	if err := os.Remove(filepath.Join(dir, "internal/election/a_test.go")); err != nil {
		t.Fatal(err)
	}
	s := Selection{Set: mutants.Semantic, Unit: true, Only: regexp.MustCompile("^(killed|killed-by-a-user|broken)$")}
	if err := r.Run(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	check(t, r, map[string]string{
		"killed unit":           "survived internal/election,internal/replica ",
		"killed-by-a-user unit": "killed internal/replica TestSum",
		"broken unit":           "invalid  ",
	})
}
