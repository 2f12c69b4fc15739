package mutants

import (
	"path"
	"slices"
	"strings"
)

// area is a part of the program that is mutated, with the tests that judge it.
type area struct {
	dir   string   // a package, and those below it if below is set
	below bool     // the packages below dir belong to the area
	files []string // the files to which operators are applied; nil: all
	// users are the packages whose tests are run too if those of the package itself do not
	// kill a mutant.
	users []string
	// simulated says that the simulator runs this code.
	simulated bool
}

// areas are the core, the glue around it, and the session code of the client.
var areas = []area{
	{dir: "internal/election", users: []string{"internal/replica"}, simulated: true},
	{dir: "internal/ensemble", files: []string{}, users: []string{"internal/zab"}, simulated: true}, // semantic mutants only
	{dir: "internal/zab", users: []string{"internal/replica"}, simulated: true},
	{dir: "internal/replica", users: []string{"internal/driver"}, simulated: true},
	{dir: "internal/tree", users: []string{"internal/replica"}, simulated: true},
	{dir: "internal/store", simulated: true},
	{dir: "internal/driver", users: []string{"internal/server"}, simulated: true},
	{dir: "internal/claim", below: true, users: []string{"internal/claim/modeltest"}, simulated: true},
	{dir: "internal/server", files: []string{
		"disk.go", "inbox.go", "journal.go", "logwriter.go", "loop.go", "member.go", "memberloop.go", "output.go", "restore.go", "snapshotter.go"}},
	{dir: "zk", files: []string{
		"call.go", "client.go", "dial.go", "lease.go", "link.go", "run.go", "since.go", "state.go", "watch.go", "watches.go"}},
}

// notMutated are packages and files of the areas that only tests use.
var notMutated = []string{"internal/claim/claimtest", "internal/claim/modeltest", "internal/store/mem*.go"}

// areaOf returns the area of a package; nil if it has none.
func areaOf(dir string) *area {
	for i, a := range areas {
		if dir == a.dir || a.below && strings.HasPrefix(dir, a.dir+"/") {
			return &areas[i]
		}
	}
	return nil
}

// Mutated reports whether the operators are applied to a file.
func Mutated(file string) bool {
	dir, name := path.Split(file)
	dir = path.Clean(dir)
	a := areaOf(dir)
	switch {
	case a == nil, !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"):
		return false
	case a.files != nil:
		return slices.Contains(a.files, name)
	}
	return !slices.ContainsFunc(notMutated, func(not string) bool {
		match, _ := path.Match(not, file)
		return match || not == dir
	})
}

// Folders returns the folders of the areas. The packages below them belong to the area if
// below is true.
func Folders(yield func(dir string, below bool) bool) {
	for _, a := range areas {
		if !yield(a.dir, a.below) {
			return
		}
	}
}

// TestsOf returns the packages whose tests judge a mutant of a package, the package itself
// first.
func TestsOf(dir string) []string {
	tests := []string{dir}
	if a := areaOf(dir); a != nil {
		tests = append(tests, a.users...)
	}
	return tests
}

// Simulated reports whether the simulator runs the code of a package.
func Simulated(dir string) bool {
	a := areaOf(dir)
	return a != nil && a.simulated
}
