package patch

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
)

// TestCarry shows which patches are brought forward and which must be rewritten by hand.
func TestCarry(t *testing.T) {
	lines := func(n int, change map[int]string) string {
		var b strings.Builder
		for i := range n {
			if s, ok := change[i]; ok {
				b.WriteString(s)
			} else {
				fmt.Fprintf(&b, "line %d\n", i)
			}
		}
		return b.String()
	}
	old := oldTree{
		read: func(file string) (string, error) {
			if file != "a.go" && file != "b.go" {
				return "", fs.ErrNotExist
			}
			return lines(20, nil), nil
		},
		moved: map[string]string{"b.go": "c/b.go"},
	}
	for name, c := range map[string]struct {
		patch, file, now string
		want             map[int]string // the result of the new patch; nil: a conflict
	}{
		"a line of the context has changed": {
			"# w\n--- a.go\n@@\n line 9\n-line 10\n+broken\n", "a.go", lines(20, map[int]string{8: "new\n"}),
			map[int]string{8: "new\n", 10: "broken\n"},
		},
		"the quoted line is no longer unique": {
			"# w\n--- a.go\n@@\n-line 10\n", "a.go", lines(20, map[int]string{2: "line 10\n"}),
			map[int]string{2: "line 10\n", 10: ""},
		},
		"the patch only adds lines": {
			"# w\n--- a.go\n@@\n line 10\n+more\n", "a.go", lines(20, map[int]string{9: "", 15: "line 10\n"}),
			map[int]string{9: "", 10: "line 10\nmore\n", 15: "line 10\n"},
		},
		"the file has moved": {
			"# w\n--- b.go\n@@\n-line 10\n+broken\n", "c/b.go", lines(20, map[int]string{2: "new\n"}),
			map[int]string{2: "new\n", 10: "broken\n"},
		},
		"the line that the patch changes has changed": {
			"# w\n--- a.go\n@@\n-line 10\n+broken\n", "a.go", lines(20, map[int]string{10: "changed\n"}), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := func(file string) (string, error) {
				if file != c.file {
					return "", fs.ErrNotExist
				}
				return c.now, nil
			}
			p, err := Read(c.patch)
			if err != nil {
				t.Fatal(err)
			}
			p, err = p.carry(old, now)
			if c.want == nil {
				if err == nil || !strings.Contains(err.Error(), "by hand") {
					t.Errorf("a conflict must be reported: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if p, err = Read(p.String()); err != nil {
				t.Fatal(err)
			}
			out, err := p.Apply(now)
			if err != nil || out[c.file] != lines(20, c.want) {
				t.Errorf("%v, %q\nwith the patch\n%s", err, out[c.file], p)
			}
		})
	}
}

// TestFollow shows that lines that moved to another file are found if they are unique.
func TestFollow(t *testing.T) {
	for _, c := range []struct {
		files map[string]string
		want  string
	}{
		{map[string]string{"b.go": "x\nline\n", "c.go": "y\n"}, "b.go"},
		{map[string]string{"b.go": "line\n", "c.go": "line\n"}, ""},
		{map[string]string{"b.go": "line\nline\n"}, ""},
		{map[string]string{"b.go": "lines\n"}, ""},
	} {
		p, err := Read("# w\n--- a.go\n@@\n-line\n")
		if err != nil {
			t.Fatal(err)
		}
		if ok := p.follow(c.files); ok != (c.want != "") || ok && p.Edits[0].File != c.want {
			t.Errorf("%v: %v, %s; want %q", c.files, ok, p.Edits[0].File, c.want)
		}
	}
}
