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

var carryFrom = flag.String("from", "", "bring the patches forward that no longer apply: a commit at which they did")

// carryHelp tells how a patch that no longer applies gets to apply again.
const carryHelp = "\ncode that this patch quotes has changed. To bring it forward, with COMMIT the last commit at which it applied:\n" +
	"\tgo test ./internal/bugs -run TestCarryPatches -from COMMIT\n" +
	"What that cannot merge must be written by hand; see internal/bugs/doc.go"

// TestCarryPatches brings forward, with -from, the patches that no longer apply:
// it makes the broken file of the old commit, and merges the change from there
// to the working tree into it. Lines that have moved to another file unchanged
// are found there.
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
		t.Logf("%s is brought forward: run TestBugsAreFound for it", f)
	}
}

// TestCarry shows what is brought forward and what is left to a person.
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
		want             map[int]string // of the carried patch's result; nil: a conflict
	}{
		"a line of the context has changed": {
			"# w\n--- a.go\n@@\n line 9\n-line 10\n+broken\n", "a.go", lines(20, map[int]string{8: "new\n"}),
			map[int]string{8: "new\n", 10: "broken\n"},
		},
		"the quoted line is no longer alone": {
			"# w\n--- a.go\n@@\n-line 10\n", "a.go", lines(20, map[int]string{2: "line 10\n"}),
			map[int]string{2: "line 10\n", 10: ""},
		},
		"lines are only put in": {
			"# w\n--- a.go\n@@\n line 10\n+more\n", "a.go", lines(20, map[int]string{9: "", 15: "line 10\n"}),
			map[int]string{9: "", 10: "line 10\nmore\n", 15: "line 10\n"},
		},
		"the file has moved": {
			"# w\n--- b.go\n@@\n-line 10\n+broken\n", "c/b.go", lines(20, map[int]string{2: "new\n"}),
			map[int]string{2: "new\n", 10: "broken\n"},
		},
		"the broken line itself has changed": {
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
					t.Errorf("a conflict is carried: %v", err)
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

// Lines that moved to another file are found if they are in one place alone.
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

// oldTree is the source at a commit.
type oldTree struct {
	read  func(file string) (string, error)
	moved map[string]string // the files that have another name now
}

// treeOf is the source at a commit of this repository.
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

// carry returns the patch that makes in the new source the change that p makes
// in the old one.
func (p *patch) carry(old oldTree, now func(string) (string, error)) (*patch, error) {
	broken, err := p.apply(old.read)
	if err != nil {
		return nil, fmt.Errorf("at the old commit: %w", err)
	}
	out := &patch{what: p.what}
	for _, e := range p.edits {
		text, ok := broken[e.file]
		if !ok {
			continue // an earlier edit of the same file has done it
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

// follow names for each edit the one file that has its lines now, and reports
// whether there is one for each.
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

// sources are the Go files of the module that are not tests, by name.
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

// mergeText makes in ours the change from base to theirs.
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
		return "", fmt.Errorf("the broken lines have changed: write the patch by hand\n%s", conflicts(string(merged)))
	}
	return string(merged), err
}

// conflicts are the parts of a merged text on which both sides differ.
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

// changes are the edits that turn one text into another, each with as much
// context as names its place.
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

// hunk says that lines stand in the place of those of a from one index until
// another.
type hunk struct {
	from, until int
	lines       []string
}

// hunks are the differences between two lists of lines, by their longest
// common subsequence.
func hunks(a, b []string) []hunk {
	common := make([][]int, len(a)+1) // common[i][j] is its length for a[i:] and b[j:]
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

// String is the text of a patch, as readPatch takes it.
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
