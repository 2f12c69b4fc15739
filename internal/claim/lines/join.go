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
		l.Ask(l.tookProbe, l.gets(l.probes[:min(len(l.probes), claim.ProbeMax)])...)
	case l.doubtful:
		l.Ask(l.tookFind, claim.Sync(l.cfg.Parent), claim.List(l.cfg.Parent))
	default:
		l.AskOne(l.tookCreate, claim.Op{Kind: claim.OpCreate, Path: l.path(claim.BidPrefix(l.cfg.Naming, l.cfg.Nonce)), Data: l.data(), Sequential: l.cfg.Naming != claim.KazooLease})
		l.OnLoss(func() { l.doubtful = true })
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
		ops[i] = claim.Get(l.path(name))
	}
	return ops
}

func (l *Line) tookCreate(r claim.Result) {
	switch {
	case r.Err == nil:
		l.adopt(r.Path[strings.LastIndexByte(r.Path, '/')+1:], false)
	case errors.Is(r.Err, wire.ErrNoNode):
		if l.phase == Joining {
			l.parents.Create(&l.Requester, func(err error) { l.end(claim.Refused, err) },
				claim.Op{Kind: claim.OpParents, Path: l.cfg.Parent, Data: l.parentData()})
		}
	default:
		l.end(claim.Refused, r.Err)
	}
}

// vet ends the claim if the first look shows znodes of another recipe at the parent. It reports whether
// the claim goes on.
func (l *Line) vet(children []string) bool {
	if l.parents.Checked || l.cfg.Rule == Leases {
		return true
	}
	l.parents.Checked = true
	want := claim.KindLock
	switch {
	case l.cfg.Rule == Leadership:
		want = claim.KindElection
	case claim.IsShared(l.cfg.Naming):
		want = claim.KindReadWriteLock
	}
	others := slices.DeleteFunc(slices.Clone(children), func(name string) bool { return name == l.own.Name })
	if err := claim.OtherRecipe(l.cfg.Parent, want, others); err != nil {
		l.end(claim.Refused, err)
	}
	return l.phase == Standing
}

// tookFind lists the bids that may be the one whose reply was lost.
func (l *Line) tookFind(res []claim.Result) {
	if l.refusedBy(res[0]) {
		return
	}
	l.doubtful = false
	switch list := res[1]; {
	case errors.Is(list.Err, wire.ErrNoNode): // without the parent there is no bid
	case list.Err != nil:
		l.end(claim.Refused, list.Err)
	default:
		prefix := claim.BidPrefix(l.cfg.Naming, l.cfg.Nonce)
		for _, b := range claim.BidsOf(l.cfg.Naming, list.Names) {
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
	var refused error
	for i, r := range res {
		switch {
		case errors.Is(r.Err, wire.ErrNoNode):
		case r.Err != nil:
			refused = r.Err
		case r.Stat.EphemeralOwner == l.Current && string(r.Data) == string(l.data()):
			l.probes = nil
			l.adopt(names[i], true)
			return
		}
	}
	if refused != nil {
		l.end(claim.Refused, refused)
	}
}

// adopt records the bid with this name as the Line's own bid.
func (l *Line) adopt(name string, found bool) {
	bid, err := claim.ParseBidOf(l.cfg.Naming, name)
	l.own = bid
	l.own.Name = name // set even if the name is invalid, so that the bid can be removed
	l.Report(Joined{name, found})
	if err != nil {
		l.end(claim.Refused, err)
	}
	if l.phase == Joining {
		l.phase, l.look = Standing, true
	}
}
