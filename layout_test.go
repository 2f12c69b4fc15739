// Package bellwether_test holds the rules of this project that a compiler does not
// check. The table of packages and layers is here; docs/architecture.md draws it.
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

// packageRule says what one package may import: packages of this module, all of them on lower layers, and
// libraries. A pure package uses no socket, file, clock, goroutine or lock.
type packageRule struct {
	layer     int
	imports   string // packages of the module, separated by spaces
	tests     string // packages that only the tests of this package may import, on any layer
	libraries string // import paths, or beginnings of import paths, outside the standard library
	pure      bool
}

const (
	klauspost  = "github.com/klauspost/compress"
	prometheus = "github.com/prometheus/"
	chartsLib  = "github.com/go-analyze/charts"
	cobra      = "github.com/spf13/"
	readline   = "github.com/reeflective/readline"
	hdr        = "github.com/HdrHistogram/"
	porcupine  = "github.com/anishathalye/porcupine"
	sys        = "golang.org/x/sys"
	gokrb5     = "github.com/jcmturner/gokrb5/v8/"
	fsnotify   = "github.com/fsnotify/fsnotify"
	ocsp       = "golang.org/x/crypto/ocsp"
)

// families are the packages with the state machines of the recipes.
const families = "internal/claim/barrier internal/claim/cache internal/claim/commit internal/claim/lines " +
	"internal/claim/queues internal/claim/registry internal/claim/share internal/claim/value"

