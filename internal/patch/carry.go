package patch

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// oldTree gives access to the source at a commit.
type oldTree struct {
	read  func(file string) (string, error)
	moved map[string]string // the new names of renamed files
}

// Carrier brings patches forward: from a commit at which they applied to the present source.
type Carrier struct {
	root string // the folder of the module, which is also that of the git repository
	old  oldTree
	now  map[string]string // the present Go files, without tests, by name
}

// NewCarrier returns a Carrier of the module in root.
func NewCarrier(root, commit string) (*Carrier, error) {
	c := &Carrier{root: root, old: oldTree{moved: map[string]string{}}, now: map[string]string{}}
	if _, err := c.git("rev-parse", "--git-dir"); err != nil {
		return nil, err
	}
	if _, err := c.git("rev-parse", "--quiet", "--verify", "--end-of-options", commit+"^{commit}"); err != nil {
		return nil, fmt.Errorf("the repository of %s has no commit %q", root, commit)
	}
	list, err := c.git("diff", "--name-status", "--diff-filter=R", "-M40%", commit)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(list) {
		if f := strings.Fields(line); len(f) == 3 {
			c.old.moved[f[1]] = f[2]
		}
	}
	c.old.read = func(file string) (string, error) { return c.git("show", commit+":"+file) }
	if list, err = c.git("ls-files", "-co", "--exclude-standard", "*.go"); err != nil {
		return nil, err
	}
	for _, name := range strings.Fields(list) {
		if text, err := c.source(name); err == nil && !strings.HasSuffix(name, "_test.go") {
			c.now[name] = text
		}
	}
	return c, nil
}

// Carry returns a patch for the present source that makes the same change as p made in the
// old source. It also finds lines that have moved unchanged to another file. If the lines
// that p changes have changed, Carry returns an error: p must be rewritten by hand.
func (c *Carrier) Carry(p *Patch) (*Patch, error) {
	carried, err := p.carry(c.old, c.source)
	if err != nil && p.follow(c.now) {
		return p, nil
	}
	return carried, err
}

// source returns the present text of a file of the module.
func (c *Carrier) source(file string) (string, error) {
	b, err := os.ReadFile(filepath.Join(c.root, file))
	return string(b), err
}

func (c *Carrier) git(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = c.root
	out, err := cmd.Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		err = fmt.Errorf("git %s: %s", strings.Join(args, " "), bytes.TrimSpace(failed.Stderr))
	}
	return string(out), err
}

// carry returns a patch for the current source that makes the same change as p makes in the
// old source.
func (p *Patch) carry(old oldTree, now func(string) (string, error)) (*Patch, error) {
	broken, err := p.Apply(old.read)
	if err != nil {
		return nil, fmt.Errorf("at the old commit: %w", err)
	}
	out := &Patch{What: p.What}
	for _, e := range p.Edits {
		text, ok := broken[e.File]
		if !ok {
			continue // an earlier edit of the same file has handled all
		}
		delete(broken, e.File)
		name := e.File
		if to, ok := old.moved[name]; ok {
			name = to
		}
		was, err := old.read(e.File)
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
		out.Edits = append(out.Edits, changes(name, is, merged)...)
	}
	return out, nil
}

// follow sets the file of each edit to the file that now has its lines. It returns false if,
// for some edit, no file or more than one place has these lines.
func (p *Patch) follow(files map[string]string) bool {
	for i, e := range p.Edits {
		var found []string
		for name, text := range files {
			for range Places(text, e.Old) {
				found = append(found, name)
			}
		}
		if len(found) != 1 {
			return false
		}
		p.Edits[i].File = found[0]
	}
	return true
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
func changes(file, from, to string) []Edit {
	a, b := slices.Collect(strings.Lines(from)), slices.Collect(strings.Lines(to))
	var edits []Edit
	for _, h := range hunks(a, b) {
		for before, after := 0, 0; ; {
			lo, hi := h.from-before, h.until+after
			e := Edit{file, strings.Join(a[lo:hi], ""), strings.Join(a[lo:h.from], "") + strings.Join(h.lines, "") + strings.Join(a[h.until:hi], "")}
			if strings.TrimSpace(e.Old) != "" && len(Places(from, e.Old)) == 1 || lo == 0 && hi == len(a) {
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

// String returns the text of a patch, as Read parses it.
func (p *Patch) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", p.What)
	file := ""
	for _, e := range p.Edits {
		if e.File != file {
			file = e.File
			fmt.Fprintf(&b, "--- %s\n", file)
		}
		b.WriteString("@@\n")
		old, put := slices.Collect(strings.Lines(e.Old)), slices.Collect(strings.Lines(e.New))
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
