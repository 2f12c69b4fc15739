package claim

import (
	"errors"
	"slices"
	"strings"

	"bellwether/wire"
)

// probeMax is how many znodes are read in one request when a plain bid is
// searched for.
const probeMax = 64

// planJoin makes the bid. After a lost reply it is searched for first: a bid
// that nobody knows of would stand in the way of all others.
func (e *Election) planJoin() {
	switch {
	case len(e.probes) > 0:
		e.ask(stepProbe, e.gets(e.probes[:min(len(e.probes), probeMax)])...)
	case e.doubtful:
		e.ask(stepFind, Op{Kind: OpSync, Path: e.cfg.Parent}, Op{Kind: OpList, Path: e.cfg.Parent})
	default:
		e.ask(stepCreate, Op{Kind: OpCreate, Path: e.path(e.cfg.Naming.Prefix(e.cfg.Nonce)), Data: e.data(), Sequential: true})
	}
}

// data is the bid's content: the id, and for names without a nonce the nonce
// in a line of its own.
func (e *Election) data() []byte {
	if e.cfg.Naming == Plain {
		return []byte(e.cfg.ID + "\n" + e.cfg.Nonce.String())
	}
	return []byte(e.cfg.ID)
}

// BidID is the candidate's id in a bid's data, of ours or another library.
func BidID(naming Naming, data []byte) string {
	if naming == Plain {
		if i := len(data) - 33; i >= 0 && data[i] == '\n' && isHex32(string(data[i+1:])) {
			return string(data[:i])
		}
	}
	return string(data)
}

func (e *Election) gets(names []string) []Op {
	ops := make([]Op, len(names))
	for i, name := range names {
		ops[i] = Op{Kind: OpGet, Path: e.path(name)}
	}
	return ops
}

func (e *Election) tookCreate(r Result) {
	switch {
	case r.Err == nil:
		e.adopt(r.Path[strings.LastIndexByte(r.Path, '/')+1:], false)
	case errors.Is(r.Err, wire.ErrNoNode):
		if e.phase == Joining {
			e.ask(stepParents, Op{Kind: OpParents, Path: e.cfg.Parent})
		}
	default:
		e.end(Refused, r.Err)
	}
}

func (e *Election) tookParents(r Result) {
	if r.Err != nil {
		e.end(Refused, r.Err)
	}
}

// tookFind lists what may be the bid whose reply was lost.
func (e *Election) tookFind(list Result) {
	e.doubtful = false
	switch {
	case errors.Is(list.Err, wire.ErrNoNode): // no parent, so no bid
	case list.Err != nil:
		e.end(Refused, list.Err)
	default:
		prefix := e.cfg.Naming.Prefix(e.cfg.Nonce)
		for _, b := range ParseBids(list.Names) {
			if b.Naming == e.cfg.Naming && strings.HasPrefix(b.Name, prefix) {
				e.probes = append(e.probes, b.Name)
			}
		}
		slices.Reverse(e.probes) // the newest is the likeliest
	}
}

// tookProbe compares owner and, where the name carries no nonce, content.
func (e *Election) tookProbe(res []Result) {
	names := e.probes
	e.probes = e.probes[len(res):]
	for i, r := range res {
		switch {
		case errors.Is(r.Err, wire.ErrNoNode):
		case r.Err != nil:
			e.end(Refused, r.Err)
			return
		case r.Stat.EphemeralOwner == e.session && string(r.Data) == string(e.data()):
			e.probes = nil
			e.adopt(names[i], true)
			return
		}
	}
}

// adopt takes a bid as the own one.
func (e *Election) adopt(name string, found bool) {
	bid, err := ParseBid(name)
	e.own = bid
	e.own.Name = name // if only to be removed
	e.tell(Joined{name, found})
	if err != nil {
		e.end(Refused, err)
	}
	if e.phase == Joining {
		e.phase, e.look = Standing, true
	}
}
