package mutants

import (
	"strings"
	"testing"
)

// TestLists shows which lists are read, and how the others are refused.
func TestLists(t *testing.T) {
	one := "== one\n# It breaks.\n--- a.go\n@@\n-x\n+y\n"
	for name, c := range map[string]struct{ text, err string }{
		"one entry":           {one, ""},
		"two entries":         {one + "== two-2\n# It breaks too.\n--- b.go\n@@\n a\n-x\n", ""},
		"empty lines before":  {"\n\n" + one, ""},
		"nothing":             {"", ""},
		"text before":         {"# text\n" + one, "list.txt:1: this text is before the first entry"},
		"a name twice":        {one + one, "list.txt:7: there are two mutants with the name one"},
		"a bad name":          {"== One\n", `list.txt:1: "One" is no name`},
		"no name":             {"== \n# It breaks.\n", `list.txt:1: "" is no name`},
		"no description":      {one + "== two\n--- a.go\n@@\n-x\n+y\n", "list.txt:7: the mutant two cannot be read"},
		"no change":           {one + "== two\n# It breaks.\n--- a.go\n@@\n x\n", "without context or change"},
		"a line out of place": {one + "== two\n# It breaks.\nx\n", `line 2: "x" is out of place`},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := ReadList("list.txt", c.text)
			switch {
			case c.err == "" && err != nil, c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("%v, want %q", err, c.err)
			case c.err != "" && !strings.Contains(err.Error(), "name"):
				t.Errorf("%v does not say what is allowed", err)
			case err == nil && strings.TrimLeft(c.text, "\n") != WriteList(list):
				t.Errorf("%q is written as %q", c.text, WriteList(list))
			}
		})
	}
}

// TestSemanticMutant shows what a mutant of a list changes.
func TestSemanticMutant(t *testing.T) {
	list, err := ReadList("list.txt", "== one\n# It breaks.\n--- d/a.go\n@@\n-x\n+y\n")
	if err != nil {
		t.Fatal(err)
	}
	m := &list[0]
	changed, err := m.Apply(func(string) (string, error) { return "w\nx\n", nil })
	if err != nil || changed["d/a.go"] != "w\ny\n" || m.Set() != Semantic || m.Package() != "d" || m.What != "It breaks." {
		t.Errorf("%q, %v, %v", changed, err, m)
	}
	if _, err := m.Apply(func(string) (string, error) { return "x\nx\n", nil }); err == nil {
		t.Error("a mutant applies to a text that has its lines twice")
	}
}

// TestReasons shows how lists of reasons are read.
func TestReasons(t *testing.T) {
	got, err := ReadReasons("e.txt", "# comment\n\none it is dead code\n")
	if err != nil || len(got) != 1 || got["one"] != "it is dead code" {
		t.Errorf("%q, %v", got, err)
	}
	for text, want := range map[string]string{
		"one\n":           "e.txt:1: one has no reason: a line is",
		"one x\none y\n":  "e.txt:2: one is listed twice",
		"# x\n\ntwo   \n": "e.txt:3: two has no reason",
	} {
		if _, err := ReadReasons("e.txt", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
