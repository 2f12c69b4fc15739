package recipe

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
	"testing"
)

// documentation is what go doc shows of this package.
func documentation(t *testing.T) *doc.Package {
	t.Helper()
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
	return pkg
}

// TestConstantsAreDocumented checks that go doc shows the constants of a type with the type, even if
// another package declares them, and that constants have comments.
func TestConstantsAreDocumented(t *testing.T) {
	pkg := documentation(t)
	want := map[string]int{"Naming": 6, "Reason": 6, "Decision": 3, "CounterFormat": 2, "QueueNaming": 3, "Standing": 3, "GroupNaming": 3, "CacheEventType": 4}
	for _, typ := range pkg.Types {
		n := 0
		for _, c := range typ.Consts {
			for _, spec := range c.Decl.Specs {
				if n++; spec.(*ast.ValueSpec).Comment == nil && spec.(*ast.ValueSpec).Doc == nil && spec.(*ast.ValueSpec).Names[0].Name != "Abort" {
					t.Errorf("%v has no comment", spec.(*ast.ValueSpec).Names)
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

// TestEveryOptionsTypeReports checks that each type of options has a Logger and an Observer, or contains
// options that have them, and that every constructor of a recipe has one of these types as argument.
func TestEveryOptionsTypeReports(t *testing.T) {
	pkg := documentation(t)
	fields := map[string]map[string]string{} // by type of options, and then by field: the type of the field
	var makers []*ast.FuncDecl
	for _, f := range pkg.Funcs {
		makers = append(makers, f.Decl)
	}
	for _, typ := range pkg.Types {
		for _, f := range typ.Funcs {
			makers = append(makers, f.Decl)
		}
		if !strings.HasSuffix(typ.Name, "Options") {
			continue
		}
		fields[typ.Name] = map[string]string{}
		for _, f := range typ.Decl.Specs[0].(*ast.TypeSpec).Type.(*ast.StructType).Fields.List {
			for _, name := range f.Names {
				fields[typ.Name][name.Name] = types.ExprString(f.Type)
			}
		}
	}
	reports := func(options string) bool {
		has := fields[options]
		return has["Logger"] == "*slog.Logger" && has["Observer"] == "func(Observation)"
	}
	for options, has := range fields {
		if !reports(options) && !reports(has["Election"]) {
			t.Errorf("%s has no Logger and Observer", options)
		}
	}
	if len(fields) < 12 {
		t.Errorf("only %d types of options were found", len(fields))
	}
	without := map[string]bool{
		"NewMultiLock": true, // its locks have loggers of their own
		"RoundRobin":   true,
		"Stop":         true,
	}
	for _, f := range makers {
		takes := false
		for _, p := range f.Type.Params.List {
			takes = takes || strings.HasSuffix(types.ExprString(p.Type), "Options")
		}
		if !takes && !without[f.Name.Name] {
			t.Errorf("%s takes no options", f.Name.Name)
		}
	}
}
