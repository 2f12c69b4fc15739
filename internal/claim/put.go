package claim

import (
	"errors"
	"path"
	"slices"
	"strings"

	"bellwether/wire"
)

// PutConfig is what a Put is about.
type PutConfig struct {
	Items string // below which the items stand
	// Root and Claims are of a queue with claims: the path above Items, and where items are claimed.
	Root, Claims string
	// Poke is a path below the items that nobody else uses, for an item that is not due yet and is
	// put elsewhere: what is made and deleted there wakes the consumer that waits. Empty: none.
	Poke string
	Mark string // path of an ephemeral znode that nobody else makes
	// Prefix of the item's name. Unique: it never was before, so that an item
	// that is there tells that it was put.
	Prefix string
	Unique bool
	Data   []byte
}

// Put adds one item to a queue, once whatever replies are lost. An item may be
// taken at once, so its absence tells nothing: what does is a mark, an
// ephemeral znode that is made in the same transaction.
//
//	create mark and item together ▸ delete the mark
//	                              ▸ answer lost: does the mark stand? then delete it, else once more
type Put struct {
	asker
	cfg    PutConfig
	marked wire.SessionID // the item is put, and the mark stands in this session
	done   bool           // the item is put
	vetted bool           // no other recipe stands at Root, as far as names tell
}

// NewPut makes the state machine, which waits for Attached.
func NewPut(cfg PutConfig) *Put { return &Put{cfg: cfg} }

// Step takes one event, which happened at now.
func (p *Put) Step(now Moment, ev Event) {
	if p.Over() {
		return
	}
	p.step(now, ev, p.plan)
	switch {
	case p.asked != 0 || p.doubt != 0:
	case p.done && (p.shut || p.marked != p.session): // the mark goes with its session
		p.outcome, p.err = Succeeded, nil
	case p.leaving && !p.done && !p.Over():
		p.end(Withdrawn, nil)
	}
}

// Ready hands out what has come of the steps since the last call.
func (p *Put) Ready() Ready { return p.ready() }

func (p *Put) plan() {
	switch {
	case p.done:
		p.ask(p.tookDelete, Op{Kind: OpDelete, Path: p.cfg.Mark, Version: AnyVersion})
	case p.doubt != 0 && p.doubt != p.session:
		p.planSearch()
	case p.doubt != 0:
		p.ask(p.tookLook, Op{Kind: OpSync, Path: p.cfg.Mark}, Op{Kind: OpGet, Path: p.cfg.Mark})
	case !p.leaving:
		ops := []Op{
			{Kind: OpCreate, Path: p.cfg.Mark},
			{Kind: OpCreate, Path: Join(p.cfg.Items, p.cfg.Prefix), Data: p.cfg.Data, Sequential: true, Persistent: true},
		}
		if p.cfg.Poke != "" {
			ops = append(ops, Op{Kind: OpCreate, Path: p.cfg.Poke, Persistent: true}, Op{Kind: OpDelete, Path: p.cfg.Poke, Version: AnyVersion})
		}
		p.attempt(p.tookPut, Op{Kind: OpMulti, Path: p.cfg.Items, Ops: ops})
	}
}

// tookLook: where the mark stands the item was put, where it does not it was not.
func (p *Put) tookLook(res []Result) {
	switch err := errors.Join(res[0].Err, res[1].Err); {
	case err == nil:
		p.done, p.marked, p.doubt = true, p.doubt, 0
	case errors.Is(err, wire.ErrNoNode):
		p.doubt = 0
	default:
		p.end(Failed, err)
	}
}

// planSearch looks for the item itself, as the mark went with its session. One
// that is not there may have been taken.
func (p *Put) planSearch() {
	if !p.cfg.Unique {
		p.end(Unclear, nil)
		return
	}
	p.ask(p.tookSearch, Op{Kind: OpSync, Path: p.cfg.Items}, Op{Kind: OpList, Path: p.cfg.Items})
}

func (p *Put) tookSearch(res []Result) {
	there := func(name string) bool { return strings.HasPrefix(name, p.cfg.Prefix) }
	if slices.ContainsFunc(res[1].Names, there) {
		p.doubt, p.done = 0, true
	}
	p.end(Succeeded, nil)
}

func (p *Put) tookPut(res []Result) {
	switch err := res[0].Err; {
	case err == nil:
		p.done, p.marked = true, p.session
	case errors.Is(err, wire.ErrNoNode) && p.cfg.Root != "" && !p.vetted:
		p.ask(p.tookRoot, Op{Kind: OpList, Path: p.cfg.Root})
	case errors.Is(err, wire.ErrNoNode):
		ops := []Op{{Kind: OpParents, Path: p.cfg.Items}, {Kind: OpParents, Path: p.cfg.Mark[:strings.LastIndexByte(p.cfg.Mark, '/')]}}
		if p.cfg.Claims != "" {
			ops = append(ops, Op{Kind: OpParents, Path: p.cfg.Claims})
		}
		if p.cfg.Poke != "" {
			ops = append(ops, Op{Kind: OpParents, Path: path.Dir(p.cfg.Poke)})
		}
		p.ask(p.tookParents, ops...)
	default:
		p.end(Failed, err)
	}
}

// tookRoot: a list that is refused tells nothing.
func (p *Put) tookRoot(res []Result) {
	p.vetted = true
	if err := otherRecipe(p.cfg.Root, KindWorkQueue, res[0].Names); err != nil {
		p.end(Failed, err)
	}
}

func (p *Put) tookParents(res []Result) {
	for _, r := range res {
		if r.Err != nil {
			p.end(Failed, r.Err)
			return
		}
	}
}

// tookDelete: a mark that cannot be removed goes with its session.
func (p *Put) tookDelete([]Result) { p.end(Succeeded, nil) }
