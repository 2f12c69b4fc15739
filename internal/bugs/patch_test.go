package bugs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// patch is a change that brings a bug back.
type patch struct {
	what  string // the description
	edits []edit
}

// edit replaces old in a file by new. old must be in the file exactly once.
type edit struct{ file, old, new string }

// readPatch parses a patch. The package comment describes its form.
func readPatch(text string) (*patch, error) {
	p, file := new(patch), ""
	for n, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		rest, isFile := strings.CutPrefix(line, "--- ")
		switch {
		case isFile:
			file = rest
			continue
		case line == "@@":
			p.edits = append(p.edits, edit{file: file})
			continue
		case strings.HasPrefix(line, "#"):
			p.what = strings.TrimSpace(p.what + " " + strings.TrimPrefix(line, "# "))
			continue
		case len(p.edits) == 0 || file == "" || line != "" && !strings.ContainsRune(" -+", rune(line[0])):
			return nil, fmt.Errorf("line %d: %q is out of place", n+1, line)
		}
		e := &p.edits[len(p.edits)-1]
		kind, content := " ", ""
		if line != "" {
			kind, content = line[:1], line[1:]
		}
		if kind != "+" {
			e.old += content + "\n"
		}
		if kind != "-" {
			e.new += content + "\n"
		}
	}
	for _, e := range p.edits {
		if strings.TrimSpace(e.old) == "" || e.old == e.new {
			return nil, fmt.Errorf("an edit of %s without context or change", e.file)
		}
	}
	if p.what == "" || len(p.edits) == 0 {
		return nil, fmt.Errorf("no description, or no change")
	}
	return p, nil
}

// apply returns the changed files by name.
func (p *patch) apply(read func(file string) (string, error)) (map[string]string, error) {
	changed := map[string]string{}
	for _, e := range p.edits {
		text, ok := changed[e.file]
		if !ok {
			var err error
			if text, err = read(e.file); err != nil {
				return nil, err
			}
		}
		at := places(text, e.old)
		if len(at) != 1 {
			return nil, fmt.Errorf("%s contains these lines %d times, want once:\n%s", e.file, len(at), e.old)
		}
		changed[e.file] = text[:at[0]] + e.new + text[at[0]+len(e.old):]
	}
	return changed, nil
}

// places returns the offsets in text at which the lines of piece are found.
func places(text, piece string) (at []int) {
	for i := 0; i < len(text); {
		if strings.HasPrefix(text[i:], piece) {
			at = append(at, i)
		}
		next := strings.IndexByte(text[i:], '\n')
		if next < 0 {
			break
		}
		i += next + 1
	}
	return at
}

// load reads a patch from testdata.
func load(t *testing.T, name string) *patch {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".patch"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := readPatch(string(b))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return p
}

// TestPatches shows what a patch changes and which patches are refused.
func TestPatches(t *testing.T) {
	files := map[string]string{"a": "one\ntwo\nthree\n", "b": "x\nx\n", "c": "three\nfour\n"}
	read := func(name string) (string, error) { return files[name], nil }
	for _, c := range []struct{ text, file, want, err string }{
		{"# w\n--- a\n@@\n one\n-two\n+2\n+2\n three\n", "a", "one\n2\n2\nthree\n", ""},
		{"# w\n--- a\n@@\n-one\n@@\n two\n+and\n", "a", "two\nand\nthree\n", ""},
		{"# w\n--- a\n@@\n-one\n--- c\n@@\n four\n+five\n", "c", "three\nfour\nfive\n", ""},
		{"# w\n--- a\n@@\n-gone\n", "", "", "0 times"},
		{"# w\n--- a\n@@\n-wo\n", "", "", "0 times"},
		{"# w\n--- b\n@@\n-x\n+y\n", "", "", "times"},
		{"# w\n--- a\n@@\n one\n", "", "", "without context or change"},
		{"# w\n--- a\n@@\n+one\n", "", "", "without context or change"},
		{"# w\n--- a\n", "", "", "no change"},
		{"--- a\n@@\n-one\n", "", "", "no description"},
		{"# w\n@@\n-one\n", "", "", "out of place"},
		{"# w\n--- a\n@@\none\n", "", "", "out of place"},
	} {
		p, err := readPatch(c.text)
		var out map[string]string
		if err == nil {
			out, err = p.apply(read)
		}
		switch {
		case c.err == "" && (err != nil || out[c.file] != c.want):
			t.Errorf("%q: %q, %v", c.text, out, err)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%q: %v, want %q", c.text, err, c.err)
		}
	}
}
