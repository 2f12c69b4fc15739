package instrument

import (
	"fmt"
	"os"
	"path"
	"strings"
	"testing"
)

// TestChange shows what is changed in a file, and that its lines stay the same.
func TestChange(t *testing.T) {
	more := fmt.Sprintf("; import interleaved %q", schedulePath)
	for _, c := range []struct{ what, text, want string }{
		{"a lock", "package p\nimport \"sync\"\nvar m sync.Mutex\n", fmt.Sprintf("package p\nimport sync %q\nvar m sync.Mutex\n", schedulePath)},
		{"an atomic", "package p\nimport \"sync/atomic\"\n", fmt.Sprintf("package p\nimport atomic %q\n", schedulePath)},
		{"a goroutine", "package p\nfunc f() {\n\tgo f()\n}\n", "package p" + more + "\nfunc f() {\n\tinterleaved.Go(\"f\", func() { f() })\n}\n"},
		{"a goroutine of a literal", "package p\nfunc f() {\n\tgo func() {\n\t}()\n}\n",
			"package p" + more + "\nfunc f() {\n\tinterleaved.Go(\"p.go:3\", func() { func() {\n\t}() })\n}\n"},
		{"a send", "package p\nfunc f(c chan int) { c <- 1 }\n", "package p" + more + "\nfunc f(c chan int) { interleaved.Point(\"channel\"); c <- 1 }\n"},
		{"a receive", "package p\nfunc f(c chan int) int { return <-c }\n", "package p" + more + "\nfunc f(c chan int) int { interleaved.Point(\"channel\"); return <-c }\n"},
		{"a select with one case", "package p\nfunc f(c chan int) {\n\tselect {\n\tcase <-c:\n\t\tclose(c)\n\tdefault:\n\t}\n}\n",
			"package p" + more + "\nfunc f(c chan int) {\n\tinterleaved.Point(\"channel\"); select {\n\tcase <-c:\n\t\tinterleaved.Close(c)\n\tdefault:\n\t}\n}\n"},
		{"a select with two cases", "package p\nfunc f(s *S) {\n\tselect {\n\tcase v := <-s.c:\n\t\tg(v)\n\tcase <-d:\n\t}\n}\n",
			"package p" + more + "\nfunc f(s *S) {\n\tinterleaved.Select(s.c, d); select {\n\tcase v := <-interleaved.Only(0, s.c):\n\t\tg(v)\n\tcase <-interleaved.Only(1, d):\n\t}\n}\n"},
		{"a select with a call", "package p\nfunc f() {\n\tselect {\n\tcase <-g():\n\tcase <-d:\n\t}\n}\n",
			"package p" + more + "\nfunc f() {\n\tinterleaved.Point(\"channel\"); select {\n\tcase <-g():\n\tcase <-d:\n\t}\n}\n"},
		{"nothing", "package p\nfunc f(c chan int) int { return len(c) }\n", "package p\nfunc f(c chan int) int { return len(c) }\n"},
	} {
		got, err := change("p.go", c.text)
		if err != nil || got != c.want {
			t.Errorf("%s:\n%s\n%v, want\n%s", c.what, got, err, c.want)
		}
		if strings.Count(got, "\n") != strings.Count(c.text, "\n") {
			t.Errorf("%s: the lines have moved", c.what)
		}
	}
}

// TestFiles shows that every file of the packages is changed, so that no lock and no
// goroutine of theirs is left to the runtime.
func TestFiles(t *testing.T) {
	const root = "../../.."
	list := func(folder string) (files []string, err error) {
		entries, err := os.ReadDir(path.Join(root, folder))
		for _, e := range entries {
			files = append(files, path.Join(folder, e.Name()))
		}
		return files, err
	}
	read := func(file string) (string, error) {
		b, err := os.ReadFile(path.Join(root, file))
		return string(b), err
	}
	changed, err := Files(list, read)
	if err != nil {
		t.Fatal(err)
	}
	locks := 0
	for file, text := range changed {
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if line == `"sync"` || line == `import "sync"` || strings.HasPrefix(line, "go ") {
				t.Errorf("%s: %s", file, line)
			}
		}
		locks += strings.Count(text, "sync.Mutex")
	}
	if locks < 20 || !strings.Contains(changed["internal/interleave/schedule/instrumented.go"], "Instrumented = true") {
		t.Errorf("%d locks in %d files", locks, len(changed))
	}
}
