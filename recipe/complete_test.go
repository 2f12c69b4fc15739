package recipe

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryRecipeIsShownAndHarmed checks that every function that begins a recipe is used in an example
// and in the tests that harm recipes.
func TestEveryRecipeIsShownAndHarmed(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var begins, calls []string
	shown, harmed := map[string]bool{}, map[string]bool{}
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, isFunc := d.(*ast.FuncDecl)
			switch {
			case name == "adversity_test.go":
				mentions(d, harmed)
			case isFunc && strings.HasPrefix(f.Name.Name, "Example"):
				mentions(f, shown)
			case isFunc && f.Recv == nil && takesClient(f):
				begins = append(begins, f.Name.Name)
			case isFunc && f.Recv != nil && takesContext(f):
				calls = append(calls, f.Name.Name)
			}
		}
	}
	if len(begins) < 20 {
		t.Errorf("only %v", begins)
	}
	for _, name := range begins {
		if !shown[name] || !harmed[name] {
			t.Errorf("%s: used in an example: %v, used in the tests that harm recipes: %v", name, shown[name], harmed[name])
		}
	}
	for _, name := range calls {
		if !harmed[name] {
			t.Errorf("%s is not used in the tests that harm recipes", name)
		}
	}
}

// takesContext reports whether a declaration is an exported method of an exported type that has a context
// as argument, so that it may send requests.
func takesContext(f *ast.FuncDecl) bool {
	recv := f.Recv.List[0].Type
	if star, ok := recv.(*ast.StarExpr); ok {
		recv = star.X
	}
	if id, ok := recv.(*ast.Ident); !ok || !id.IsExported() || !f.Name.IsExported() || len(f.Type.Params.List) == 0 {
		return false
	}
	s, ok := f.Type.Params.List[0].Type.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "Context"
}

// takesClient reports whether a declaration is an exported function that has a client as argument.
func takesClient(f *ast.FuncDecl) bool {
	for _, p := range f.Type.Params.List {
		star, _ := p.Type.(*ast.StarExpr)
		if star == nil || !f.Name.IsExported() {
			continue
		}
		if s, ok := star.X.(*ast.SelectorExpr); ok && s.Sel.Name == "Client" {
			return true
		}
	}
	return false
}

// mentions records all names in a declaration.
func mentions(d ast.Node, names map[string]bool) {
	ast.Inspect(d, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			names[id.Name] = true
		}
		return true
	})
}
