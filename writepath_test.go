package bellwether_test

import (
	"go/ast"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestWritePathNamesTheCode checks docs/write-path.md against the code: each function that the page names
// exists, and a function before a ▸ mentions the function after it.
func TestWritePathNamesTheCode(t *testing.T) {
	text, err := os.ReadFile("docs/write-path.md")
	if err != nil {
		t.Fatal(err)
	}
	functions, types := declared(t)
	named := regexp.MustCompile("`([a-z]+\\.\\w+(?:\\.\\w+)?)`(\\s*▸)?")
	caller, checked := "", 0
	for _, m := range named.FindAllStringSubmatch(string(text), -1) {
		name := m[1]
		if functions[name] == nil && !types[name] {
			t.Errorf("docs/write-path.md: there is no %s", name)
		}
		if callee := name[strings.LastIndex(name, ".")+1:]; caller != "" && functions[caller] != nil {
			checked++
			if !functions[caller][callee] {
				t.Errorf("docs/write-path.md: %s does not mention %s", caller, callee)
			}
		}
		caller = ""
		if m[2] != "" {
			caller = name
		}
	}
	if checked < 50 {
		t.Errorf("only %d calls were checked", checked)
	}
}

// declared returns the functions of the module, as package.Function or package.Type.Method, each with the names
// that it mentions. It also returns the types of the module.
func declared(t *testing.T) (functions map[string]map[string]bool, types map[string]bool) {
	functions, types = map[string]map[string]bool{}, map[string]bool{}
	for _, files := range sources(t) {
		for _, f := range files {
			if f.test {
				continue
			}
			for _, d := range f.ast.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					functions[functionName(f.ast.Name.Name, d)] = mentioned(d)
				case *ast.GenDecl:
					for _, s := range d.Specs {
						if s, ok := s.(*ast.TypeSpec); ok {
							types[f.ast.Name.Name+"."+s.Name.Name] = true
						}
					}
				}
			}
		}
	}
	return functions, types
}

// functionName returns package.Function or package.Type.Method.
func functionName(pkg string, d *ast.FuncDecl) string {
	if d.Recv == nil {
		return pkg + "." + d.Name.Name
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if generic, ok := typ.(*ast.IndexExpr); ok {
		typ = generic.X
	}
	if id, ok := typ.(*ast.Ident); ok {
		return pkg + "." + id.Name + "." + d.Name.Name
	}
	return pkg + "." + d.Name.Name
}

// mentioned returns the names that the body of a function mentions.
func mentioned(d *ast.FuncDecl) map[string]bool {
	names := map[string]bool{}
	if d.Body != nil {
		ast.Inspect(d.Body, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				names[id.Name] = true
			}
			return true
		})
	}
	return names
}
