package interop

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bellwether/interop/target"
)

// buildTimeout bounds one call of the go command, which may have to build everything.
const buildTimeout = 20 * time.Minute

// TestModuleTakesAnotherPath shows that everything builds after make module has renamed the
// module, and that renaming it back restores every file.
func TestModuleTakesAnotherPath(t *testing.T) {
	t.Parallel()
	const elsewhere = "example.org/flock/bellwether"
	copied, before := copySources(t)
	run := func(dir string, args ...string) string {
		t.Helper()
		return target.Script{Args: args, Dir: dir, Timeout: buildTimeout}.Pass(t).Stdout
	}
	old := strings.TrimSpace(run(copied, "go", "list", "-m"))
	run(copied, "git", "init", "-q")
	run(copied, "make", "module", "PATH="+elsewhere)
	if got := strings.TrimSpace(run(copied, "go", "list", "-m")); got != elsewhere {
		t.Fatalf("the module is %s, want %s", got, elsewhere)
	}
	run(copied, "go", "build", "./...")
	run(filepath.Join(copied, "interop"), "go", "vet", "./target")
	run(copied, "make", "module", "PATH="+old)
	for name, want := range before {
		got, err := os.ReadFile(filepath.Join(copied, name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s is not what it was", name)
		}
	}
}

// copySources copies the repository's files. It returns the folder of the copy and the content
// of each file.
func copySources(t *testing.T) (dir string, content map[string]string) {
	t.Helper()
	root, err := target.Root()
	if err != nil {
		t.Fatal(err)
	}
	list := target.Script{Args: []string{"git", "ls-files", "-co", "--exclude-standard"}, Dir: root}.Pass(t)
	dir, content = t.TempDir(), map[string]string{}
	for name := range strings.Lines(list.Stdout) {
		name = strings.TrimSpace(name)
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			continue // git lists the file, but it was deleted in the work tree
		}
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			t.Fatal(err)
		}
		content[name] = string(text)
	}
	if len(content) == 0 {
		t.Fatalf("git lists no files in %s", root)
	}
	return dir, content
}