// plan is the table of packages. Each package of the module has a row, or is in a folder below that
// of a package that has one.
var plan = map[string]packageRule{
	"wire":                {layer: 1, tests: "internal/wiretest internal/record internal/ensemble internal/sasl"},
	"internal/ensemble":   {layer: 1, pure: true},
	"internal/transcript": {layer: 1}, // only tests import it
	"internal/portblock":  {layer: 1},
	"internal/patch":      {layer: 1},                                          // changes of the program as text, for the tests of the tests
	"internal/bugs":       {layer: 2, tests: "internal/interleave/instrument"}, // only tests; it brings known bugs back
	"internal/member":     {layer: 2, imports: "internal/ensemble", pure: true},
	"internal/metrics":    {layer: 1, libraries: prometheus},
	"internal/authority":  {layer: 1},
	"internal/guard":      {layer: 1, libraries: sys},
	"internal/notice":     {layer: 1}, // peer and server log the faults of clients and servers in the same way
	"internal/inorder":    {layer: 1},
	"internal/terminal":   {layer: 1, libraries: readline + " " + sys},
	"internal/fifo":       {layer: 1, pure: true},
	"internal/fourletter": {layer: 1},
	"internal/quota":      {layer: 1, pure: true},
	"internal/leasequery": {layer: 1, pure: true},
	"internal/rate":       {layer: 1, pure: true},
	"internal/sasl":       {layer: 1}, // not pure because it makes nonces
	"internal/secure":     {layer: 1, libraries: fsnotify + " " + ocsp},
	"internal/peerwire":   {layer: 2, imports: "wire internal/ensemble", tests: "internal/wiretest internal/record", pure: true},
	"internal/record":     {layer: 2, imports: "wire internal/ensemble", tests: "internal/wiretest", pure: true},
	"internal/wiretest":   {layer: 3, imports: "wire internal/record"}, // only tests import it
	"internal/audit":      {layer: 2, imports: "wire"},
	"internal/shadow":     {layer: 2, imports: "wire", pure: true},
	"internal/scrape":     {layer: 2, libraries: prometheus},
	"internal/local":      {layer: 2, imports: "internal/portblock"},
	"internal/config":     {layer: 3, imports: "internal/ensemble internal/secure internal/sasl internal/sasl/jaas"},
	"internal/election":   {layer: 3, imports: "internal/peerwire wire internal/ensemble", pure: true},
	"internal/zab":        {layer: 3, imports: "internal/peerwire internal/record wire internal/ensemble internal/fifo", pure: true},
	"internal/tree":       {layer: 3, imports: "internal/record wire internal/fifo internal/quota", pure: true},
	"internal/claim":      {layer: 2, imports: "wire", pure: true},
	"internal/store":      {layer: 3, imports: "internal/record wire", libraries: klauspost + " " + sys},
	"internal/peer":       {layer: 3, imports: "internal/peerwire wire internal/ensemble internal/metrics internal/notice", libraries: sys},
	"zk":                  {layer: 2, imports: "internal/inorder internal/leasequery internal/sasl wire"},
	// The events and duties of a replica contain those of its cores unchanged. So server and sim, which drive a
	// replica, import the event types of the cores, and admin imports their records.
	"internal/replica": {layer: 4, imports: "internal/leasequery internal/peerwire internal/record internal/election internal/zab internal/tree internal/ensemble internal/fifo wire", pure: true},
	// The code for driving a replica that server and sim share, so that the simulator tests what the server
	// runs.
	"internal/driver": {layer: 5, imports: "internal/replica internal/zab internal/tree internal/record internal/ensemble wire", pure: true},
	// Logging in by SASL. zk uses the layer below, servers use these.
	"zk/kerberos":              {layer: 3, imports: "zk internal/sasl/kerberos"}, // not in zk, which needs no library
	"internal/sasl/jaas":       {layer: 2, imports: "internal/sasl", pure: true},
	"internal/sasl/kerberos":   {layer: 2, imports: "internal/sasl", libraries: gokrb5},
	"internal/sasl/quorumauth": {layer: 3, imports: "internal/sasl internal/peerwire wire"},
	"internal/shadow/relay":    {layer: 3, imports: "internal/fourletter internal/notice internal/secure internal/shadow wire", tests: "internal/authority"}, // the sockets of shadow
	// The state machines of the recipes. One package imports another one only if it is built on that one.
	"internal/claim/claimtest": {layer: 3, imports: "wire internal/claim internal/transcript"}, // only tests import it
	"internal/claim/barrier":   {layer: 4, imports: "wire internal/claim", pure: true},
	"internal/claim/cache":     {layer: 4, imports: "wire internal/claim", pure: true},
	"internal/claim/commit":    {layer: 4, imports: "wire internal/claim", pure: true},
	"internal/claim/lines":     {layer: 4, imports: "wire internal/claim", tests: "internal/claim/commit", pure: true},
	"internal/claim/registry":  {layer: 4, imports: "wire internal/claim", pure: true},
	"internal/claim/value":     {layer: 4, imports: "wire internal/claim", pure: true},
	"internal/claim/queues":    {layer: 5, imports: "wire internal/claim internal/claim/lines", pure: true},
	"internal/claim/share":     {layer: 5, imports: "wire internal/claim internal/claim/cache", pure: true},
	"internal/claim/modeltest": {layer: 6}, // only tests: models that several of these packages share
	"internal/survey":          {layer: 6, imports: "wire internal/claim internal/claim/lines internal/claim/queues", pure: true},
	"recipe":                   {layer: 6, imports: "zk internal/claim " + families + " internal/inorder wire"},
	"internal/bench":           {layer: 7, imports: "recipe zk wire internal/fifo internal/fourletter internal/local", libraries: hdr + " " + chartsLib + " " + sys},
	"internal/server": {layer: 6, imports: "internal/driver internal/fifo internal/peerwire internal/record internal/replica internal/election internal/zab internal/peer internal/store internal/tree internal/ensemble " +
		"internal/config wire internal/metrics internal/notice internal/audit internal/secure internal/rate internal/sasl internal/sasl/jaas internal/sasl/kerberos internal/sasl/quorumauth", libraries: sys},
	// Orders of the goroutines of one server. Only tests import these packages. instrument puts imports of schedule into
	// copies of the server's files.
	"internal/interleave/schedule":   {layer: 1},
	"internal/interleave/instrument": {layer: 2, imports: "internal/interleave/schedule"},
	"internal/interleave":            {layer: 7},
	// The simulator: its harness knows the clients and the checkers, which do not know the
	// harness. The checkers do not know the clients either.
	"internal/sim/machine": {layer: 5, imports: "internal/replica internal/claim"},
	"internal/sim/check": {layer: 6, imports: "internal/election internal/peerwire internal/record internal/replica internal/zab internal/tree internal/ensemble internal/claim internal/claim/barrier internal/claim/cache " +
		"internal/claim/commit internal/claim/queues internal/claim/registry internal/claim/value wire", libraries: porcupine},
	"internal/sim/client": {layer: 7, imports: "internal/sim/check internal/sim/machine internal/leasequery internal/claim " + families + " internal/ensemble internal/tree wire"},
	"internal/sim": {layer: 8, imports: "internal/driver internal/sim/check internal/sim/client internal/sim/machine internal/peerwire internal/record internal/replica " +
		"internal/store internal/tree internal/zab internal/election internal/ensemble wire"},
	"internal/admin":        {layer: 7, imports: "internal/admin/elog internal/admin/trace internal/ensemble internal/peerwire internal/replica internal/server internal/tree internal/zab wire"},
	"internal/admin/trace":  {layer: 2, imports: "internal/ensemble", pure: true},
	"internal/admin/elog":   {layer: 4, imports: "internal/election internal/ensemble wire", pure: true},
	"internal/admin/access": {layer: 8, imports: "internal/secure"},
	"internal/admin/view": {layer: 8, imports: "internal/admin internal/admin/elog internal/admin/theatre internal/claim internal/election internal/ensemble internal/fourletter internal/peerwire internal/record internal/server " +
		"internal/store internal/survey internal/tree wire"},
	"internal/admin/operate": {layer: 9, imports: "internal/admin/view internal/claim internal/ensemble internal/peerwire internal/server wire zk"},
	"internal/admin/api":     {layer: 10, imports: "internal/admin internal/admin/access internal/admin/elog internal/admin/history internal/admin/operate internal/admin/trace internal/admin/view internal/server"},
	"internal/admin/page":    {layer: 10, imports: "internal/admin/access internal/admin/history internal/admin/theatre internal/ensemble internal/admin/operate internal/admin/view internal/server"},
	"internal/admin/web":     {layer: 10, imports: "internal/admin internal/admin/access internal/config internal/secure internal/server"},
	"internal/clientconfig":  {layer: 4, imports: "zk zk/kerberos internal/secure internal/sasl/jaas internal/ensemble"},
	"internal/preflight":     {layer: 4, imports: "internal/config internal/ensemble internal/fourletter internal/record internal/store wire", libraries: sys},
	"internal/shell":         {layer: 8, imports: "zk internal/clientconfig internal/fourletter internal/member recipe internal/claim internal/claim/lines internal/survey internal/bench internal/guard internal/quota internal/ensemble internal/terminal wire", libraries: cobra + " " + sys},
	"embed":                  {layer: 11, imports: "internal/authority internal/secure internal/peerwire internal/admin internal/admin/web internal/server internal/store internal/config internal/ensemble zk wire"},
	"internal/admin/history": {layer: 8, imports: "internal/server", libraries: chartsLib},
	"internal/admin/theatre": {layer: 5, imports: "internal/admin/elog internal/election internal/ensemble internal/peerwire wire", pure: true},
	// The program that users run does not contain the simulator or its checkers.
	"cmd/bellwether":     {layer: 12, imports: "internal/admin/api internal/admin/history internal/admin/operate internal/admin/page internal/admin/view internal/authority internal/clientconfig embed recipe zk wire internal/admin internal/admin/web internal/config internal/ensemble internal/local internal/scrape internal/secure internal/server internal/shadow internal/shadow/relay internal/shell internal/store internal/fourletter internal/guard internal/preflight internal/record internal/terminal internal/tree", libraries: cobra + " " + sys},
	"cmd/bellwether-sim": {layer: 9, imports: "internal/shell internal/sim", libraries: cobra},
	// Mutants of the program, and the scores that its tests reach against them; for developers too.
	"internal/mutants":         {layer: 2, imports: "internal/patch", pure: true},
	"internal/mutants/measure": {layer: 3, imports: "internal/mutants internal/patch"},
	"cmd/bellwether-mutants":   {layer: 9, imports: "internal/mutants internal/mutants/measure internal/shell", libraries: cobra},
}

