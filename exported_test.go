package bellwether_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/printer"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
)

var writeExported = flag.Bool("exported", false, "write testdata/exported.txt instead of comparing with it")

// publicPackages are the packages that other modules may import.
var publicPackages = []string{"wire", "zk", "zk/kerberos", "recipe", "embed"}

const exportedFile = "testdata/exported.txt"

// TestExportedNames compares the exported names of the public packages with
// testdata/exported.txt, so that a review shows when the API grows or changes.
// To write the file anew, run go test -run TestExportedNames . -exported
func TestExportedNames(t *testing.T) {
	var all strings.Builder
	for _, dir := range publicPackages {
		lines := exportedLines(t, dir)
		slices.Sort(lines)
		names := len(slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.Count(line[:strings.Index(line, ":")], ".") > 1 }))
		fmt.Fprintf(&all, "# %s: %d names, %d methods and fields\n%s\n\n", dir, names, len(lines)-names, strings.Join(lines, "\n"))
	}
	if *writeExported {
		if err := os.WriteFile(exportedFile, []byte(all.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(exportedFile)
	if err != nil {
		t.Fatal(err)
	}
	got, known := strings.Split(all.String(), "\n"), strings.Split(string(want), "\n")
	for _, line := range got {
		if !slices.Contains(known, line) {
			t.Errorf("%s does not have: %s", exportedFile, line)
		}
	}
	for _, line := range known {
		if !slices.Contains(got, line) {
			t.Errorf("%s has a name that is not exported any more: %s", exportedFile, line)
		}
	}
	if t.Failed() {
		t.Log("if the change of the API is intended: go test -run TestExportedNames . -exported")
	}
}

// exportedName is an exported name of a package with its declaration and its
// doc comment.
type exportedName struct {
	name string // a method or field is preceded by its type: Client.Close
	decl string // kind and signature in one line
	doc  string
}

// exportedLines returns one line for each exported name of a package, with its kind
// and its signature.
func exportedLines(t *testing.T, dir string) []string {
	t.Helper()
	var lines []string
	for _, e := range exportedNames(t, dir) {
		lines = append(lines, dir+"."+e.name+": "+e.decl)
	}
	return lines
}

// exportedNames returns the exported constants, variables, functions, types, methods
// and fields of a package.
func exportedNames(t *testing.T, dir string) []exportedName {
	t.Helper()
	set, files := parsed(t, dir, "_test.go", false)
	pkg, err := doc.NewFromFiles(set, files, modulePath(t)+"/"+dir)
	if err != nil {
		t.Fatal(err)
	}
	l := exportedList{set: set}
	l.values("const", pkg.Consts)
	l.values("var", pkg.Vars)
	l.funcs("", pkg.Funcs)
	for _, typ := range pkg.Types {
		l.typ(typ)
		l.values("const", typ.Consts)
		l.values("var", typ.Vars)
		l.funcs("", typ.Funcs)
		l.funcs(typ.Name+".", typ.Methods)
	}
	return l.all
}

// exportedList collects the exported names of a package.
type exportedList struct {
	set *token.FileSet
	all []exportedName
}

// source prints a node in one line.
func (l *exportedList) source(n any) string {
	var b bytes.Buffer
	if err := printer.Fprint(&b, l.set, n); err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// values adds constants or variables. A value without its own comment gets the comment of its group.
func (l *exportedList) values(kind string, all []*doc.Value) {
	for _, v := range all {
		for _, s := range v.Decl.Specs {
			spec := s.(*ast.ValueSpec)
			text := spec.Doc.Text() + spec.Comment.Text()
			if text == "" {
				text = v.Doc
			}
			decl := kind
			if spec.Type != nil {
				decl += " " + l.source(spec.Type)
			}
			for _, id := range spec.Names {
				if id.IsExported() {
					l.all = append(l.all, exportedName{id.Name, decl, text})
				}
			}
		}
	}
}

// funcs adds functions, or the methods of a type; prefix is the type's name with a dot.
func (l *exportedList) funcs(prefix string, all []*doc.Func) {
	for _, f := range all {
		decl := *f.Decl
		decl.Doc, decl.Body = nil, nil
		l.all = append(l.all, exportedName{prefix + f.Name, l.source(&decl), f.Doc})
	}
}

// typ adds a type, and the exported fields or methods of a struct or an interface.
func (l *exportedList) typ(t *doc.Type) {
	spec := t.Decl.Specs[0].(*ast.TypeSpec)
	text := t.Doc + spec.Comment.Text()
	var fields *ast.FieldList
	decl := "type "
	switch u := spec.Type.(type) {
	case *ast.StructType:
		decl, fields = decl+"struct", u.Fields
	case *ast.InterfaceType:
		decl, fields = decl+"interface", u.Methods
	default:
		if spec.Assign.IsValid() {
			decl += "= "
		}
		decl += l.source(spec.Type)
	}
	l.all = append(l.all, exportedName{t.Name, decl, text})
	if fields == nil {
		return
	}
	for _, f := range fields.List {
		for _, id := range f.Names {
			if id.IsExported() {
				l.all = append(l.all, exportedName{t.Name + "." + id.Name, "field " + l.source(f.Type), f.Doc.Text() + f.Comment.Text()})
			}
		}
	}
}

// TestExportedNamesAreDescribed shows that each exported name of the public packages has a doc comment that
// begins with the name. Methods whose meaning the language fixes, such as String, need none.
func TestExportedNamesAreDescribed(t *testing.T) {
	conventional := []string{"Error", "String", "Unwrap", "MarshalJSON", "UnmarshalJSON"}
	for _, dir := range []string{"zk", "recipe", "embed"} {
		for _, e := range exportedNames(t, dir) {
			name := e.name[strings.LastIndex(e.name, ".")+1:]
			first := strings.TrimRight(strings.SplitN(e.doc, " ", 2)[0], ",:;.\n")
			if first != name && !strings.HasPrefix(e.decl, "field ") && (e.doc != "" || !slices.Contains(conventional, name)) {
				t.Errorf("%s.%s: the doc comment does not begin with the name: %q", dir, e.name, e.doc)
			}
		}
	}
}

// TestRecipesHaveExamples shows that each recipe has an Example: of the function that opens it, of the type that
// this function returns, or of a method of that type. A recipe is opened by a function of package recipe whose
// argument is a client or the handle of a leader.
func TestRecipesHaveExamples(t *testing.T) {
	_, tests := parsed(t, "recipe", "_test.go", true)
	examples := map[string]bool{}
	for _, e := range doc.Examples(tests...) {
		first, _, _ := strings.Cut(e.Name, "_")
		examples[first] = true
	}
	recipes := 0
	for _, e := range exportedNames(t, "recipe") {
		if !strings.HasPrefix(e.decl, "func "+e.name+"(") || !strings.Contains(e.decl, "*zk.Client") && !strings.Contains(e.decl, "*Handle") {
			continue
		}
		recipes++
		_, result, _ := strings.Cut(e.decl, ") (*")
		result, _, _ = strings.Cut(result, ",")
		if !examples[e.name] && !examples[result] {
			t.Errorf("recipe.%s has no example", e.name)
		}
	}
	if recipes < 20 {
		t.Errorf("only %d recipes were found", recipes)
	}
}
