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

// document is a page without Markdown's escapes: \_ is replaced by _, and \| by |.
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

// tests returns the test functions of every folder, of all modules, and the names of the
// scripts and transcripts in the testdata of every folder.
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

// TestDocumentsNameTests fails for each test that a page names and that does not exist. If a name on a page ends
// with …, at least one test's name must begin with it.
func TestDocumentsNameTests(t *testing.T) {
	functions, _ := tests(t)
	var all []string
	for _, names := range functions {
		all = append(all, names...)
	}
	for _, d := range documents(t) {
		text := goTest.ReplaceAllString(goCode.ReplaceAllString(d.text, ""), "") // a command has patterns, not names, and a block of Go code can contain a test of the reader's own
		for _, name := range testName.FindAllString(text, -1) {
			prefix, open := strings.CutSuffix(name, "…")
			if !slices.ContainsFunc(all, func(s string) bool { return s == name || open && strings.HasPrefix(s, prefix) }) {
				t.Errorf("%s: there is no %s", d.name, name)
			}
		}
	}
}

// TestDocumentsRunTests checks each "go test" command in the pages: its packages exist,
// each alternative of -run matches a test in one of them, and a subtest of the transcripts
// or scripts matches a file in testdata.
func TestDocumentsRunTests(t *testing.T) {
	functions, scripts := tests(t)
	commands := 0
	for _, d := range documents(t) {
		interop := false // set by a line "cd interop", until the end of the block
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

// command returns the folders that a "go test" command names, and its pattern of tests.
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

// alternatives splits a pattern at the bars outside of parentheses. It splits a group of subtests after a slash
// into one pattern for each subtest.
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

// TestArchitectureShowsTheTable fails if docs/architecture.md differs from the table of packages in
// layout_test.go.
func TestArchitectureShowsTheTable(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| ([0-9]+) \\| `([a-z/-]+)`( \\(pure\\)| \\(public\\))? \\|")
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
		case !strings.HasPrefix(name, "internal/") && !strings.HasPrefix(name, "cmd/"):
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

// TestDocumentsLink fails for each link within the pages whose target does not exist.
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
				t.Errorf("%s: the target of the link (%s) does not exist", d.name, m[1])
			} else if section != "" && !slices.Contains(anchors[name], section) {
				t.Errorf("%s: %s has no section #%s", d.name, name, section)
			}
		}
	}
}

// anchor returns the anchor of a heading.
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
