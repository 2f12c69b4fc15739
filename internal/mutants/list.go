package mutants

import (
	"fmt"
	"regexp"
	"strings"

	"bellwether/internal/patch"
)

// entryMark begins the line that names a mutant.
const entryMark = "== "

var validName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// listHelp says what a list of semantic mutants may contain.
const listHelp = `a list consists of entries: "== name", lines "# what it breaks", and then "--- file", "@@" and lines that begin with a blank, - or +`

// ReadList parses a list of semantic mutants; see the package comment. file is its name, for
// errors.
func ReadList(file, text string) ([]Mutant, error) {
	var out []Mutant
	known := map[string]bool{}
	for _, e := range entries(text) {
		at := fmt.Sprintf("%s:%d: ", file, e.line)
		switch {
		case e.before && strings.TrimSpace(e.text) == "":
			continue
		case e.before:
			return nil, fmt.Errorf("%sthis text is before the first entry: %s", at, listHelp)
		case !validName.MatchString(e.name):
			return nil, fmt.Errorf("%s%q is no name: a name consists of a-z and 0-9, with - in between", at, e.name)
		case known[e.name]:
			return nil, fmt.Errorf("%sthere are two mutants with the name %s", at, e.name)
		}
		known[e.name] = true
		p, err := patch.Read(e.text)
		if err != nil {
			return nil, fmt.Errorf("%sthe mutant %s cannot be read: %w (lines are counted from its name); %s", at, e.name, err, listHelp)
		}
		out = append(out, Mutant{Name: e.name, What: p.What, semantic: p})
	}
	return out, nil
}

// entry is one entry of a list.
type entry struct {
	before bool // it is what comes before the first name
	line   int  // of the name
	name   string
	text   string // what follows the name
}

// entries splits a list.
func entries(text string) []entry {
	all := []entry{{before: true, line: 1}}
	n := 0
	for line := range strings.Lines(text) {
		n++
		if name, ok := strings.CutPrefix(line, entryMark); ok {
			all = append(all, entry{line: n, name: strings.TrimSpace(name)})
			continue
		}
		all[len(all)-1].text += line
	}
	return all
}

// WriteList returns the text of a list, as ReadList parses it.
func WriteList(list []Mutant) string {
	var b strings.Builder
	for _, m := range list {
		fmt.Fprintf(&b, "%s%s\n%s", entryMark, m.Name, m.semantic)
	}
	return b.String()
}

// WithPatch returns a semantic mutant with another patch.
func (m Mutant) WithPatch(p *patch.Patch) Mutant {
	m.semantic = p
	return m
}

// ReadReasons parses a list of mutants with a reason for each: lines of a name, a blank and
// the reason. Empty lines and lines that begin with # are ignored.
func ReadReasons(file, text string) (map[string]string, error) {
	reasons := map[string]string{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, why, _ := strings.Cut(line, " ")
		if why = strings.TrimSpace(why); why == "" {
			return nil, fmt.Errorf("%s:%d: %s has no reason: a line is the name of a mutant, a blank and the reason", file, n, name)
		}
		if reasons[name] != "" {
			return nil, fmt.Errorf("%s:%d: %s is listed twice", file, n, name)
		}
		reasons[name] = why
	}
	return reasons, nil
}
