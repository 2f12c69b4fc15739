package mutants

import (
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// TestOperators shows which mutants each operator makes of a function, by the lines that they
// change.
func TestOperators(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want []string // operator: the changed text
	}{
		"a condition": {"if a < 3 {\n}", []string{"negate: if !(a < 3) {", "shift: if a <= 3 {", "constant: if a < 4 {"}},
		"a loop":      {"for a >= b {\n}", []string{"negate: for !(a >= b) {", "shift: for a > b {"}},
		"cases": {"switch {\ncase a == b, ok:\n}", []string{
			"negate: case !(a == b), ok:", "negate: case a == b, !(ok):"}},
		"a switch over a value": {"switch a {\ncase b:\n}", nil},
		"a call":                {"f(a)", []string{"drop: if false { f(a) }"}},
		"an assignment":         {"a = b", []string{"drop: if false { a = b }"}},
		"a definition":          {"a := b", nil},
		"a count":               {"a++", []string{"drop: if false { a++ }"}},
		"a jump":                {"for {\nbreak\n}", []string{"drop: if false { break }"}},
		"a return":              {"return", []string{"drop: if false { return }"}},
		"a panic":               {"panic(a)", nil},
		"two calls": {"f(a)\ng(b) // why", []string{
			"drop: if false { f(a) }", "reorder: g(b)\nf(a) // why", "drop: if false { g(b) } // why"}},
		"calls within the language": {"a = append(a, b)\nclear(b)\nf([]byte(a))", []string{
			"drop: if false { a = append(a, b) }", "drop: if false { clear(b) }", "drop: if false { f([]byte(a)) }"}},
		"a call and an assignment of one": {"f(a)\nb = g()", []string{
			"drop: if false { f(a) }", "reorder: b = g()\nf(a)", "drop: if false { b = g() }"}},
		"a lock":                     {"a.Lock()\ndefer a.Unlock()", []string{"drop: if false { a.Lock() }", "drop: if false { defer a.Unlock() }"}},
		"an assignment after a call": {"f(a)\na = b", []string{"drop: if false { f(a) }", "drop: if false { a = b }"}},
		"a call after a definition":  {"a := g()\nf(a)", []string{"drop: if false { f(a) }"}},
		"a list of a case":           {"switch a {\ncase b:\nf(a)\n}", []string{"drop: if false { f(a) }"}},
		"truth":                      {"a = true", []string{"drop: if false { a = true }", "constant: a = false"}},
		"a number":                   {"a = 0x10", []string{"drop: if false { a = 0x10 }", "constant: a = 17"}},
		"a checked error":            {"if err != nil {\n}", []string{"negate: if !(err != nil) {", "swallow: if (err != nil) && false {"}},
		"an error of two":            {"if ok && x.Err != nil {\n}", []string{"negate: if !(ok && x.Err != nil) {", "swallow: if (ok && x.Err != nil) && false {"}},
		"no error":                   {"if err == nil {\n}", []string{"negate: if !(err == nil) {"}},
		"a returned error":           {"return a, err", []string{"swallow: return a, nil"}},
		"a function in a function": {"f(func() {\ng()\n})", []string{
			"drop: if false { f(func() {\ng()\n}) }", "drop: if false { g() }"}},
	} {
		t.Run(name, func(t *testing.T) {
			const before, after = "package p\n\nfunc f() {\n", "\n}\n"
			got := changesOf(t, before+c.body+after)
			slices.Sort(got)
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) {
				t.Errorf("%q\nwant %q", got, c.want)
			}
		})
	}
}

// changesOf returns the mutants of a file as the operator and the lines that differ. Each
// mutant must be a Go file.
func changesOf(t *testing.T, text string) []string {
	t.Helper()
	all, err := Generate("d/f.go", text)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range all {
		changed, err := m.Apply(func(string) (string, error) { return text, nil })
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.ParseFile(token.NewFileSet(), "f.go", changed["d/f.go"], 0); err != nil {
			t.Errorf("%s: %v\n%s", m.Name, err, changed["d/f.go"])
		}
		out = append(out, strings.Split(m.Name, ":")[2]+": "+difference(text, changed["d/f.go"]))
	}
	return out
}

// difference returns the lines of to between the first and the last one that differ.
func difference(from, to string) string {
	a, b := strings.Split(from, "\n"), strings.Split(to, "\n")
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return strings.Join(b, "\n")
}

// TestNames shows the names of generated mutants, and where no mutants are made.
func TestNames(t *testing.T) {
	all, err := Generate("d/f.go", `package p

const limit = 3

type t[K any] struct{}

func (x *t[K]) f() { g(1, 2) }

func g(a, b int) {}

func (x t[K]) String() string { g(1, 2); return "" }
`)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range all {
		names = append(names, m.Name)
	}
	want := []string{"d/f.go:limit:constant:1", "d/f.go:t.f:drop:1", "d/f.go:t.f:constant:1", "d/f.go:t.f:constant:2"}
	if !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	if all[1].What != "line 7: the statement is dropped" || all[1].Set() != Generated || all[1].Package() != "d" {
		t.Errorf("%s, %s, %s", all[1].What, all[1].Set(), all[1].Package())
	}
	if _, err := Generate("d/f.go", "package"); err == nil {
		t.Error("a file that is no Go file has mutants")
	}
	if _, err := all[0].Apply(func(string) (string, error) { return "package p\n", nil }); err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("a mutant of another text applies: %v", err)
	}
}
