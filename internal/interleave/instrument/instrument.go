// Package instrument changes Go code so that package schedule decides when its goroutines
// go on. [Files] returns the changed files, for the option -overlay of go build. The code
// itself is not touched.
//
// A changed file has the same lines as before:
//
//   - It imports package schedule in place of sync and sync/atomic.
//   - A go statement starts its goroutine with schedule.Go.
//   - A statement that uses a channel is preceded by a call of schedule.Point. If it is a
//     select with several cases, schedule.Select and schedule.Only choose among them.
//   - schedule.Close closes channels.
package instrument

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"bellwether/internal/interleave/schedule"
)

// schedulePath is the import path of package schedule, and scheduleFolder its folder.
var schedulePath = reflect.TypeFor[schedule.Schedule]().PkgPath()

const scheduleFolder = "internal/interleave/schedule"

// alias is the name by which changed files import package schedule, in addition to sync and
// atomic.
const alias = "interleaved"

// Packages are the folders of the packages that are changed. Package store is not among
// them: its locks are never held during calls of the file system, which stop the
// goroutine instead.
var Packages = []string{"internal/server", "internal/tree"}

// counters are files whose atomics only count. Their stand-ins would make schedules longer
// and find nothing.
var counters = []string{"budget.go", "input.go", "memberstats.go", "stats.go", "tracer.go", "traffic.go", "turns.go"}

// Files returns the changed files by name. list returns the names of the files of a
// folder, and read the text of a file. Both take and return names relative to the module.
func Files(list func(folder string) ([]string, error), read func(file string) (string, error)) (map[string]string, error) {
	changed := map[string]string{}
	for _, folder := range Packages {
		files, err := list(folder)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := read(file)
			if err == nil {
				text, err = change(file, text)
			}
			if err != nil {
				return nil, err
			}
			changed[file] = text
		}
	}
	const mark = scheduleFolder + "/instrumented.go"
	text, err := read(mark)
	if err != nil {
		return nil, err
	}
	changed[mark] = strings.Replace(text, "Instrumented = false", "Instrumented = true", 1)
	return changed, nil
}

// edit replaces the bytes of a text from start to end.
type edit struct {
	start, end int
	text       string
}

// changer collects the edits of one file.
type changer struct {
	text  string
	set   *token.FileSet
	edits []edit
	uses  bool // alias is used
}

// change returns the changed text of a file.
func change(file, text string) (string, error) {
	c := &changer{text: text, set: token.NewFileSet()}
	f, err := parser.ParseFile(c.set, file, text, parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	for _, spec := range f.Imports {
		c.importSpec(spec, !slices.Contains(counters, path.Base(file)))
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			c.statements(n.List)
		case *ast.CaseClause:
			c.statements(n.Body)
		case *ast.CommClause:
			c.statements(n.Body)
		case *ast.GoStmt:
			c.goStatement(n)
		case *ast.CallExpr:
			c.closeCall(n)
		}
		return true
	})
	if c.uses {
		c.insert(f.Name.End(), fmt.Sprintf("; import %s %q", alias, schedulePath))
	}
	return c.apply(), nil
}

// importSpec replaces an import of sync, and one of sync/atomic if atomics is true.
func (c *changer) importSpec(spec *ast.ImportSpec, atomics bool) {
	of, _ := strconv.Unquote(spec.Path.Value)
	if spec.Name == nil && (of == "sync" || of == "sync/atomic" && atomics) {
		c.replace(spec.Pos(), spec.End(), fmt.Sprintf("%s %q", path.Base(of), schedulePath))
	}
}

// statements inserts a Point before each statement that uses a channel.
func (c *changer) statements(list []ast.Stmt) {
	for _, s := range list {
		switch sel, _ := s.(*ast.SelectStmt); {
		case sel != nil && c.selectStatement(sel):
		case usesChannel(s):
			c.insert(s.Pos(), alias+`.Point("channel"); `)
			c.uses = true
		}
	}
}

