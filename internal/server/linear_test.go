package server

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"bellwether/wire"
)

// regIn and regOut are the input and the output of one operation on a znode that is used as a
// register with versions.
type regIn struct {
	key     int
	set     bool
	value   string
	version int32 // only for a set: the expected version; -1 for any
}

type regOut struct {
	code    wire.Code
	value   string // only for a get: the data
	version int32
}

type regState struct {
	value   string
	version int32
}

// register is the model of what one znode may answer.
var register = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[int][]porcupine.Operation{}
		for _, op := range history {
			byKey[op.Input.(regIn).key] = append(byKey[op.Input.(regIn).key], op)
		}
		var out [][]porcupine.Operation
		for _, ops := range byKey {
			out = append(out, ops)
		}
		return out
	},
	Init: func() any { return regState{value: "0"} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(regState), input.(regIn), output.(regOut)
		switch {
		case !in.set:
			return out == regOut{value: s.value, version: s.version}, s
		case in.version != -1 && in.version != s.version:
			return out.code == wire.ErrBadVersion, s
		}
		s = regState{in.value, s.version + 1}
		return out == regOut{version: s.version}, s
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}

// TestStandaloneIsLinearizable: a standalone server is linearizable, including reads:
// they are answered concurrently with writes, but never with a state older than one that
// was answered before.
func TestStandaloneIsLinearizable(t *testing.T) {
	const clients, keys, ops = 6, 2, 250
	s := start(t, Options{})
	setup := s.connect()
	for k := range keys {
		setup.create(fmt.Sprintf("/k%d", k), "0")
	}
	var mu sync.Mutex
	var history []porcupine.Operation
	var wg sync.WaitGroup
	for id := range clients {
		c := s.connect()
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(id)))
			version := int32(0)
			for i := range ops {
				in := regIn{key: rng.IntN(keys), set: rng.IntN(3) == 0, value: fmt.Sprintf("%d.%d", id, i), version: -1}
				if in.set && rng.IntN(2) == 0 {
					in.version = version
				}
				call := time.Since(s.start)
				out, err := c.register(in)
				back := time.Since(s.start)
				if err != nil {
					t.Error(err)
					return
				}
				version = out.version
				mu.Lock()
				history = append(history, porcupine.Operation{ClientId: id, Input: in, Output: out, Call: int64(call), Return: int64(back)})
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if !porcupine.CheckOperations(register, history) {
		t.Error("the history is not linearizable")
	}
}

// register carries out one operation.
func (c *client) register(in regIn) (regOut, error) {
	path := fmt.Sprintf("/k%d", in.key)
	op, q := wire.OpGetData, wire.Record(&wire.PathWatchRequest{Path: path})
	if in.set {
		op, q = wire.OpSetData, &wire.SetDataRequest{Path: path, Data: []byte(in.value), Version: in.version}
	}
	c.xid++
	if _, err := c.nc.Write(request(c.xid, op, q)); err != nil {
		return regOut{}, err
	}
	b, err := wire.ReadFrame(c.nc, nil, 1<<20)
	if err != nil {
		return regOut{}, err
	}
	d := wire.Decoder(b)
	var h wire.ReplyHeader
	h.Code(&d)
	out := regOut{code: h.Err}
	switch {
	case h.Err != wire.OK:
	case in.set:
		var r wire.StatResponse
		r.Code(&d)
		out.version = r.Stat.Version
	default:
		var r wire.DataResponse
		r.Code(&d)
		out.value, out.version = string(r.Data), r.Stat.Version
	}
	return out, d.Err()
}
