package bugs

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var carryFrom = flag.String("from", "", "bring forward the patches that no longer apply; the value is a commit at which they applied")

// carryHelp explains how to bring forward a patch that no longer applies.
const carryHelp = "\nThe code that this patch quotes has changed. To bring the patch forward, run this with the last commit at which it applied:\n" +
	"\tgo test ./internal/bugs -run TestCarryPatches -from COMMIT\n" +
	"A patch that cannot be merged must be rewritten by hand; see internal/bugs/doc.go"

// TestCarryPatches brings forward, with -from, the patches that no longer apply. It applies
// a patch to the files of the old commit and merges the result with the current files. It
// also finds lines that have moved unchanged to another file.
func TestCarryPatches(t *testing.T) {
	if *carryFrom == "" {
		return
	}
	files, err := filepath.Glob("testdata/*.patch")
	if err != nil {
		t.Fatal(err)
	}
	old, err := treeOf(*carryFrom)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		p := load(t, strings.TrimSuffix(filepath.Base(f), ".patch"))
		if _, err := p.apply(source); err == nil {
			continue
		}
		carried, err := p.carry(old, source)
		if err != nil && p.follow(sources(t)) {
			carried, err = p, nil
		}
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		if err := os.WriteFile(f, []byte(carried.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s was brought forward: run TestBugsAreFound for it", f)
	}
}

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
			p, err := readPatch(c.patch)
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
			if p, err = readPatch(p.String()); err != nil {
				t.Fatal(err)
			}
			out, err := p.apply(now)
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
		p, err := readPatch("# w\n--- a.go\n@@\n-line\n")
		if err != nil {
			t.Fatal(err)
		}
		if ok := p.follow(c.files); ok != (c.want != "") || ok && p.edits[0].file != c.want {
			t.Errorf("%v: %v, %s; want %q", c.files, ok, p.edits[0].file, c.want)
		}
	}
}

// oldTree gives access to the source at a commit.
type oldTree struct {
	read  func(file string) (string, error)
	moved map[string]string // the new names of renamed files
}

// treeOf returns the source at a commit of this repository.
func treeOf(commit string) (oldTree, error) {
	list, err := git("diff", "--name-status", "--diff-filter=R", "-M40%", commit)
	if err != nil {
		return oldTree{}, err
	}
	moved := map[string]string{}
	for line := range strings.Lines(list) {
		if f := strings.Fields(line); len(f) == 3 {
			moved[f[1]] = f[2]
		}
	}
	read := func(file string) (string, error) { return git("show", commit+":"+file) }
	return oldTree{read, moved}, nil
}

func git(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = root
	out, err := cmd.Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		err = fmt.Errorf("git %s: %s", strings.Join(args, " "), failed.Stderr)
	}
	return string(out), err
}

// carry returns a patch for the current source that makes the same change as p makes in the
// old source.
func (p *patch) carry(old oldTree, now func(string) (string, error)) (*patch, error) {
	broken, err := p.apply(old.read)
	if err != nil {
		return nil, fmt.Errorf("at the old commit: %w", err)
	}
	out := &patch{what: p.what}
	for _, e := range p.edits {
		text, ok := broken[e.file]
		if !ok {
			continue // an earlier edit of the same file has handled all
		}
		delete(broken, e.file)
		name := e.file
		if to, ok := old.moved[name]; ok {
			name = to
		}
		was, err := old.read(e.file)
		if err != nil {
			return nil, err
		}
		is, err := now(name)
		if err != nil {
			return nil, err
		}
		merged, err := mergeText(is, was, text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out.edits = append(out.edits, changes(name, is, merged)...)
	}
	return out, nil
}

// follow sets the file of each edit to the file that now has its lines. It returns false if,
// for some edit, no file or more than one place has these lines.
func (p *patch) follow(files map[string]string) bool {
	for i, e := range p.edits {
		var found []string
		for name, text := range files {
			for range places(text, e.old) {
				found = append(found, name)
			}
		}
		if len(found) != 1 {
			return false
		}
		p.edits[i].file = found[0]
	}
	return true
}

// sources returns the Go files of the module, without tests, by name.
func sources(t *testing.T) map[string]string {
	t.Helper()
	list, err := git("ls-files", "-co", "--exclude-standard", "*.go")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, name := range strings.Fields(list) {
		if text, err := source(name); err == nil && !strings.HasSuffix(name, "_test.go") {
			texts[name] = text
		}
	}
	return texts
}

// mergeText applies the change from base to theirs to ours.
func mergeText(ours, base, theirs string) (string, error) {
	dir, err := os.MkdirTemp("", "carry")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	for name, text := range map[string]string{"ours": ours, "base": base, "theirs": theirs} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			return "", err
		}
	}
	cmd := exec.Command("git", "merge-file", "-p", "--diff3", "ours", "base", "theirs")
	cmd.Dir = dir
	merged, err := cmd.Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) && failed.ExitCode() > 0 && failed.ExitCode() < 128 {
		return "", fmt.Errorf("the lines that the patch changes have changed: rewrite the patch by hand\n%s", conflicts(string(merged)))
	}
	return string(merged), err
}