// sourceFile is one Go file of a package.
type sourceFile struct {
	name string
	test bool
	ast  *ast.File
	set  *token.FileSet
}

// modulePath returns the name of the module, which its owner may change.
func modulePath(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimPrefix(line, "module ")
}

// sources parses every Go file of the module and returns them by folder. A folder with its own go.mod is another
// module and is skipped.
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

// packageOf returns the row of the table for a folder: the folder's own row, or that of the nearest folder above
// it.
func packageOf(dir string) string {
	for d := dir; d != "."; d = path.Dir(d) {
		if _, ok := plan[d]; ok {
			return d
		}
	}
	return ""
}

// TestTableAllowsOnlyLowerLayers shows that the table allows only imports of lower layers.
func TestTableAllowsOnlyLowerLayers(t *testing.T) {
	for name, r := range plan {
		for _, to := range strings.Fields(r.imports) {
			if other, ok := plan[to]; !ok || other.layer >= r.layer {
				t.Errorf("%s (layer %d) may import %s: not a package on a lower layer", name, r.layer, to)
			}
		}
	}
}

// TestProgramContainsNoSimulator shows that, according to the table, no package that cmd/bellwether can contain
// belongs to the simulator or to internal/interleave, or may import porcupine. TestImportsFollowTheTable shows that
// the code follows the table.
func TestProgramContainsNoSimulator(t *testing.T) {
	contains := map[string]bool{}
	var add func(name string)
	add = func(name string) {
		if !contains[name] {
			contains[name] = true
			for _, to := range strings.Fields(plan[name].imports) {
				add(to)
			}
		}
	}
	add("cmd/bellwether")
	for name := range contains {
		if strings.HasPrefix(name, "internal/sim") || strings.HasPrefix(name, "internal/interleave") || strings.Contains(plan[name].libraries, porcupine) {
			t.Errorf("the program bellwether may contain %s", name)
		}
	}
	if !contains["internal/replica"] {
		t.Error("the packages of the program were not found")
	}
}

