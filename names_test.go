package bellwether_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// parsed returns the parsed Go files of a folder whose names end with suffix or, if want is false, the other Go
// files.
func parsed(t *testing.T, dir string, suffix string, want bool) (*token.FileSet, []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(dir + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, suffix) != want {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		t.Fatalf("no files were found in %s", dir)
	}
	return set, files
}

// TestExamplesNeedNoWire shows that programs do not need package wire: no example and no page imports it, and no
// declaration of zk, recipe or embed names a type of wire. Only the type aliases of zk may do so.
func TestExamplesNeedNoWire(t *testing.T) {
	for _, dir := range []string{"zk", "recipe", "embed"} {
		_, files := parsed(t, dir, "example_test.go", true)
		for _, f := range files {
			for _, i := range f.Imports {
				if strings.HasSuffix(i.Path.Value, `/wire"`) {
					t.Errorf("%s: an example imports wire", dir)
				}
			}
		}
	}
	for _, d := range documents(t) {
		for _, code := range goCode.FindAllString(d.text, -1) {
			if regexp.MustCompile(`\bwire\.[A-Z]|/wire"`).MatchString(code) {
				t.Errorf("%s: an example uses wire", d.name)
			}
		}
	}
	for _, dir := range []string{"zk", "recipe", "embed"} {
		set, files := parsed(t, dir, "_test.go", false)
		pkg, err := doc.NewFromFiles(set, files, "bellwether/"+dir)
		if err != nil {
			t.Fatal(err)
		}
		shown := func(name string, n ast.Node) {
			ast.Inspect(n, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && types.ExprString(s.X) == "wire" {
					t.Errorf("%s.%s: go doc shows wire.%s", dir, name, s.Sel.Name)
				}
				return true
			})
		}
		funcs := func(name string, all []*doc.Func) {
			for _, f := range all {
				shown(name+f.Name, f.Decl.Type)
			}
		}
		funcs("", pkg.Funcs)
		for _, typ := range pkg.Types {
			funcs("", typ.Funcs)
			funcs(typ.Name+".", typ.Methods)
			if spec := typ.Decl.Specs[0].(*ast.TypeSpec); !spec.Assign.IsValid() {
				shown(typ.Name, spec.Type)
			}
		}
	}
}

// TestPackagesShareNoName shows that zk and recipe have no exported name in common.
func TestPackagesShareNoName(t *testing.T) {
	exported := func(dir string) map[string]bool {
		set, files := parsed(t, dir, "_test.go", false)
		pkg, err := doc.NewFromFiles(set, files, "bellwether/"+dir)
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		value := func(all []*doc.Value) {
			for _, v := range all {
				for _, name := range v.Names {
					names[name] = true
				}
			}
		}
		value(pkg.Consts)
		value(pkg.Vars)
		for _, typ := range pkg.Types {
			names[typ.Name] = true
			value(typ.Consts)
			value(typ.Vars)
			for _, f := range typ.Funcs {
				names[f.Name] = true
			}
		}
		for _, f := range pkg.Funcs {
			names[f.Name] = true
		}
		return names
	}
	zk := exported("zk")
	for name := range exported("recipe") {
		if zk[name] {
			t.Errorf("%s is a name of zk and of recipe", name)
		}
	}
	if len(zk) < 80 {
		t.Errorf("only %d names of zk were found", len(zk))
	}
}
