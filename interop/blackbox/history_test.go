package blackbox

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"bellwether/wire"

	"github.com/anishathalye/porcupine"
)

// regIn is an operation on a znode, seen as a register with versions.
type regIn struct {
	key     int
	set     bool
	value   string
	version int32 // expected version of a set; -1: any
}

type regOut struct {
	unknown bool // the reply was lost: the set takes effect at any time, or never
	bad     bool // the set failed, because the version was not the expected one
	value   string
	version int32
}

type regState struct {
	value   string
	version int32
}

// register is the model of a znode for porcupine.
var register = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[int][]porcupine.Operation{}
		for _, op := range history {
			key := op.Input.(regIn).key
			byKey[key] = append(byKey[key], op)
		}
		var out [][]porcupine.Operation
		for _, ops := range byKey {
			out = append(out, ops)
		}
		return out
	},
	Init: func() any { return regState{} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(regState), input.(regIn), output.(regOut)
		switch {
		case !in.set:
			return out == regOut{value: s.value, version: s.version}, s
		case in.version != -1 && in.version != s.version:
			return out.bad || out.unknown, s
		}
		s = regState{in.value, s.version + 1}
		return out.unknown || out == regOut{version: s.version}, s
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}

// checkTimeout bounds the check of the history.
const checkTimeout = 5 * time.Minute

// linearizable checks the history of all registers.
func linearizable(history []porcupine.Operation) error {
	if r := porcupine.CheckOperationsTimeout(register, history, checkTimeout); r != porcupine.Ok {
		return fmt.Errorf("the history of %d operations is not linearizable: %v", len(history), r)
	}
	return nil
}

// fact says which transaction wrote a version of a register.
type fact struct {
	zxid    wire.Zxid
	version int32
}

// facts holds everything that is known about the registers.
type facts map[int][]fact

func (f facts) add(key int, stat wire.Stat) {
	f[key] = append(f[key], fact{stat.Mzxid, stat.Version})
}

func (f facts) sort() {
	for _, list := range f {
		slices.SortFunc(list, func(a, b fact) int { return cmp.Compare(a.zxid, b.zxid) })
	}
}

// after returns the version of a register in a history that ends with zxid.
func (f facts) after(key int, zxid wire.Zxid) int32 {
	i, _ := slices.BinarySearchFunc(f[key], zxid, func(a fact, z wire.Zxid) int { return cmp.Compare(a.zxid, z+1) })
	if i == 0 {
		return 0
	}
	return f[key][i-1].version
}

// sight is one observation of a session; observations are in order.
type sight struct {
	session wire.SessionID
	key     int
	stat    wire.Stat
}

// backwards finds a session that saw an older state than before: a version of a register below
// the one that transactions known to the session had written.
func (f facts) backwards(seen []sight) error {
	newest := map[wire.SessionID]wire.Zxid{}
	for _, g := range seen {
		known := newest[g.session]
		if want := f.after(g.key, known); g.stat.Version < want {
			return fmt.Errorf("session %#x saw version %d of register %d after %v, which has version %d of it",
				int64(g.session), g.stat.Version, g.key, known, want)
		}
		newest[g.session] = max(known, g.stat.Mzxid)
	}
	return nil
}
