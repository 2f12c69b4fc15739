package measure

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"bellwether/internal/mutants"
	"bellwether/internal/patch"
)

const (
	documentFile = "docs/testing.md"
	begin, end   = "<!-- mutants: go run ./cmd/bellwether-mutants --table -->\n", "<!-- end of mutants -->\n"
)

// Document returns docs/testing.md as it is and with the table of the present results.
func (r *Runner) Document() (is, want string, err error) {
	results, err := r.Known()
	if err != nil {
		return "", "", err
	}
	if is, err = r.Module.source(documentFile); err != nil {
		return "", "", err
	}
	before, rest, found := strings.Cut(is, begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", "", fmt.Errorf("%s does not have the lines %q and %q, between which the table belongs", documentFile, begin, end)
	}
	return is, before + begin + mutants.Table(r.Module.Mutants, r.Module.Equivalent, r.Module.Unseen, results) + end + after, nil
}

// WriteDocument writes the table of the present results into docs/testing.md.
func (r *Runner) WriteDocument() error {
	_, text, err := r.Document()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.Module.root, documentFile), []byte(text), 0o666)
}

// Carry brings forward the semantic mutants that do not apply any more, from a commit at
// which they applied. It returns the names of those that must be rewritten by hand.
func (m *Module) Carry(commit string) (byHand []string, err error) {
	carrier, err := patch.NewCarrier(m.root, commit)
	if err != nil {
		return nil, err
	}
	lists, err := m.Lists()
	if err != nil {
		return nil, err
	}
	for file, list := range lists {
		changed := false
		for i, x := range list {
			if _, err := x.Apply(m.source); err == nil {
				continue
			}
			p, err := carrier.Carry(x.Patch())
			if err != nil {
				byHand = append(byHand, fmt.Sprintf("%s of %s: %v", x.Name, file, err))
				continue
			}
			list[i], changed = x.WithPatch(p), true
		}
		if changed {
			if err := os.WriteFile(filepath.Join(m.root, file), []byte(mutants.WriteList(list)), 0o666); err != nil {
				return nil, err
			}
		}
	}
	return byHand, nil
}
