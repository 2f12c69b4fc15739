package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"bellwether/internal/record"
	"bellwether/wire"
)

// Registers records the operations of clients on RegisterPaths: all writes, also those that are parts of a
// multi, and reads behind a sync. After the run, Explained checks that each znode behaves as a register
// that may be absent.
//
// A write was carried out no later than when the first server applied it. If the connection ends before a write
// is answered, whether it was carried out follows from the committed history.
type Registers struct {
	Now       func() int64 // µs
	ops       map[string][]registerOp
	committed map[attempt]int64 // µs at which the first server applied a request
	met       int
}

// registerOp is an operation and what it shows. done is when it was answered, in µs; 0: the answer was lost.
type registerOp struct {
	Request
	input registerInput
	done  int64
}

// The windows in which operations are checked together, because the check of many takes very long. A window
// begins with an unknown content at a moment at which no write is under way. So that every operation is also checked
// with those before it, windows overlap.
const (
	windowOps  = 40               // the least length of a window, except the last one
	windowStep = 25               // the least distance between the beginnings of two windows
	overlapOps = 15               // the least overlap of two windows
	windowTime = 30 * time.Second // for the check of one window; a longer one is a failure
)

// registerInput is an operation and what it shows of the register before it.
type registerInput struct {
	before before
	write  bool
	after  string // what a write leaves; empty: the znode is absent
}

// before is what an operation shows of the register: whether the znode exists, and its data.
type before struct {
	exists, absent, known bool
	data                  string
}

// Name returns the name of the rule.
func (*Registers) Name() string { return "Linearizability" }

// Met returns the number of operations that were checked.
func (g *Registers) Met() []Count { return []Count{{N: g.met}} }

// See records requests that are answered, and requests whose outcome is unknown.
func (g *Registers) See(o any) string {
	switch e := o.(type) {
	case Answered:
		if in, ok := shownOf(&e); ok && slices.Contains(RegisterPaths, e.Path) {
			g.add(&e.Request, in, e.At)
		}
	case Lost:
		if in, ok := effectOf(&e.Request); ok && slices.Contains(RegisterPaths, e.Path) {
			g.add(&e.Request, in, 0)
		}
	case Committed:
		if m, multi := e.Txn.Body.(*record.MultiTxn); e.Txn.Cxid > 0 && e.Txn.Type != wire.OpError && !(multi && m.Failed()) {
			if g.committed == nil {
				g.committed = map[attempt]int64{}
			}
			g.committed[attempt{e.Txn.Session, e.Txn.Cxid}] = g.Now()
		}
	}
	return ""
}

// effectOf returns what a write does to a register if it succeeds.
func effectOf(k *Request) (in registerInput, ok bool) {
	in = registerInput{write: true, after: k.Value}
	switch k.Op {
	case wire.OpSetData, wire.OpMulti:
		in.before.exists = true
	case wire.OpCreate, wire.OpCreate2:
		in.before.absent = true
	case wire.OpDelete:
		in.before.exists, in.after = true, ""
	default:
		return in, false
	}
	return in, true
}

// shownOf returns what an answer shows of a register. It returns false if it shows nothing.
func shownOf(e *Answered) (in registerInput, ok bool) {
	if in, ok = effectOf(&e.Request); ok {
		switch err := e.Header.Err; {
		case e.Op == wire.OpMulti && failedMulti(e.Record):
			return in, false
		case err == wire.OK:
			return in, true
		case err == wire.ErrNoNode && e.Op != wire.OpMulti:
			return registerInput{before: before{absent: true}}, true
		case err == wire.ErrNodeExists && e.Op != wire.OpMulti:
			return registerInput{before: before{exists: true}}, true
		}
		return in, false
	}
	if !e.Synced {
		return in, false
	}
	switch r := e.Record.(type) {
	case *wire.DataResponse:
		return registerInput{before: before{exists: true, known: true, data: string(r.Data)}}, e.Header.Err == wire.OK
	case *wire.StatResponse:
		return registerInput{before: before{exists: true}}, e.Header.Err == wire.OK
	}
	return registerInput{before: before{absent: true}}, e.Header.Err == wire.ErrNoNode
}

// failedMulti reports whether the answer to a multi says that an operation of it has failed.
func failedMulti(r wire.Record) bool {
	m, ok := r.(*wire.MultiResponse)
	return ok && slices.ContainsFunc(m.Results, func(x wire.OpResult) bool { return x.Err != wire.OK })
}

