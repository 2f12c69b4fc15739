package interop

import (
	"path/filepath"
	"strings"
	"testing"

	"bellwether/interop/target"
)

// debianPython is the interpreter for which Debian installs kazoo; another one in the PATH
// would not find it.
const debianPython = "/usr/bin/python3"

// TestKazoo runs kazoo's client and recipes, with one script of python/ each.
func TestKazoo(t *testing.T) {
	t.Parallel()
	target.File(t, debianPython, "python3-kazoo")
	target.File(t, "/usr/lib/python3/dist-packages/kazoo/client.py", "python3-kazoo")
	for _, script := range glob(t, "python/*.py") {
		name := strings.TrimSuffix(filepath.Base(script), ".py")
		if name == "common" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			eachShared(t, func(t *testing.T, s *target.Server) {
				way := target.NewProxy(t, s.Addr)
				target.Script{
					Args:     []string{debianPython, "-B", script, s.Addr, way.Addr, fresh("kazoo-" + name)},
					Commands: proxyCommands(way),
				}.Pass(t)
			})
		})
	}
}

// glob returns the files of a pattern and fails the test if there are none.
func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	return files
}
