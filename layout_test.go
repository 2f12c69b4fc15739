// Package bellwether_test holds the rules of the house that a compiler does
// not check. The plan of the rooms stands here; docs/architecture.md draws it.
package bellwether_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// room is a package of the plan: its floor, which other rooms it may import
// (all of them on lower floors), which libraries, and whether it is pure.
type room struct {
	floor     int
	rooms     string // space-separated
	libraries string // path prefixes besides the standard library
	pure      bool
}

const (
	klauspost  = "github.com/klauspost/compress"
	prometheus = "github.com/prometheus/"
	cobra      = "github.com/spf13/"
	readline   = "github.com/reeflective/readline"
	hdr        = "github.com/HdrHistogram/"
	porcupine  = "github.com/anishathalye/porcupine"
	sys        = "golang.org/x/sys"
)

var plan = map[string]room{
	"wire":                {floor: 1},
	"internal/ensemble":   {floor: 1, pure: true},
	"internal/transcript": {floor: 1}, // for tests
	"internal/portblock":  {floor: 1},
	"internal/bugs":       {floor: 1}, // tests alone: known bugs, brought back
	"internal/metrics":    {floor: 1, libraries: prometheus},
	"internal/guard":      {floor: 1, libraries: sys},
	"internal/notice":     {floor: 1}, // what clients and servers do wrong is logged in one way by peer and server
	"internal/inorder":    {floor: 1},
	"internal/local":      {floor: 2, rooms: "internal/portblock"},
	"internal/config":     {floor: 2, rooms: "internal/ensemble"},
	"internal/election":   {floor: 2, rooms: "wire internal/ensemble", pure: true},
	"internal/zab":        {floor: 2, rooms: "wire internal/ensemble", pure: true},
	"internal/tree":       {floor: 2, rooms: "wire", pure: true},
	"internal/claim":      {floor: 2, rooms: "wire", pure: true},
	"internal/store":      {floor: 2, rooms: "wire internal/metrics", libraries: klauspost + " " + sys},
	"internal/peer":       {floor: 2, rooms: "wire internal/ensemble internal/metrics internal/notice", libraries: sys},
	"zk":                  {floor: 2, rooms: "internal/inorder wire"},
	// A replica's events and duties carry those of its cores as they are, so its
	// drivers (server, sim) know the cores' event types, and admin their records.
	"internal/replica": {floor: 3, rooms: "internal/election internal/zab internal/tree internal/ensemble wire", pure: true},
	"internal/survey":  {floor: 3, rooms: "wire internal/claim", pure: true},
	"recipe":           {floor: 3, rooms: "zk internal/claim internal/inorder wire"},
	"internal/bench":   {floor: 4, rooms: "recipe zk internal/metrics", libraries: hdr},
	"internal/server": {floor: 4, rooms: "internal/replica internal/election internal/zab internal/peer internal/store internal/tree internal/ensemble " +
		"internal/config wire internal/metrics internal/notice", libraries: sys},
	"internal/sim": {floor: 4, rooms: "internal/replica internal/claim internal/store internal/tree internal/zab internal/election " +
		"internal/ensemble wire", libraries: porcupine},
	"internal/admin": {floor: 5, rooms: "internal/election internal/server internal/claim internal/metrics wire"},
	"internal/shell": {floor: 6, rooms: "zk recipe internal/claim internal/survey internal/bench internal/guard wire", libraries: cobra + " " + readline + " " + sys},
	"embed":          {floor: 6, rooms: "internal/admin internal/server internal/store internal/config internal/ensemble zk wire"},
	// The program that users run does not contain the simulator or its checkers.
	"cmd/bellwether":     {floor: 7, rooms: "embed recipe zk wire internal/admin internal/config internal/ensemble internal/local internal/server internal/shell internal/store internal/guard", libraries: cobra + " " + sys},
	"cmd/bellwether-sim": {floor: 7, rooms: "internal/shell internal/sim", libraries: cobra},
}

// sourceFile is one Go file of a room.
type sourceFile struct {
	name string
	test bool
	ast  *ast.File
	set  *token.FileSet
}

// modulePath reads the module's name, which its owner may change.
func modulePath(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimPrefix(line, "module ")
}

