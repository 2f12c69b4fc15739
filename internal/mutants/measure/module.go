package measure

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"bellwether/internal/mutants"
)

// The data of package mutants, relative to the module's folder.
const (
	testdata       = "internal/mutants/testdata/"
	listsDir       = testdata + "semantic"
	equivalentFile = testdata + "equivalent.txt"
	unseenFile     = testdata + "unseen.txt"
	sampleFile     = testdata + "sample.txt"
	// ResultsFile is the file of results.
	ResultsFile = testdata + "results.txt"
)

// Module is a copy of the program's source that is not changed.
type Module struct {
	root string // absolute
	// Mutants are all mutants: the semantic ones by list, then the generated ones by file.
	Mutants []mutants.Mutant
	// Equivalent holds the reason why a mutant behaves like the program, by its name.
	Equivalent map[string]string
	// Unseen holds the reason why no simulated run can show the fault of a mutant, by its name.
	Unseen map[string]string

	mu     sync.Mutex
	hashes map[string][]byte // of folders
}

// Open reads the lists and makes the mutants of the module in a folder.
func Open(root string) (*Module, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	m := &Module{root: root, hashes: map[string][]byte{}}
	for _, step := range []func() error{m.readLists, m.generate, m.unique, m.readReasons} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Path returns the path of a file of the module.
func (m *Module) Path(file string) string { return filepath.Join(m.root, file) }

// source returns the text of a file of the module.
func (m *Module) source(file string) (string, error) {
	b, err := os.ReadFile(filepath.Join(m.root, file))
	return string(b), err
}

// Lists returns the semantic mutants by the file that lists them.
func (m *Module) Lists() (map[string][]mutants.Mutant, error) {
	files, err := filepath.Glob(filepath.Join(m.root, listsDir, "*.txt"))
	if err != nil || len(files) == 0 {
		return nil, errors.Join(err, fmt.Errorf("there are no lists of mutants in %s", filepath.Join(m.root, listsDir)))
	}
	lists := map[string][]mutants.Mutant{}
	for _, file := range files {
		name := listsDir + "/" + filepath.Base(file)
		text, err := m.source(name)
		if err != nil {
			return nil, err
		}
		if lists[name], err = mutants.ReadList(name, text); err != nil {
			return nil, err
		}
	}
	return lists, nil
}

func (m *Module) readLists() error {
	lists, err := m.Lists()
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		m.Mutants = append(m.Mutants, lists[name]...)
	}
	return err
}

func (m *Module) generate() error {
	for dir, below := range mutants.Folders {
		files, err := m.files(dir, below)
		if err != nil {
			return err
		}
		for _, file := range files {
			if !mutants.Mutated(file) {
				continue
			}
			text, err := m.source(file)
			if err != nil {
				return err
			}
			made, err := mutants.Generate(file, text)
			if err != nil {
				return err
			}
			m.Mutants = append(m.Mutants, made...)
		}
	}
	return nil
}

// unique checks that each name belongs to one mutant.
func (m *Module) unique() error {
	known := map[string]bool{}
	for _, x := range m.Mutants {
		if known[x.Name] {
			return fmt.Errorf("%s: two mutants have the name %s", x.File(), x.Name)
		}
		known[x.Name] = true
	}
	return nil
}

// readReasons reads which mutants are equivalent, and of which the simulator can see nothing.
func (m *Module) readReasons() error {
	for file, to := range map[string]*map[string]string{equivalentFile: &m.Equivalent, unseenFile: &m.Unseen} {
		text, err := m.source(file)
		if err != nil {
			return err
		}
		if *to, err = mutants.ReadReasons(file, text); err != nil {
			return err
		}
		for name := range *to {
			if m.find(name) == nil {
				return fmt.Errorf("%s: there is no mutant %s: correct the name or remove the line", file, name)
			}
		}
	}
	return nil
}

// find returns the mutant with a name; nil if there is none.
func (m *Module) find(name string) *mutants.Mutant {
	i := slices.IndexFunc(m.Mutants, func(x mutants.Mutant) bool { return x.Name == name })
	if i < 0 {
		return nil
	}
	return &m.Mutants[i]
}

// files returns the files in a folder of the module and, if below is set, in those below
// it, sorted.
func (m *Module) files(dir string, below bool) ([]string, error) {
	var files []string
	err := filepath.WalkDir(filepath.Join(m.root, dir), func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(m.root, path)
		name = filepath.ToSlash(name)
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			files = append(files, name)
		case !below && name != dir:
			return fs.SkipDir
		}
		return nil
	})
	return files, err
}

// overlay writes the changed files to dir and returns the file for the option -overlay.
func (m *Module) overlay(dir string, changed map[string]string) (string, error) {
	replace := map[string]string{}
	for file, text := range changed {
		to := filepath.Join(dir, strings.ReplaceAll(file, "/", "-"))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(m.root, file)] = to
	}
	list := filepath.Join(dir, "overlay.json")
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	return list, os.WriteFile(list, b, 0o600)
}

// hash returns the hash of everything on which a result depends: the changed files and the
// folders.
func (m *Module) hash(changed map[string]string, folders ...folder) (string, error) {
	h := sha256.New()
	for _, file := range slices.Sorted(maps.Keys(changed)) {
		fmt.Fprintf(h, "%s %d\n%s", file, len(changed[file]), changed[file])
	}
	for _, f := range folders {
		sum, err := m.hashOf(f)
		if err != nil {
			return "", err
		}
		h.Write(sum)
	}
	return hex.EncodeToString(h.Sum(nil))[:12], nil
}

// folder names files of the module for a hash.
type folder struct {
	dir   string
	tests bool // with tests and their data
	below bool // with the folders below
}

// hashOf returns the hash of a folder's files.
func (m *Module) hashOf(f folder) ([]byte, error) {
	key := fmt.Sprint(f)
	m.mu.Lock()
	defer m.mu.Unlock()
	if sum := m.hashes[key]; sum != nil {
		return sum, nil
	}
	files, err := m.files(f.dir, f.below)
	if err == nil && f.tests && !f.below {
		var data []string
		if data, err = m.files(f.dir+"/testdata", true); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		files = append(files, data...)
	}
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	for _, file := range files {
		if !f.tests && (!strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go")) {
			continue
		}
		text, err := m.source(file)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(h, "%s %d\n%s", file, len(text), text)
	}
	m.hashes[key] = h.Sum(nil)
	return m.hashes[key], nil
}
