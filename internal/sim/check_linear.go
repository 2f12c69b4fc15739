package sim

import (
	"math"
	"time"

	"github.com/anishathalye/porcupine"

	"bellwether/wire"
)

// registers is what clients did to one znode that they set, and read behind a
// sync: a register. Only the beginning is kept, as the check takes long.
type registers struct{ ops []porcupine.Operation }

// The register that is checked, and how much of its history.
const (
	registerPath = "/r0"
	registerOps  = 150
)

type registerInput struct {
	write bool
	value string
}

// done notes a request that was answered.
func (s *Sim) done(k *call) {
	switch {
	case k.path != registerPath || len(s.register.ops) >= registerOps:
	case k.op.IsWrite() && k.err == wire.OK:
		s.register.add(k, registerInput{true, k.value}, "", k.done)
	case k.synced && k.err == wire.OK:
		if r, ok := k.record.(*wire.DataResponse); ok {
			s.register.add(k, registerInput{}, string(r.Data), k.done)
		}
	}
}

// lost notes a request of which nobody knows whether it was carried out.
func (s *Sim) lost(k *call) {
	if k.path == registerPath && k.op.IsWrite() && len(s.register.ops) < registerOps {
		s.register.add(k, registerInput{true, k.value}, "", math.MaxInt64)
	}
}

func (g *registers) add(k *call, in registerInput, out string, done int64) {
	g.ops = append(g.ops, porcupine.Operation{ClientId: k.client.id, Input: in, Call: k.issued, Output: out, Return: done})
}

// registerModel is one register.
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

// checkRegister looks for an order of all operations that explains them.
func (s *Sim) checkRegister() {
	if porcupine.CheckOperationsTimeout(registerModel, s.register.ops, 5*time.Second) == porcupine.Illegal {
		s.fail("Linearizability", "no order explains the %d operations on %s", len(s.register.ops), registerPath)
	}
}
