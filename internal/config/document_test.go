package config

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"sort"
	"strings"
	"testing"
	"text/template"
)

var update = flag.Bool("update", false, "rewrite docs/configuration.md from the table of keys")

const documentFile = "../../docs/configuration.md"

// TestDocument fails when docs/configuration.md differs from what the table of keys
// generates. Run it with -update after a change to the table or the template.
func TestDocument(t *testing.T) {
	want := document(t)
	if *update {
		if err := os.WriteFile(documentFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(documentFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/configuration.md is stale; run: go test ./internal/config -run TestDocument -update")
	}
}

// document renders docs/configuration.md.
func document(t *testing.T) string {
	t.Helper()
	tmpl, err := template.New("configuration.md.tmpl").Funcs(template.FuncMap{"row": documentRow}).
		ParseFiles("testdata/configuration.md.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	type pair struct{ Wrong, Right string }
	var wrong []pair
	for name, right := range misnamed {
		wrong = append(wrong, pair{name, right})
	}
	sort.Slice(wrong, func(i, j int) bool { return wrong[i].Wrong < wrong[j].Wrong })
	type page struct {
		Title string
		Keys  []key
	}
	var pages []page
	for _, s := range table {
		pages = append(pages, page{s.title, s.keys})
	}
	var b strings.Builder
	if err := tmpl.Execute(&b, map[string]any{"Sections": pages, "Misnamed": wrong}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// documentRow renders one key as a row of a Markdown table.
func documentRow(k key) string {
	def := "–"
	switch {
	case k.says != "":
		def = k.says
	case k.def != "":
		def = "`" + k.def + "`"
	}
	name := strings.ReplaceAll(k.name, "*", "…")
	return fmt.Sprintf("| `%s` | %s | %s | %s | %s | %s |", name, documentKind(k), def, documentAllowed(k), k.effect, documentStatus(k))
}

// documentAllowed describes the values that a key takes, in fewer words than an error does.
func documentAllowed(k key) string {
	if k.form == pattern {
		return "–"
	}
	if k.form != decimal && k.form != number {
		return k.allowed()
	}
	var b strings.Builder
	b.WriteString("number")
	if k.form == decimal && k.kind&parsed == 0 {
		b.WriteString(" (decimal)")
	}
	if k.unit != "" {
		b.WriteString(" of " + k.unit)
	}
	switch {
	case k.max != 0 && k.max < math.MaxInt32 && k.min > math.MinInt32:
		fmt.Fprintf(&b, ", %d to %d", k.min, k.max)
	case k.max != 0 && k.max < math.MaxInt32:
		fmt.Fprintf(&b, ", up to %d", k.max)
	case k.min > math.MinInt32:
		fmt.Fprintf(&b, ", %d or more", k.min)
	}
	return b.String()
}

func documentKind(k key) string {
	var kinds []string
	for _, x := range []struct {
		bit  kind
		name string
	}{{parsed, "P"}, {system, "S"}, {java, "J"}} {
		if k.kind&x.bit != 0 {
			kinds = append(kinds, x.name)
		}
	}
	if k.kind&unprefix != 0 {
		kinds = append(kinds, "J")
	}
	return strings.Join(kinds, ", ")
}

func documentStatus(k key) string {
	switch k.status {
	case inEnsemble:
		return "in an ensemble"
	case ignored:
		return "ignored: " + k.reason
	case stops:
		s := "stops the start"
		if k.when != "" {
			s += " if `" + k.when + "`"
		}
		return s + ", not supported: " + k.reason
	}
	if k.live {
		return "honoured, live"
	}
	return "honoured"
}

// TestTable checks each row of the table for consistency.
func TestTable(t *testing.T) {
	seen := make(map[string]bool)
	for _, s := range table {
		for i := range s.keys {
			k := &s.keys[i]
			if seen[k.name] {
				t.Errorf("%s is in the table twice", k.name)
			}
			seen[k.name] = true
			if k.kind == 0 || !strings.HasSuffix(k.effect, ".") || strings.Contains(k.effect, "|") {
				t.Errorf("%s: kind %d, effect %q, want both set and the effect to be a sentence", k.name, k.kind, k.effect)
			}
			if (k.status == ignored || k.status == stops) != (k.reason != "") {
				t.Errorf("%s: exactly the keys that are ignored or refused must have a reason", k.name)
			}
			if k.status == honoured && k.into == nil && k.form != pattern && !k.tls {
				t.Errorf("%s is honoured but not stored", k.name)
			}
			if (k.form == pattern) != strings.HasSuffix(k.name, "*") {
				t.Errorf("%s: its name must end with * if and only if its form is pattern", k.name)
			}
			if (k.form == yesNo) != (k.exact != "") || (k.form == word) != (k.words != nil) {
				t.Errorf("%s: exactly the keys of form word must have words", k.name)
			}
			for _, v := range []string{k.def, k.same, k.when} {
				if v != "" && !k.allows(v) {
					t.Errorf("%s: the table gives the value %q, which the key does not allow", k.name, v)
				}
			}
		}
	}
	for wrong, right := range misnamed {
		if find(wrong) != nil || find(right) == nil {
			t.Errorf("misnamed: %s must not be a key, and %s must be one", wrong, right)
		}
	}
}

// TestHonouredKeysAreRead fails for a key that is honoured according to the table, but
// whose field neither the server packages nor the membership read.
func TestHonouredKeysAreRead(t *testing.T) {
	var code []byte
	for _, pattern := range []string{"members.go", "sasl.go", "quorumsasl.go", "config.go", "../server/*.go", "../admin/*.go", "../admin/*/*.go", "../../cmd/bellwether/*.go"} {
		names, err := filepath.Glob(pattern)
		if err != nil || names == nil {
			t.Fatalf("%s: %d files, %v", pattern, len(names), err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(name, "_test.go") {
				code = append(code, text...)
			}
		}
	}
	c := defaults()
	for _, s := range table {
		for _, k := range s.keys {
			if k.into == nil || k.status != honoured && k.status != inEnsemble {
				continue
			}
			name := fieldAt(reflect.ValueOf(c).Elem(), k.into(c))
			if !regexp.MustCompile(`\.` + name + `\b`).Match(code) {
				t.Errorf("%s: no code reads %s", k.name, name)
			}
		}
	}
}

// fieldAt returns the name of the field of v, or of a struct in it, to which p points.
func fieldAt(v reflect.Value, p any) string {
	for i := range v.NumField() {
		f := v.Field(i)
		if !f.CanInterface() {
			continue // this field is not a setting
		}
		if f.Addr().Interface() == p {
			return v.Type().Field(i).Name
		}
		if f.Kind() == reflect.Struct {
			if name := fieldAt(f, p); name != "" {
				return name
			}
		}
	}
	return ""
}

// TestEveryKeyOfZooKeeperIsInTheTable shows that the table has each key in the list of ZooKeeper's
// keys, with the same kind.
func TestEveryKeyOfZooKeeperIsInTheTable(t *testing.T) {
	text, err := os.ReadFile("testdata/keys.txt")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]kind{"P": parsed, "S": system, "J": java}
	n := 0
	for line := range strings.Lines(string(text)) {
		letter, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		k := find(name)
		switch {
		case k == nil:
			t.Errorf("%s is not in the table", name)
		case k.kind&kinds[letter] == 0:
			t.Errorf("%s is of kind %s, the table says %s", name, letter, documentKind(*k))
		}
		n++
	}
	if n < 200 {
		t.Errorf("only %d keys in the list", n)
	}
}
