package mutants

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"strconv"
	"strings"
)

// The operators of generated mutants. Each is applied at every place at which it is
// possible, except in methods String and Error, whose texts people read, and at calls of
// panic, which only an error of the program reaches.
const (
	negate   = "negate"   // the condition of an if, a for or a case is negated
	shift    = "shift"    // a comparison is shifted by one: < and <=, > and >=
	drop     = "drop"     // a call, an assignment or a jump is not carried out
	reorder  = "reorder"  // two successive statements that call functions change places
	constant = "constant" // an integer is one larger; true and false change places
	swallow  = "swallow"  // an error is taken for nil, where it is handled or returned
)

// Operators are the names of all operators, in the order in which they are described.
func Operators() []string { return []string{negate, shift, drop, reorder, constant, swallow} }

// Generate returns the mutants of a file, in the order of the text.
func Generate(file, text string) ([]Mutant, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	g := generator{file: file, text: text, set: set.File(tree.Pos())}
	for _, d := range tree.Decls {
		g.declaration(d)
	}
	return g.out, nil
}

// generator makes the mutants of one file.
type generator struct {
	file, text string
	set        *token.File
	in         string         // the function or constant that is being walked
	places     map[string]int // places so far in it, by operator
	out        []Mutant
}

func (g *generator) declaration(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Body == nil || d.Recv != nil && (d.Name.Name == "String" || d.Name.Name == "Error") {
			return
		}
		g.enter(functionName(d))
		ast.Inspect(d.Body, g.node)
	case *ast.GenDecl:
		if d.Tok != token.CONST && d.Tok != token.VAR {
			return
		}
		for _, s := range d.Specs {
			v := s.(*ast.ValueSpec)
			g.enter(v.Names[0].Name)
			for _, x := range v.Values {
				ast.Inspect(x, g.node)
			}
		}
	}
}

func (g *generator) enter(name string) { g.in, g.places = name, map[string]int{} }

// functionName returns the name of a function, after that of its receiver's type.
func functionName(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
			continue
		case *ast.IndexExpr:
			t = x.X
			continue
		case *ast.Ident:
			return x.Name + "." + d.Name.Name
		}
		return d.Name.Name
	}
}

// node makes the mutants of one node of the syntax tree.
func (g *generator) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		g.condition(n.Cond)
		if checksError(n.Cond) {
			g.replace(swallow, n.Cond, "("+g.source(n.Cond)+") && false", "the error is ignored")
		}
	case *ast.ForStmt:
		if n.Cond != nil {
			g.condition(n.Cond)
		}
	case *ast.SwitchStmt:
		if n.Tag == nil {
			g.cases(n)
		}
	case *ast.BinaryExpr:
		g.comparison(n)
	case *ast.BlockStmt:
		g.statements(n.List)
	case *ast.CaseClause:
		g.statements(n.Body)
	case *ast.CommClause:
		g.statements(n.Body)
	case *ast.ReturnStmt:
		if last := len(n.Results) - 1; last >= 0 && isError(n.Results[last]) {
			g.replace(swallow, n.Results[last], "nil", "no error is returned")
		}
	case *ast.BasicLit, *ast.Ident:
		g.literal(n.(ast.Expr))
	}
	return true
}

func (g *generator) condition(x ast.Expr) {
	g.replace(negate, x, "!("+g.source(x)+")", "the condition is negated")
}

func (g *generator) cases(n *ast.SwitchStmt) {
	for _, s := range n.Body.List {
		for _, x := range s.(*ast.CaseClause).List {
			g.condition(x)
		}
	}
}

// shifted are the comparisons and what they become.
var shifted = map[token.Token]token.Token{token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR}

func (g *generator) comparison(n *ast.BinaryExpr) {
	if to, ok := shifted[n.Op]; ok {
		g.add(shift, g.offset(n.OpPos), n.Op.String(), to.String(), fmt.Sprintf("%s becomes %s", n.Op, to))
	}
}

