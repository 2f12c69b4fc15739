package mutants

import (
	"fmt"
	"path"

	"bellwether/internal/patch"
)

// Set is one of the two sets of mutants.
type Set string

// The sets.
const (
	Semantic  Set = "semantic"  // written by hand
	Generated Set = "generated" // made by operators
)

// Mutant is the program with one fault. Exactly one of semantic and generated is set.
type Mutant struct {
	// Name is unique. That of a generated mutant consists of the file, the function, the
	// operator, and the number of the place among those of this operator in the function.
	Name string
	// What says what is changed or, for a semantic mutant, what that breaks.
	What string

	semantic  *patch.Patch
	generated *replacement
}

// replacement replaces a part of a file.
type replacement struct {
	file     string
	from     int // offset in the file
	old, new string
}

// Set returns the set to which the mutant belongs.
func (m *Mutant) Set() Set {
	if m.semantic != nil {
		return Semantic
	}
	return Generated
}

// File returns the file that the mutant changes, or the first one.
func (m *Mutant) File() string {
	if m.semantic != nil {
		return m.semantic.Edits[0].File
	}
	return m.generated.file
}

// Package returns the folder of the package that the mutant changes.
func (m *Mutant) Package() string { return path.Dir(m.File()) }

// Apply returns the changed files by name. read returns the present text of a file. If the
// text is not the one for which the mutant was made, Apply returns an error.
func (m *Mutant) Apply(read func(file string) (string, error)) (map[string]string, error) {
	if m.semantic != nil {
		return m.semantic.Apply(read)
	}
	g := m.generated
	text, err := read(g.file)
	if err != nil {
		return nil, err
	}
	end := g.from + len(g.old)
	if end > len(text) || text[g.from:end] != g.old {
		return nil, fmt.Errorf("%s has changed since the mutant was made: it does not have %q at offset %d", g.file, g.old, g.from)
	}
	return map[string]string{g.file: text[:g.from] + g.new + text[end:]}, nil
}

// Patch returns the patch of a semantic mutant; nil for a generated one.
func (m *Mutant) Patch() *patch.Patch { return m.semantic }
