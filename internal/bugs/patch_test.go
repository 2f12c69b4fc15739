package bugs

import (
	"os"
	"path/filepath"
	"testing"

	"bellwether/internal/patch"
)

// load reads a patch from testdata.
func load(t *testing.T, name string) *patch.Patch {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".patch"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := patch.Read(string(b))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return p
}