// statements drops each statement of a list, and changes the places of neighbours. A
// dropped statement stays in the text, so that the names in it are still used.
func (g *generator) statements(list []ast.Stmt) {
	for i, s := range list {
		if !droppable(s) {
			continue
		}
		g.replace(drop, s, "if false { "+g.source(s)+" }", "the statement is dropped")
		if i+1 < len(list) && calls(s) && calls(list[i+1]) {
			next := list[i+1]
			between := g.text[g.offset(s.End()):g.offset(next.Pos())]
			g.add(reorder, g.offset(s.Pos()), g.text[g.offset(s.Pos()):g.offset(next.End())],
				g.source(next)+between+g.source(s), "the statement changes places with the next one")
		}
	}
}

// droppable reports whether the program compiles without a statement, as a rule.
func droppable(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.ExprStmt:
		return !panics(s.X)
	case *ast.AssignStmt:
		return s.Tok != token.DEFINE
	case *ast.ReturnStmt:
		return len(s.Results) == 0
	case *ast.BranchStmt:
		return s.Tok == token.BREAK || s.Tok == token.CONTINUE
	case *ast.IncDecStmt, *ast.SendStmt, *ast.DeferStmt, *ast.GoStmt:
		return true
	}
	return false
}

// panics reports whether an expression is a call of panic.
func panics(x ast.Expr) bool {
	call, ok := x.(*ast.CallExpr)
	if !ok {
		return false
	}
	name, ok := call.Fun.(*ast.Ident)
	return ok && name.Name == "panic"
}

// calls reports whether a statement may be moved and calls a function when it is reached. The functions that are
// part of the language do not count: what they read and change stands in the statement.
func calls(s ast.Stmt) bool {
	switch s.(type) {
	case *ast.ExprStmt, *ast.AssignStmt, *ast.SendStmt, *ast.GoStmt:
	default:
		return false
	}
	found := false
	ast.Inspect(s, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		found = found || ok && !builtin(call)
		return !found
	})
	return found && droppable(s)
}

// builtin reports whether a call is that of a function of the language, such as append, or a conversion to one of its
// types.
func builtin(call *ast.CallExpr) bool {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return types.Universe.Lookup(f.Name) != nil
	case *ast.ArrayType, *ast.ParenExpr:
		return true // a conversion
	}
	return false
}

// literal changes an integer, true or false.
func (g *generator) literal(x ast.Expr) {
	switch x := x.(type) {
	case *ast.BasicLit:
		if n, err := strconv.ParseInt(x.Value, 0, 64); x.Kind == token.INT && err == nil {
			g.replace(constant, x, strconv.FormatInt(n+1, 10), x.Value+" is one larger")
		}
	case *ast.Ident:
		switch x.Name {
		case "true":
			g.replace(constant, x, "false", "true becomes false")
		case "false":
			g.replace(constant, x, "true", "false becomes true")
		}
	}
}

// checksError reports whether a condition is true only if there is an error.
func checksError(x ast.Expr) bool {
	b, ok := x.(*ast.BinaryExpr)
	if !ok {
		return false
	}
	if b.Op == token.LAND {
		return checksError(b.X) || checksError(b.Y)
	}
	right, ok := b.Y.(*ast.Ident)
	return ok && b.Op == token.NEQ && right.Name == "nil" && isError(b.X)
}

// isError reports whether an expression is, by its name, an error.
func isError(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name == "err" || strings.HasSuffix(x.Name, "Err")
	case *ast.SelectorExpr:
		return x.Sel.Name == "err" || x.Sel.Name == "Err"
	}
	return false
}

func (g *generator) offset(p token.Pos) int { return g.set.Offset(p) }

// source returns the text of a node.
func (g *generator) source(n ast.Node) string { return g.text[g.offset(n.Pos()):g.offset(n.End())] }

// replace adds the mutant that has another text in place of a node.
func (g *generator) replace(operator string, n ast.Node, to, what string) {
	g.add(operator, g.offset(n.Pos()), g.source(n), to, what)
}

func (g *generator) add(operator string, from int, old, to, what string) {
	g.places[operator]++
	line := g.set.Line(g.set.Pos(from))
	g.out = append(g.out, Mutant{
		Name: fmt.Sprintf("%s:%s:%s:%d", g.file, g.in, operator, g.places[operator]),
		What: fmt.Sprintf("line %d: %s", line, what), generated: &replacement{g.file, from, old, to},
	})
}