func (g *Registers) add(k *Request, in registerInput, done int64) {
	if g.ops == nil {
		g.ops = map[string][]registerOp{}
	}
	g.ops[k.Path] = append(g.ops[k.Path], registerOp{*k, in, done})
}

// The contents of a register in the model. All others are data.
const (
	unknownContent = "?"
	absentContent  = "-"
	dataContent    = "=" // followed by the data
)

// registerModel is the model of one register.
var registerModel = porcupine.Model{
	Init: func() any { return unknownContent },
	Step: func(state, input, _ any) (bool, any) {
		in, now := input.(registerInput), state.(string)
		switch b := in.before; {
		case b.absent && now != unknownContent && now != absentContent,
			b.exists && now == absentContent,
			b.known && now != unknownContent && now != dataContent+b.data:
			return false, state
		case !in.write && b.absent:
			return true, absentContent
		case !in.write && b.known:
			return true, dataContent + b.data
		case !in.write:
			return true, now
		case in.after == "":
			return true, absentContent
		}
		return true, dataContent + in.after
	},
	Equal: func(a, b any) bool { return a == b },
}

// Explained returns what is wrong if no order of the operations explains their results, or if that could
// not be found out. It returns an empty text if one does.
func (g *Registers) Explained() string {
	for _, path := range RegisterPaths {
		ops := g.operations(path)
		for from := 0; from < len(ops); {
			next := nextWindow(ops, from)
			if wrong := explainedWindow(path, window(ops, from, max(from+windowOps, next+overlapOps))); wrong != "" {
				return wrong
			}
			from = next
		}
		g.met += len(ops)
	}
	return ""
}

// operations returns the operations on a register that were carried out, in the order of their calls.
func (g *Registers) operations(path string) []porcupine.Operation {
	var out []porcupine.Operation
	for i := range g.ops[path] {
		o := &g.ops[path][i]
		done := o.done
		if o.input.write {
			applied, known := g.committed[attempt{o.Session, o.Xid}]
			switch {
			case known && (done == 0 || applied < done):
				done = max(applied, o.Issued)
			case done == 0:
				continue
			}
		}
		out = append(out, porcupine.Operation{ClientId: o.Client, Input: o.input, Call: o.Issued, Return: done})
	}
	slices.SortStableFunc(out, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	return out
}

// nextWindow returns where the window after that at from begins: at an operation that begins when no earlier write is
// under way. It returns the number of operations if there is none.
func nextWindow(ops []porcupine.Operation, from int) int {
	busyUntil := int64(0)
	for i, o := range ops {
		if i >= from+windowStep && o.Call > busyUntil {
			return i
		}
		if o.Input.(registerInput).write {
			busyUntil = max(busyUntil, o.Return)
		}
	}
	return len(ops)
}

// never is the time of something that need not have happened at all.
const never = int64(1 << 62)

// window returns the operations from number from to before number to. Reads that are under way at
// the end of the window are left out. Writes that are under way then may take effect after everything else.
func window(ops []porcupine.Operation, from, to int) []porcupine.Operation {
	end := never
	if to = min(to, len(ops)); to < len(ops) {
		end = ops[to].Call
	}
	var out []porcupine.Operation
	for _, o := range ops[from:to] {
		switch in := o.Input.(registerInput); {
		case o.Return < end:
		case !in.write:
			continue
		default:
			o.Return, o.Input = never, registerInput{write: true, after: in.after}
		}
		out = append(out, o)
	}
	return out
}

func explainedWindow(path string, ops []porcupine.Operation) string {
	switch porcupine.CheckOperationsTimeout(registerModel, ops, windowTime) {
	case porcupine.Illegal:
		return fmt.Sprintf("no order explains these %d operations on %s: %s", len(ops), path, describe(ops))
	case porcupine.Unknown:
		return fmt.Sprintf("whether an order explains these %d operations on %s could not be found out in %v: %s", len(ops), path, windowTime, describe(ops))
	}
	return ""
}

// describe lists operations with the times of their call and their answer.
func describe(ops []porcupine.Operation) string {
	var b strings.Builder
	for _, o := range ops {
		in := o.Input.(registerInput)
		what := "reads " + in.before.data
		switch {
		case in.write:
			what = "writes " + in.after
		case in.before.absent:
			what = "finds nothing"
		case !in.before.known:
			what = "finds it"
		}
		fmt.Fprintf(&b, "\n  client %d %s, %.6f to %.6f", o.ClientId, what, float64(o.Call)/1e6, float64(o.Return)/1e6)
	}
	return b.String()
}