// conflicts returns the conflicting parts of a merged text.
func conflicts(merged string) string {
	var b strings.Builder
	inside := false
	for line := range strings.Lines(merged) {
		inside = inside || strings.HasPrefix(line, "<<<<<<<")
		if inside {
			b.WriteString(line)
		}
		inside = inside && !strings.HasPrefix(line, ">>>>>>>")
	}
	return b.String()
}

// changes returns the edits that turn from into to, each with enough context to be unique.
func changes(file, from, to string) []edit {
	a, b := slices.Collect(strings.Lines(from)), slices.Collect(strings.Lines(to))
	var edits []edit
	for _, h := range hunks(a, b) {
		for before, after := 0, 0; ; {
			lo, hi := h.from-before, h.until+after
			e := edit{file, strings.Join(a[lo:hi], ""), strings.Join(a[lo:h.from], "") + strings.Join(h.lines, "") + strings.Join(a[h.until:hi], "")}
			if strings.TrimSpace(e.old) != "" && len(places(from, e.old)) == 1 || lo == 0 && hi == len(a) {
				edits = append(edits, e)
				break
			}
			if before <= after && lo > 0 || hi == len(a) {
				before++
			} else {
				after++
			}
		}
	}
	return edits
}

// hunk replaces the lines of a from index from until index until by lines.
type hunk struct {
	from, until int
	lines       []string
}

// hunks returns the differences between two lists of lines, based on their longest common
// subsequence.
func hunks(a, b []string) []hunk {
	common := make([][]int, len(a)+1) // common[i][j] is the length of that subsequence for a[i:] and b[j:]
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var out []hunk
	for i, j := 0, 0; i < len(a) || j < len(b); {
		if i < len(a) && j < len(b) && a[i] == b[j] {
			i, j = i+1, j+1
			continue
		}
		h := hunk{from: i, until: i}
		for i < len(a) || j < len(b) {
			switch {
			case i < len(a) && j < len(b) && a[i] == b[j]:
			case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
				i, h.until = i+1, i+1
				continue
			default:
				h.lines = append(h.lines, b[j])
				j++
				continue
			}
			break
		}
		out = append(out, h)
	}
	return out
}

// String returns the text of a patch, as readPatch parses it.
func (p *patch) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", p.what)
	file := ""
	for _, e := range p.edits {
		if e.file != file {
			file = e.file
			fmt.Fprintf(&b, "--- %s\n", file)
		}
		b.WriteString("@@\n")
		old, put := slices.Collect(strings.Lines(e.old)), slices.Collect(strings.Lines(e.new))
		i := 0
		for _, h := range hunks(old, put) {
			writeLines(&b, " ", old[i:h.from])
			writeLines(&b, "-", old[h.from:h.until])
			writeLines(&b, "+", h.lines)
			i = h.until
		}
		writeLines(&b, " ", old[i:])
	}
	return b.String()
}

func writeLines(b *strings.Builder, kind string, lines []string) {
	for _, l := range lines {
		b.WriteString(kind + l)
	}
}
