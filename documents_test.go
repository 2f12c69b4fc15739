package bellwether_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	testFunc  = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w*)\(`)
	testName  = regexp.MustCompile(`\bTest[A-Z0-9]\w*…?`)
	goTest    = regexp.MustCompile("(?m)(cd interop && )?\\b(?:[A-Z_]+=\\S+ )?go test ([^`#;\n]*)")
	goCode    = regexp.MustCompile("(?s)```go\n.*?```")
	mdLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	mdHeading = regexp.MustCompile(`(?m)^#+ (.+)$`)
)

// document is a page for people, as it is read: \_ stands for _ in it, and \| for |.
type document struct{ name, text string }

func documents(t *testing.T) []document {
	t.Helper()
	var all []document
	unescape := strings.NewReplacer(`\_`, "_", `\|`, "|")
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, document{filepath.ToSlash(name), unescape.Replace(string(text))})
		}
	}
	if len(all) < 10 {
		t.Fatalf("only %d pages were found", len(all))
	}
	return all
}

// tests finds the tests of every folder, those of the other modules included,
// and below "testdata" of a folder its scripts and transcripts.
func tests(t *testing.T) (functions, scripts map[string][]string) {
	t.Helper()
	functions, scripts = map[string][]string{}, map[string][]string{}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name = filepath.ToSlash(name)
		if dir, file, ok := strings.Cut(name, "/testdata/"); ok {
			scripts[dir] = append(scripts[dir], strings.TrimSuffix(path.Base(file), path.Ext(file)))
		}
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(name)
		for _, m := range testFunc.FindAllSubmatch(text, -1) {
			functions[path.Dir(name)] = append(functions[path.Dir(name)], string(m[1]))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return functions, scripts
}

// TestDocumentsNameTests holds the pages to the tests that they name: each is
// there, and where a name ends with … at least one begins with it.
func TestDocumentsNameTests(t *testing.T) {
	functions, _ := tests(t)
	var all []string
	for _, names := range functions {
		all = append(all, names...)
	}
	for _, d := range documents(t) {
		text := goTest.ReplaceAllString(goCode.ReplaceAllString(d.text, ""), "") // patterns, and tests of the reader's own
		for _, name := range testName.FindAllString(text, -1) {
			prefix, open := strings.CutSuffix(name, "…")
			if !slices.ContainsFunc(all, func(s string) bool { return s == name || open && strings.HasPrefix(s, prefix) }) {
				t.Errorf("%s: there is no %s", d.name, name)
			}
		}
	}
}

// TestDocumentsRunTests takes each "go test" of the pages apart: its packages are
// there, each word between the bars of -run finds a test in one of them, and
// what stands behind a slash finds a script or a transcript where it is one's.
func TestDocumentsRunTests(t *testing.T) {
	functions, scripts := tests(t)
	commands := 0
	for _, d := range documents(t) {
		interop := false // since a line that says so, to the end of its block
		for line := range strings.SplitSeq(d.text, "\n") {
			interop = strings.TrimSpace(line) == "cd interop" || interop && line != ""
			for _, m := range goTest.FindAllStringSubmatch(line, -1) {
				commands++
				dirs, run := command(m[2], interop || m[1] != "")
				for _, dir := range dirs {
					if len(functions[dir]) == 0 {
						t.Errorf("%s: go test %s: no tests in %s", d.name, m[2], dir)
					}
				}
				for _, word := range alternatives(run) {
					test, sub, _ := strings.Cut(word, "/")
					if len(dirs) > 0 && !found(functions, dirs, test) {
						t.Errorf("%s: go test %s: no test matches %s", d.name, m[2], test)
					}
					if (test == "Transcripts" || test == "TestScripts") && !found(scripts, dirs, sub) {
						t.Errorf("%s: go test %s: testdata has no %s", d.name, m[2], sub)
					}
				}
			}
		}
	}
	if commands < 50 {
		t.Errorf("only %d commands were found", commands)
	}
}

// command is which folders the arguments of "go test" name, and the pattern of
// what is run there.
func command(arguments string, interop bool) (dirs []string, run string) {
	words := strings.Fields(arguments)
	for i, word := range words {
		if i > 0 && (words[i-1] == "-run" || words[i-1] == "-fuzz") {
			run = strings.Trim(word, "'")
		} else if strings.HasPrefix(word, ".") && !strings.Contains(word, "...") {
			dir := strings.TrimRight(word, ".,)")
			if interop {
				dir = path.Join("interop", dir)
			}
			dirs = append(dirs, path.Clean(dir))
		}
	}
	return dirs, run
}

// alternatives splits a pattern at the bars that stand in no parentheses, and
// those behind a slash into patterns of their own.
func alternatives(pattern string) []string {
	var all []string
	depth, begin := 0, 0
	for i, c := range pattern + "|" {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == '|' && depth == 0:
			all = append(all, pattern[begin:i])
			begin = i + 1
		}
	}
	var flat []string
	for _, word := range all {
		test, group, ok := strings.Cut(word, "/(")
		if !ok {
			flat = append(flat, word)
			continue
		}
		for sub := range strings.SplitSeq(strings.TrimSuffix(group, ")"), "|") {
			flat = append(flat, test+"/"+sub)
		}
	}
	return flat
}

func found(names map[string][]string, dirs []string, pattern string) bool {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(dirs, func(dir string) bool { return slices.ContainsFunc(names[dir], re.MatchString) })
}

// TestDocumentsShowThePlan holds the table of docs/architecture.md to that of layout_test.go.
func TestDocumentsShowThePlan(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| ([0-9]) \\| `([a-z/-]+)`( \\(pure\\)| \\(public\\))? \\|")
	text, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		shown[m[2]] = m[1] + m[3]
	}
	for name, r := range plan {
		want := strconv.Itoa(r.layer)
		switch {
		case r.pure:
			want += " (pure)"
		case !strings.Contains(name, "/"):
			want += " (public)"
		}
		if shown[name] != want {
			t.Errorf("%s is shown as %q, want %q", name, shown[name], want)
		}
		delete(shown, name)
	}
	for name := range shown {
		t.Errorf("%s is not in the table of layout_test.go", name)
	}
}

// TestDocumentsLink fails for a link within the pages that leads nowhere.
func TestDocumentsLink(t *testing.T) {
	anchors := map[string][]string{}
	pages := documents(t)
	for _, d := range pages {
		for _, m := range mdHeading.FindAllStringSubmatch(d.text, -1) {
			anchors[d.name] = append(anchors[d.name], anchor(m[1]))
		}
	}
	for _, d := range pages {
		for _, m := range mdLink.FindAllStringSubmatch(d.text, -1) {
			to, section, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, "://") {
				continue
			}
			name := d.name
			if to != "" {
				name = path.Join(path.Dir(d.name), to)
			}
			if _, err := os.Stat(name); err != nil {
				t.Errorf("%s: (%s) leads nowhere", d.name, m[1])
			} else if section != "" && !slices.Contains(anchors[name], section) {
				t.Errorf("%s: %s has no section #%s", d.name, name, section)
			}
		}
	}
}

// anchor is what a heading is reached by.
func anchor(heading string) string {
	keep := func(c rune) rune {
		switch {
		case c == ' ':
			return '-'
		case c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z':
			return c
		}
		return -1
	}
	return strings.Map(keep, strings.ToLower(heading))
}
