package sim

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"bellwether/wire"
)

// registers holds the operations of clients on one znode that they set, and that they read
// behind a sync: a register.
type registers struct{ ops []porcupine.Operation }

// These constants name the register that is checked, and say how many of its first
// operations are checked. There is a limit because the check takes long.
const (
	registerPath = "/r0"
	registerOps  = 150
)

type registerInput struct {
	write bool
	value string
}

// done records a request that was answered.
func (s *Sim) done(k *call) {
	switch {
	case k.path != registerPath:
	case k.op.IsWrite() && k.err == wire.OK:
		s.register.add(k, registerInput{true, k.value}, "", k.done)
	case k.synced && k.err == wire.OK:
		if r, ok := k.record.(*wire.DataResponse); ok {
			s.register.add(k, registerInput{}, string(r.Data), k.done)
		}
	}
}

// lost records a request whose outcome nobody knows.
func (s *Sim) lost(k *call) {
	if k.path == registerPath && k.op.IsWrite() {
		s.register.add(k, registerInput{true, k.value}, "", math.MaxInt64)
	}
}

func (g *registers) add(k *call, in registerInput, out string, done int64) {
	g.ops = append(g.ops, porcupine.Operation{ClientId: k.client.id, Input: in, Call: k.issued, Output: out, Return: done})
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

// beginning returns the history up to a moment. Operations that were under way then may or
// may not have been carried out.
func (g *registers) beginning() []porcupine.Operation {
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

// checkRegister fails the run if no order of all operations explains their results.
func (s *Sim) checkRegister() {
	ops := s.register.beginning()
	if porcupine.CheckOperationsTimeout(registerModel, ops, 5*time.Second) == porcupine.Illegal {
		s.fail("Linearizability", "no order explains the %d operations on %s", len(ops), registerPath)
	}
}
