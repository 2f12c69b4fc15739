package patch

import (
	"strings"
	"testing"
)

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
		p, err := Read(c.text)
		var out map[string]string
		if err == nil {
			out, err = p.Apply(read)
		}
		switch {
		case c.err == "" && (err != nil || out[c.file] != c.want):
			t.Errorf("%q: %q, %v", c.text, out, err)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%q: %v, want %q", c.text, err, c.err)
		}
	}
}
