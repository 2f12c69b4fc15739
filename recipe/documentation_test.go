package recipe

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestConstantsAreDocumented: `go doc` shows the constants of a type with it, also of
// those whose home is another package, and all but the plainest say what they are.
func TestConstantsAreDocumented(t *testing.T) {
	set, names := token.NewFileSet(), made(filepath.Glob("*.go"))
	var files []*ast.File
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") {
			files = append(files, made(parser.ParseFile(set, name, nil, parser.ParseComments)))
		}
	}
	pkg, err := doc.NewFromFiles(set, files, "bellwether/recipe")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"Naming": 6, "Reason": 6, "Decision": 3, "CounterFormat": 2, "QueueNaming": 3, "Standing": 3, "GroupLayout": 3, "CacheEventType": 4}
	for _, typ := range pkg.Types {
		n := 0
		for _, c := range typ.Consts {
			for _, spec := range c.Decl.Specs {
				if n++; spec.(*ast.ValueSpec).Comment == nil && spec.(*ast.ValueSpec).Names[0].Name != "Abort" {
					t.Errorf("%v says nothing of itself", spec.(*ast.ValueSpec).Names)
				}
			}
		}
		if want[typ.Name] != n && (want[typ.Name] > 0 || n > 0) {
			t.Errorf("%s has %d constants in its documentation, want %d", typ.Name, n, want[typ.Name])
		}
		delete(want, typ.Name)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}
