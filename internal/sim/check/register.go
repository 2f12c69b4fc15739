package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"bellwether/wire"
)

// Register records the operations of clients on RegisterPath: writes, and reads behind a
// sync. After the run, Explained checks that the znode behaves as a register.
type Register struct{ ops []porcupine.Operation }

// registerOps is how many of the first operations are checked. There is a limit because the
// check takes long.
const registerOps = 150

type registerInput struct {
	write bool
	value string
}

// Name returns the name of the rule.
func (*Register) Name() string { return "Linearizability" }

// See records requests that are answered, and requests whose outcome is unknown.
func (g *Register) See(o any) string {
	switch e := o.(type) {
	case Answered:
		switch k := &e.Request; {
		case k.Path != RegisterPath || e.Header.Err != wire.OK:
		case k.Op.IsWrite():
			g.add(k, registerInput{true, k.Value}, "", e.At)
		case k.Synced:
			if r, ok := e.Record.(*wire.DataResponse); ok {
				g.add(k, registerInput{}, string(r.Data), e.At)
			}
		}
	case Lost:
		if k := &e.Request; k.Path == RegisterPath && k.Op.IsWrite() {
			g.add(k, registerInput{true, k.Value}, "", math.MaxInt64)
		}
	}
	return ""
}

func (g *Register) add(k *Request, in registerInput, out string, done int64) {
	g.ops = append(g.ops, porcupine.Operation{ClientId: k.Client, Input: in, Call: k.Issued, Output: out, Return: done})
}

// registerModel is the model of one register.
var registerModel = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		in := input.(registerInput)
		if in.write {
			return true, in.value
		}
		return state == output, state
	},
	Equal: func(a, b any) bool { return a == b },
}

// beginning returns the first registerOps operations. A write that was under way when the next
// operation began may or may not have been carried out; a read that was under way then is left
// out.
func (g *Register) beginning() []porcupine.Operation {
	ops := slices.Clone(g.ops)
	slices.SortStableFunc(ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	if len(ops) <= registerOps {
		return ops
	}
	end := ops[registerOps].Call
	var out []porcupine.Operation
	for _, o := range ops[:registerOps] {
		switch {
		case o.Return < end:
			out = append(out, o)
		case o.Input.(registerInput).write:
			o.Return = math.MaxInt64
			out = append(out, o)
		}
	}
	return out
}

// Explained returns what is wrong if no order of the operations explains their results. It
// returns an empty text if one does.
func (g *Register) Explained() string {
	ops := g.beginning()
	if porcupine.CheckOperationsTimeout(registerModel, ops, 5*time.Second) == porcupine.Illegal {
		return fmt.Sprintf("no order explains the %d operations on %s", len(ops), RegisterPath)
	}
	return ""
}
