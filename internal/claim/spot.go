package claim

import (
	"errors"
	"strings"

	"bellwether/wire"
)

// spot is a consumer's place in the line of a queue. It ends with the
// session; the next one has another nonce, lest it be taken for the same.
type spot struct {
	nonce Nonce
	own   string          // its name; empty while there is none, or it is not known
	sent  bool            // it may have been made, its name is not known
	ahead string          // the place right before it
	watch bool            // which is watched
	first bool            // nobody is before it
	alien bool            // the place ahead is watched, and nobody's
	aside map[string]bool // places that no session holds
}

// renew is the place of the next session.
func (p *spot) renew() {
	p.nonce[len(p.nonce)-1]++
	*p = spot{nonce: p.nonce}
}

func (p *spot) prefix() string { return Own.Prefix(p.nonce) }

// planPlace stands in the line and waits there, from the nearest ahead on.
func (t *Take) planPlace() {
	p, line := &t.place, t.cfg.Line
	switch {
	case p.own == "" && p.sent:
		t.ask(t.tookFind, Op{Kind: OpSync, Path: line}, Op{Kind: OpList, Path: line})
	case p.own == "":
		p.sent = true
		t.ask(t.tookPlace, Op{Kind: OpCreate, Path: Join(line, p.prefix()), Sequential: true})
	case p.ahead == "":
		t.ask(t.tookLine, Op{Kind: OpList, Path: line})
	case p.alien:
		t.ask(func([]Result) { p.watch, p.alien, p.ahead = false, false, "" }, Op{Kind: OpUnwatch, Path: Join(line, p.ahead)})
	case !p.watch:
		t.ask(t.tookAhead, Op{Kind: OpWatch, Path: Join(line, p.ahead)})
	}
}

func (t *Take) tookPlace(res []Result) {
	p := &t.place
	p.sent = false
	switch err := res[0].Err; {
	case err == nil:
		p.own = res[0].Path[strings.LastIndexByte(res[0].Path, '/')+1:]
		t.clock.see(res[0].Stat, t.now)
	case !errors.Is(err, wire.ErrNoNode):
		t.end(Failed, err)
	default:
		t.ask(t.made, Op{Kind: OpParents, Path: t.cfg.Line})
	}
}

// made ends the machine where a parent could not be made.
func (t *Take) made(res []Result) {
	for _, r := range res {
		if r.Err != nil && !t.Over() {
			t.refuse(r.Err)
		}
	}
}

// tookFind looks for a place whose answer was lost. Whoever may not look does not
// stand in the line a second time.
func (t *Take) tookFind(res []Result) {
	t.place.sent = false
	if err := res[1].Err; err != nil && !errors.Is(err, wire.ErrNoNode) {
		t.refuse(err)
		return
	}
	for _, name := range res[1].Names {
		if strings.HasPrefix(name, t.place.prefix()) {
			t.place.own = name
		}
	}
}

func (t *Take) tookLine(res []Result) {
	if res[0].Err != nil {
		t.refuse(res[0].Err)
		return
	}
	own, err := ParseBid(t.place.own)
	if err != nil {
		t.refuse(err)
		return
	}
	ahead := preceding(ParseBids(res[0].Names), own, t.place.aside)
	if t.place.first = len(ahead) == 0; !t.place.first {
		t.place.ahead = ahead[len(ahead)-1].Name
		t.tell(Waiting{Bid: t.place.own, For: t.place.ahead, Ahead: len(ahead)})
	}
}

// tookAhead: one that is gone means to look again, and one that goes with no
// session is nobody's place.
func (t *Take) tookAhead(res []Result) {
	p := &t.place
	switch err := res[0].Err; {
	case err == nil:
		p.watch = true
		if p.alien = res[0].Stat.EphemeralOwner == 0; p.alien {
			if p.aside == nil {
				p.aside = map[string]bool{}
			}
			p.aside[p.ahead] = true
		}
	case errors.Is(err, wire.ErrNoNode):
		t.place.ahead = ""
	default:
		t.refuse(err)
	}
}

func (p *spot) fired(path, line string) {
	if p.watch && path == Join(line, p.ahead) {
		p.watch, p.alien, p.ahead = false, false, ""
	}
}