// sources parses every Go file of the module, by folder. Folders with a
// go.mod of their own are other modules.
func sources(t *testing.T) map[string][]sourceFile {
	t.Helper()
	found := map[string][]sourceFile{}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && (isModule(name) || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(name))
		found[dir] = append(found[dir], sourceFile{name, strings.HasSuffix(name, "_test.go"), f, set})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// roomOf is the room a folder belongs to: itself, or the nearest one above it.
func roomOf(dir string) string {
	for d := dir; d != "."; d = path.Dir(d) {
		if _, ok := plan[d]; ok {
			return d
		}
	}
	return ""
}

// TestPlanIsOrdered shows that every import the plan allows leads downwards.
func TestPlanIsOrdered(t *testing.T) {
	for name, r := range plan {
		for _, to := range strings.Fields(r.rooms) {
			if other, ok := plan[to]; !ok || other.floor >= r.floor {
				t.Errorf("%s (floor %d) may import %s: not a room on a lower floor", name, r.floor, to)
			}
		}
	}
}

// TestImportsFollowThePlan fails for each import that leaves the plan. Tests
// may import more libraries, but no room on their own floor or above.
func TestImportsFollowThePlan(t *testing.T) {
	module := modulePath(t)
	files := sources(t)
	for _, dir := range slices.Sorted(maps.Keys(files)) {
		if dir == "." {
			continue
		}
		name := roomOf(dir)
		if name == "" {
			t.Errorf("%s is in no room of the plan", dir)
			continue
		}
		for _, f := range files[dir] {
			for _, spec := range f.ast.Imports {
				to, _ := strconv.Unquote(spec.Path.Value)
				if why := refuse(name, module, to, f.test); why != "" {
					t.Errorf("%s imports %s: %s", f.name, to, why)
				}
			}
		}
	}
}

// refuse says why a file of the room may not import a path; empty if it may.
func refuse(name, module, to string, test bool) string {
	r := plan[name]
	if rest, ok := strings.CutPrefix(to, module+"/"); ok {
		target := roomOf(rest)
		allowed := target == name || slices.Contains(strings.Fields(r.rooms), target)
		switch {
		case target == "":
			return "not a room of the plan"
		case allowed || test && plan[target].floor < r.floor:
			return ""
		}
		return "the plan does not allow it"
	}
	if first, _, _ := strings.Cut(to, "/"); !strings.Contains(first, ".") || test {
		return ""
	}
	for _, prefix := range strings.Fields(r.libraries) {
		if strings.HasPrefix(to, prefix) {
			return ""
		}
	}
	return "the library is not this room's"
}

// impure are the packages a pure room does not mention. sync is allowed in
// the tree alone.
var impure = []string{"net", "os", "log", "log/slog", "math/rand", "math/rand/v2", "crypto/rand", "io/fs", "sync", "sync/atomic", "context", "runtime", "unsafe"}

// TestPureRoomsArePure fails where a pure room touches clock, socket, file,
// lock, goroutine or channel. Its tests may.
func TestPureRoomsArePure(t *testing.T) {
	for dir, files := range sources(t) {
		if name := roomOf(dir); name == "" || !plan[name].pure {
			continue
		}
		for _, f := range files {
			if !f.test {
				checkPure(t, dir, f)
			}
		}
	}
}

func checkPure(t *testing.T, dir string, f sourceFile) {
	for _, spec := range f.ast.Imports {
		to, _ := strconv.Unquote(spec.Path.Value)
		locks := dir == "internal/tree" && (to == "sync" || to == "sync/atomic")
		if slices.Contains(impure, to) && !locks {
			t.Errorf("%s imports %s: a pure room does not", f.name, to)
		}
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		what := ""
		switch n := n.(type) {
		case *ast.GoStmt:
			what = "a goroutine"
		case *ast.ChanType:
			what = "a channel"
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && clockNames[n.Sel.Name] {
				what = "time." + n.Sel.Name
			}
		}
		if what != "" {
			t.Errorf("%s: %s in a pure room", f.set.Position(n.Pos()), what)
		}
		return true
	})
}

// clockNames are what the time package offers to read a clock or wait for one.
var clockNames = map[string]bool{
	"Now": true, "Since": true, "Until": true, "Sleep": true, "After": true, "AfterFunc": true,
	"Tick": true, "NewTicker": true, "NewTimer": true,
}

// TestThePlanRefuses shows that the rules above can fail.
func TestThePlanRefuses(t *testing.T) {
	for _, c := range []struct {
		room, to string
		test     bool
	}{
		{"wire", "m/zk", false},
		{"wire", "m/zk", true},
		{"zk", "m/internal/tree", false},
		{"zk", "github.com/spf13/cobra", false},
		{"internal/tree", "m/internal/store", false},
		{"internal/tree", "m/internal/nowhere", false},
		{"cmd/bellwether", "m/internal/sim", false},
	} {
		if refuse(c.room, "m", c.to, c.test) == "" {
			t.Errorf("%s may import %s", c.room, c.to)
		}
	}
	if why := refuse("internal/server", "m", "m/wire", false); why != "" {
		t.Errorf("internal/server may not import wire: %s", why)
	}
}
