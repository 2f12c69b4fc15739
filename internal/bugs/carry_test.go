package bugs

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bellwether/internal/patch"
)

var carryFrom = flag.String("from", "", "bring forward the patches that no longer apply; the value is a commit at which they applied")

// carryHelp explains how to bring forward a patch that no longer applies.
const carryHelp = "\nThe code that this patch quotes has changed. To bring the patch forward, run this with the last commit at which it applied:\n" +
	"\tgo test ./internal/bugs -run TestCarryPatches -from COMMIT\n" +
	"A patch that cannot be merged must be rewritten by hand; see internal/bugs/doc.go"

// TestCarryPatches brings forward, with -from, the patches that no longer apply.
func TestCarryPatches(t *testing.T) {
	if *carryFrom == "" {
		return
	}
	files, err := filepath.Glob("testdata/*.patch")
	if err != nil {
		t.Fatal(err)
	}
	carrier, err := patch.NewCarrier(root, *carryFrom)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		p := load(t, strings.TrimSuffix(filepath.Base(f), ".patch"))
		if _, err := p.Apply(source); err == nil {
			continue
		}
		carried, err := carrier.Carry(p)
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		if err := os.WriteFile(f, []byte(carried.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s was brought forward: run TestBugsAreFound for it", f)
	}
}