// selectStatement lets package schedule choose among the cases of a select. It returns false
// if there is nothing to choose, or if an operand is no variable and cannot be evaluated
// twice.
func (c *changer) selectStatement(s *ast.SelectStmt) bool {
	var channels []ast.Expr
	for _, clause := range s.Body.List {
		from, ok := received(clause.(*ast.CommClause).Comm)
		if ok && from != nil {
			channels = append(channels, from)
		}
		if !ok || from != nil && !variable(from) {
			return false
		}
	}
	if len(channels) < 2 {
		return false
	}
	names := make([]string, len(channels))
	for i, ch := range channels {
		names[i] = c.text[c.offset(ch.Pos()):c.offset(ch.End())]
		c.replace(ch.Pos(), ch.End(), fmt.Sprintf("%s.Only(%d, %s)", alias, i, names[i]))
	}
	c.insert(s.Pos(), fmt.Sprintf("%s.Select(%s); ", alias, strings.Join(names, ", ")))
	c.uses = true
	return true
}

// received returns the channel from which a case receives, nil for the default. It returns
// false for a case that sends.
func received(comm ast.Stmt) (from ast.Expr, ok bool) {
	var x ast.Expr
	switch comm := comm.(type) {
	case nil:
		return nil, true
	case *ast.ExprStmt:
		x = comm.X
	case *ast.AssignStmt:
		x = comm.Rhs[0]
	}
	u, ok := x.(*ast.UnaryExpr)
	if !ok {
		return nil, false
	}
	return u.X, true
}

// variable reports whether an expression consists of names only.
func variable(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return true
	case *ast.SelectorExpr:
		return variable(x.X)
	}
	return false
}

// closeCall replaces close by schedule.Close.
func (c *changer) closeCall(call *ast.CallExpr) {
	if f, ok := call.Fun.(*ast.Ident); ok && f.Name == "close" {
		c.replace(f.Pos(), f.End(), alias+".Close")
		c.uses = true
	}
}

// goStatement makes a go statement a call of schedule.Go. The operands are then evaluated
// in the new goroutine, and not before it starts. The code may not depend on that.
func (c *changer) goStatement(s *ast.GoStmt) {
	name := c.text[c.offset(s.Call.Fun.Pos()):c.offset(s.Call.Fun.End())]
	if _, literal := s.Call.Fun.(*ast.FuncLit); literal {
		name = fmt.Sprintf("%s:%d", path.Base(c.set.Position(s.Pos()).Filename), c.set.Position(s.Pos()).Line)
	}
	c.replace(s.Pos(), s.Call.Pos(), fmt.Sprintf("%s.Go(%q, func() { ", alias, name))
	c.insert(s.Call.End(), " })")
	c.uses = true
}

// usesChannel reports whether a statement itself, without the blocks and the functions in
// it, sends, receives or selects.
func usesChannel(s ast.Stmt) (uses bool) {
	switch s := s.(type) {
	case *ast.SelectStmt, *ast.SendStmt:
		return true
	case *ast.LabeledStmt:
		return usesChannel(s.Stmt)
	case *ast.GoStmt, *ast.DeferStmt, *ast.BlockStmt, *ast.CommClause, *ast.CaseClause:
		return false
	}
	ast.Inspect(s, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt, *ast.FuncLit:
			return false
		case *ast.UnaryExpr:
			uses = uses || n.Op == token.ARROW
		}
		return true
	})
	return uses
}

func (c *changer) offset(p token.Pos) int { return c.set.Position(p).Offset }

func (c *changer) insert(at token.Pos, text string) { c.replace(at, at, text) }

func (c *changer) replace(start, end token.Pos, text string) {
	c.edits = append(c.edits, edit{c.offset(start), c.offset(end), text})
}

// apply returns the text with all edits.
func (c *changer) apply() string {
	slices.SortStableFunc(c.edits, func(a, b edit) int { return a.start - b.start })
	var b strings.Builder
	at := 0
	for _, e := range c.edits {
		b.WriteString(c.text[at:e.start])
		b.WriteString(e.text)
		at = e.end
	}
	b.WriteString(c.text[at:])
	return b.String()
}
