package queues

import (
	"cmp"
	"errors"
	"strings"

	"bellwether/internal/claim"
	"bellwether/internal/claim/lines"
	"bellwether/wire"
)

// position is a consumer's bid in the line of a queue. The bid ends with the session. The bid of the next
// session has another nonce, so that the two cannot be confused.
type position struct {
	nonce      claim.Nonce
	own        string          // name of the bid; empty if there is none or its name is unknown
	sent       bool            // the bid may have been created, but its name is unknown
	ahead      string          // name of the bid directly ahead
	watch      bool            // the bid directly ahead is watched
	first      bool            // no bid is ahead
	persistent bool            // the watched znode is persistent, so it is not a consumer's bid
	ignored    map[string]bool // persistent znodes in the line, to be ignored
}

// renew resets the position for a new session.
func (p *position) renew() {
	p.nonce[len(p.nonce)-1]++
	*p = position{nonce: p.nonce}
}

func (p *position) prefix() string { return claim.BidPrefix(claim.Own, p.nonce) }

// planPlace creates the bid, then waits until no bid is ahead. It watches the nearest one ahead.
func (t *Take) planPlace() {
	p, line := &t.place, t.Config.Line
	switch {
	case p.own == "" && p.sent:
		t.Ask(t.tookFind, claim.Sync(line), claim.List(line))
	case p.own == "":
		p.sent = true
		t.Ask(t.tookPlace, claim.Op{Kind: claim.OpCreate, Path: claim.Join(line, p.prefix()), Sequential: true})
	case p.ahead == "":
		t.Ask(t.tookLine, claim.List(line))
	case p.persistent:
		t.Ask(func([]claim.Result) { p.watch, p.persistent, p.ahead = false, false, "" }, claim.Unwatch(claim.Join(line, p.ahead)))
	case !p.watch:
		t.Ask(t.tookAhead, claim.Op{Kind: claim.OpWatch, Path: claim.Join(line, p.ahead)})
	}
}

func (t *Take) tookPlace(res []claim.Result) {
	p := &t.place
	p.sent = false
	switch err := res[0].Err; {
	case err == nil:
		p.own = res[0].Path[strings.LastIndexByte(res[0].Path, '/')+1:]
		t.clock.see(res[0].Stat, t.Now)
	case !errors.Is(err, wire.ErrNoNode):
		t.End(claim.Failed, err)
	default:
		t.AskOne(t.tookParents, claim.MakeParents(t.Config.Line))
	}
}

// tookParents processes the creation of a parent.
func (t *Take) tookParents(r claim.Result) {
	if r.Err != nil {
		t.refuse(r.Err)
	}
}

// tookFind searches for a bid whose reply was lost. If the server refuses the sync or the list, the consumer gives up,
// because a new attempt could create a second bid.
func (t *Take) tookFind(res []claim.Result) {
	t.place.sent = false
	if err := cmp.Or(res[0].Err, res[1].Err); err != nil && !errors.Is(err, wire.ErrNoNode) {
		t.refuse(err)
		return
	}
	for _, name := range res[1].Names {
		if strings.HasPrefix(name, t.place.prefix()) {
			t.place.own = name
		}
	}
}

func (t *Take) tookLine(res []claim.Result) {
	if res[0].Err != nil {
		t.refuse(res[0].Err)
		return
	}
	own, err := claim.ParseBid(t.place.own)
	if err != nil {
		t.refuse(err)
		return
	}
	ahead := claim.Preceding(claim.ParseBids(res[0].Names), own, t.place.ignored)
	if t.place.first = len(ahead) == 0; !t.place.first {
		t.place.ahead = ahead[len(ahead)-1].Name
		t.Report(lines.Waiting{Bid: t.place.own, For: t.place.ahead, Ahead: len(ahead)})
	}
}

// tookAhead processes the watch on the bid ahead. If the bid is gone, the consumer looks again. A
// persistent znode is not a bid, and is ignored from now on.
func (t *Take) tookAhead(res []claim.Result) {
	p := &t.place
	switch err := res[0].Err; {
	case err == nil:
		p.watch = true
		if p.persistent = res[0].Stat.EphemeralOwner == 0; p.persistent {
			if p.ignored == nil {
				p.ignored = map[string]bool{}
			}
			p.ignored[p.ahead] = true
		}
	case errors.Is(err, wire.ErrNoNode):
		t.place.ahead = ""
	default:
		t.refuse(err)
	}
}

func (p *position) fired(path, line string) {
	if p.watch && path == claim.Join(line, p.ahead) {
		p.watch, p.persistent, p.ahead = false, false, ""
	}
}
