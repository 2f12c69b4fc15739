package patch

import (
	"fmt"
	"strings"
)

// Patch is a change of the program.
type Patch struct {
	What  string // the description
	Edits []Edit
}

// Edit replaces Old in a file by New. Old must be in the file exactly once.
type Edit struct{ File, Old, New string }

// Read parses a patch; see the package comment.
func Read(text string) (*Patch, error) {
	p, file := new(Patch), ""
	for n, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		rest, isFile := strings.CutPrefix(line, "--- ")
		switch {
		case isFile:
			file = rest
			continue
		case line == "@@":
			p.Edits = append(p.Edits, Edit{File: file})
			continue
		case strings.HasPrefix(line, "#"):
			p.What = strings.TrimSpace(p.What + " " + strings.TrimPrefix(line, "# "))
			continue
		case len(p.Edits) == 0 || file == "" || line != "" && !strings.ContainsRune(" -+", rune(line[0])):
			return nil, fmt.Errorf("line %d: %q is out of place", n+1, line)
		}
		e := &p.Edits[len(p.Edits)-1]
		kind, content := " ", ""
		if line != "" {
			kind, content = line[:1], line[1:]
		}
		if kind != "+" {
			e.Old += content + "\n"
		}
		if kind != "-" {
			e.New += content + "\n"
		}
	}
	for _, e := range p.Edits {
		if strings.TrimSpace(e.Old) == "" || e.Old == e.New {
			return nil, fmt.Errorf("an edit of %s without context or change", e.File)
		}
	}
	if p.What == "" || len(p.Edits) == 0 {
		return nil, fmt.Errorf("no description, or no change")
	}
	return p, nil
}

// Apply returns the changed files by name.
func (p *Patch) Apply(read func(file string) (string, error)) (map[string]string, error) {
	changed := map[string]string{}
	for _, e := range p.Edits {
		text, ok := changed[e.File]
		if !ok {
			var err error
			if text, err = read(e.File); err != nil {
				return nil, err
			}
		}
		at := Places(text, e.Old)
		if len(at) != 1 {
			return nil, fmt.Errorf("%s contains these lines %d times, want once:\n%s", e.File, len(at), e.Old)
		}
		changed[e.File] = text[:at[0]] + e.New + text[at[0]+len(e.Old):]
	}
	return changed, nil
}

// Places returns the offsets in text at which the lines of piece are found.
func Places(text, piece string) (at []int) {
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