// TestImportsFollowTheTable fails for each import that the table does not allow. Tests may import more: any
// library, any package on a lower layer, and the packages that the table lists for tests.
func TestImportsFollowTheTable(t *testing.T) {
	module := modulePath(t)
	files := sources(t)
	for _, dir := range slices.Sorted(maps.Keys(files)) {
		if dir == "." {
			continue
		}
		name := packageOf(dir)
		if name == "" {
			t.Errorf("%s belongs to no package of the table", dir)
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

// TestTableAllowsNoUnusedImport fails for each import that the table allows but no file uses.
func TestTableAllowsNoUnusedImport(t *testing.T) {
	module := modulePath(t)
	used := map[string]map[string]bool{}
	for dir, files := range sources(t) {
		name := packageOf(dir)
		if used[name] == nil {
			used[name] = map[string]bool{}
		}
		for _, f := range files {
			for _, spec := range f.ast.Imports {
				to, _ := strconv.Unquote(spec.Path.Value)
				rest, ours := strings.CutPrefix(to, module+"/")
				used[name][packageOf(rest)] = used[name][packageOf(rest)] || ours && !f.test
			}
		}
	}
	for name, r := range plan {
		for _, to := range strings.Fields(r.imports) {
			if !used[name][to] {
				t.Errorf("%s does not import %s: remove it from the table", name, to)
			}
		}
	}
}

// refuse returns why a file of a package may not import a path, or "" if it may.
func refuse(name, module, to string, test bool) string {
	r := plan[name]
	if rest, ok := strings.CutPrefix(to, module+"/"); ok {
		target := packageOf(rest)
		allowed := target == name || slices.Contains(strings.Fields(r.imports), target)
		switch {
		case target == "":
			return "not a package of the table"
		case allowed || test && (plan[target].layer < r.layer || slices.Contains(strings.Fields(r.tests), target)):
			return ""
		}
		return "the table does not allow it"
	}
	if first, _, _ := strings.Cut(to, "/"); !strings.Contains(first, ".") || test {
		return ""
	}
	for _, prefix := range strings.Fields(r.libraries) {
		if strings.HasPrefix(to, prefix) {
			return ""
		}
	}
	return "the table does not allow this library"
}

// impure lists the standard packages that a pure package may not import. Only tree may import sync.
var impure = []string{"net", "os", "log", "log/slog", "math/rand", "math/rand/v2", "crypto/rand", "io/fs", "sync", "sync/atomic", "context", "runtime", "unsafe"}

// TestPurePackagesArePure fails if a pure package uses a clock, socket, file, lock, goroutine or channel. The
// tests of the package may use them.
func TestPurePackagesArePure(t *testing.T) {
	for dir, files := range sources(t) {
		if name := packageOf(dir); name == "" || !plan[name].pure {
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
			t.Errorf("%s imports %s: a pure package does not", f.name, to)
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
			t.Errorf("%s: %s in a pure package", f.set.Position(n.Pos()), what)
		}
		return true
	})
}

// clockNames are the names in package time that read a clock or wait for one.
var clockNames = map[string]bool{
	"Now": true, "Since": true, "Until": true, "Sleep": true, "After": true, "AfterFunc": true,
	"Tick": true, "NewTicker": true, "NewTimer": true,
}

// TestImportRulesCanFail shows that refuse refuses imports that the table does not allow.
func TestImportRulesCanFail(t *testing.T) {
	for _, c := range []struct {
		from, to string
		test     bool
	}{
		{"wire", "m/zk", false},
		{"wire", "m/zk", true},
		{"zk", "m/internal/tree", false},
		{"zk", "github.com/spf13/cobra", false},
		{"internal/tree", "m/internal/store", false},
		{"internal/tree", "m/internal/nowhere", false},
		{"cmd/bellwether", "m/internal/sim", false},
		{"internal/claim/lines", "m/internal/claim/commit", false},
	} {
		if refuse(c.from, "m", c.to, c.test) == "" {
			t.Errorf("%s may import %s", c.from, c.to)
		}
	}
	if why := refuse("internal/server", "m", "m/wire", false); why != "" {
		t.Errorf("internal/server may not import wire: %s", why)
	}
}
