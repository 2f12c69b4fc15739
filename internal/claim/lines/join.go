package lines

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// planJoin creates the bid. If the reply to an earlier creation was lost, it first searches for that bid:
// a bid that no client knows would block all others.
func (l *Line) planJoin() {
	switch {
	case len(l.probes) > 0:
		l.ask(stepProbe, l.gets(l.probes[:min(len(l.probes), claim.ProbeMax)])...)
	case l.doubtful:
		l.ask(stepFind, claim.Op{Kind: claim.OpSync, Path: l.cfg.Parent}, claim.Op{Kind: claim.OpList, Path: l.cfg.Parent})
	default:
		l.ask(stepCreate, claim.Op{Kind: claim.OpCreate, Path: l.path(l.cfg.Naming.Prefix(l.cfg.Nonce)), Data: l.data(), Sequential: l.cfg.Naming != claim.KazooLease})
	}
}

// data returns the content of the bid: the id and, if names of this scheme contain no nonce, the nonce on
// a second line.
func (l *Line) data() []byte {
	if l.cfg.Naming == claim.Plain {
		return []byte(l.cfg.ID + "\n" + l.cfg.Nonce.String())
	}
	return []byte(l.cfg.ID)
}

// parentData returns the data for a parent that this bid creates. kazoo's Semaphore stores its number of
// leases there, and cannot read a parent without data.
func (l *Line) parentData() []byte {
	if l.cfg.Naming == claim.KazooLease {
		return strconv.AppendInt(nil, int64(l.cfg.Leases), 10)
	}
	return nil
}

// BidID returns the candidate's id from the data of a bid of this project or another library.
func BidID(naming claim.Naming, data []byte) string {
	if naming == claim.Plain {
		if i := len(data) - 33; i >= 0 && data[i] == '\n' && claim.IsHex32(string(data[i+1:])) {
			return string(data[:i])
		}
	}
	return string(data)
}

func (l *Line) gets(names []string) []claim.Op {
	ops := make([]claim.Op, len(names))
	for i, name := range names {
		ops[i] = claim.Op{Kind: claim.OpGet, Path: l.path(name)}
	}
	return ops
}

func (l *Line) tookCreate(r claim.Result) {
	switch {
	case r.Err == nil:
		l.adopt(r.Path[strings.LastIndexByte(r.Path, '/')+1:], false)
	case errors.Is(r.Err, wire.ErrNoNode):
		switch {
		case l.phase != Joining:
		case l.cfg.Root != "" && !l.vetted:
			l.ask(stepRoot, claim.Op{Kind: claim.OpList, Path: l.cfg.Root})
		default:
			l.ask(stepParents, claim.Op{Kind: claim.OpParents, Path: l.cfg.Parent, Data: l.parentData()})
		}
	default:
		l.end(claim.Refused, r.Err)
	}
}

// tookRoot checks the children of Root for another recipe. If the server refused the list, Root counts as
// unused.
func (l *Line) tookRoot(list claim.Result) {
	l.vetted = true
	if err := claim.OtherRecipe(l.cfg.Root, claim.KindSemaphore, list.Names); err != nil {
		l.end(claim.Refused, err)
	}
}

// vet ends the claim if the first look shows znodes of another recipe at the parent. It reports whether
// the claim goes on.
func (l *Line) vet(children []string) bool {
	if l.vetted || l.cfg.Rule == Leases {
		return true
	}
	l.vetted = true
	want := claim.KindLock
	switch {
	case l.cfg.Rule == Leadership:
		want = claim.KindElection
	case l.cfg.Naming.Shared():
		want = claim.KindReadWriteLock
	}
	others := slices.DeleteFunc(slices.Clone(children), func(name string) bool { return name == l.own.Name })
	if err := claim.OtherRecipe(l.cfg.Parent, want, others); err != nil {
		l.end(claim.Refused, err)
	}
	return l.phase == Standing
}

func (l *Line) tookParents(r claim.Result) {
	if r.Err != nil {
		l.end(claim.Refused, r.Err)
	}
}

// tookFind lists the bids that may be the one whose reply was lost.
func (l *Line) tookFind(list claim.Result) {
	l.doubtful = false
	switch {
	case errors.Is(list.Err, wire.ErrNoNode): // without the parent there is no bid
	case list.Err != nil:
		l.end(claim.Refused, list.Err)
	default:
		prefix := l.cfg.Naming.Prefix(l.cfg.Nonce)
		for _, b := range l.cfg.Naming.Bids(list.Names) {
			if b.Naming == l.cfg.Naming && strings.HasPrefix(b.Name, prefix) {
				l.probes = append(l.probes, b.Name)
			}
		}
		slices.Reverse(l.probes) // the newest bid is the most likely one
	}
}

// tookProbe identifies the bid by its owner and its data.
func (l *Line) tookProbe(res []claim.Result) {
	names := l.probes
	l.probes = l.probes[len(res):]
	for i, r := range res {
		switch {
		case errors.Is(r.Err, wire.ErrNoNode):
		case r.Err != nil:
			l.end(claim.Refused, r.Err)
			return
		case r.Stat.EphemeralOwner == l.session && string(r.Data) == string(l.data()):
			l.probes = nil
			l.adopt(names[i], true)
			return
		}
	}
}

// adopt records a bid as the own one.
func (l *Line) adopt(name string, found bool) {
	bid, err := l.cfg.Naming.Parse(name)
	l.own = bid
	l.own.Name = name // set even if the name is invalid, so that the bid can be removed
	l.tell(Joined{name, found})
	if err != nil {
		l.end(claim.Refused, err)
	}
	if l.phase == Joining {
		l.phase, l.look = Standing, true
	}
}
