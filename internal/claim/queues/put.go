package queues

import (
	"errors"
	"path"
	"slices"
	"strings"

	"bellwether/internal/claim"
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
	claim.Requester
	cfg    PutConfig
	marked wire.SessionID // the item is put, and the mark stands in this session
	done   bool           // the item is put
	vetted bool           // no other recipe stands at Root, as far as names tell
}

// NewPut makes the state machine, which waits for Attached.
func NewPut(cfg PutConfig) *Put { return &Put{cfg: cfg} }

// Step takes one event, which happened at now.
func (p *Put) Step(now claim.Moment, ev claim.Event) {
	if p.Over() {
		return
	}
	p.Advance(now, ev, p.plan)
	switch {
	case p.Asked != 0 || p.Unsure != 0:
	case p.done && (p.ClientClosed || p.marked != p.Current): // the mark goes with its session
		p.Ending, p.Failure = claim.Succeeded, nil
	case p.Leaving && !p.done && !p.Over():
		p.End(claim.Withdrawn, nil)
	}
}

// Ready hands out what has come of the steps since the last call.
func (p *Put) Ready() claim.Ready { return p.Collect() }

func (p *Put) plan() {
	switch {
	case p.done:
		p.Ask(p.tookDelete, claim.Op{Kind: claim.OpDelete, Path: p.cfg.Mark, Version: claim.AnyVersion})
	case p.Unsure != 0 && p.Unsure != p.Current:
		p.planSearch()
	case p.Unsure != 0:
		p.Ask(p.tookLook, claim.Op{Kind: claim.OpSync, Path: p.cfg.Mark}, claim.Op{Kind: claim.OpGet, Path: p.cfg.Mark})
	case !p.Leaving:
		ops := []claim.Op{
			{Kind: claim.OpCreate, Path: p.cfg.Mark},
			{Kind: claim.OpCreate, Path: claim.Join(p.cfg.Items, p.cfg.Prefix), Data: p.cfg.Data, Sequential: true, Persistent: true},
		}
		if p.cfg.Poke != "" {
			ops = append(ops, claim.Op{Kind: claim.OpCreate, Path: p.cfg.Poke, Persistent: true}, claim.Op{Kind: claim.OpDelete, Path: p.cfg.Poke, Version: claim.AnyVersion})
		}
		p.Attempt(p.tookPut, claim.Op{Kind: claim.OpMulti, Path: p.cfg.Items, Ops: ops})
	}
}

// tookLook: where the mark stands the item was put, where it does not it was not.
func (p *Put) tookLook(res []claim.Result) {
	switch err := errors.Join(res[0].Err, res[1].Err); {
	case err == nil:
		p.done, p.marked, p.Unsure = true, p.Unsure, 0
	case errors.Is(err, wire.ErrNoNode):
		p.Unsure = 0
	default:
		p.End(claim.Failed, err)
	}
}

// planSearch looks for the item itself, as the mark went with its session. One
// that is not there may have been taken.
func (p *Put) planSearch() {
	if !p.cfg.Unique {
		p.End(claim.Unclear, nil)
		return
	}
	p.Ask(p.tookSearch, claim.Op{Kind: claim.OpSync, Path: p.cfg.Items}, claim.Op{Kind: claim.OpList, Path: p.cfg.Items})
}

func (p *Put) tookSearch(res []claim.Result) {
	there := func(name string) bool { return strings.HasPrefix(name, p.cfg.Prefix) }
	if slices.ContainsFunc(res[1].Names, there) {
		p.Unsure, p.done = 0, true
	}
	p.End(claim.Succeeded, nil)
}

func (p *Put) tookPut(res []claim.Result) {
	switch err := res[0].Err; {
	case err == nil:
		p.done, p.marked = true, p.Current
	case errors.Is(err, wire.ErrNoNode) && p.cfg.Root != "" && !p.vetted:
		p.Ask(p.tookRoot, claim.Op{Kind: claim.OpList, Path: p.cfg.Root})
	case errors.Is(err, wire.ErrNoNode):
		ops := []claim.Op{{Kind: claim.OpParents, Path: p.cfg.Items}, {Kind: claim.OpParents, Path: p.cfg.Mark[:strings.LastIndexByte(p.cfg.Mark, '/')]}}
		if p.cfg.Claims != "" {
			ops = append(ops, claim.Op{Kind: claim.OpParents, Path: p.cfg.Claims})
		}
		if p.cfg.Poke != "" {
			ops = append(ops, claim.Op{Kind: claim.OpParents, Path: path.Dir(p.cfg.Poke)})
		}
		p.Ask(p.tookParents, ops...)
	default:
		p.End(claim.Failed, err)
	}
}

// tookRoot: a list that is refused tells nothing.
func (p *Put) tookRoot(res []claim.Result) {
	p.vetted = true
	if err := claim.OtherRecipe(p.cfg.Root, claim.KindWorkQueue, res[0].Names); err != nil {
		p.End(claim.Failed, err)
	}
}

func (p *Put) tookParents(res []claim.Result) {
	for _, r := range res {
		if r.Err != nil {
			p.End(claim.Failed, r.Err)
			return
		}
	}
}

// tookDelete: a mark that cannot be removed goes with its session.
func (p *Put) tookDelete([]claim.Result) { p.End(claim.Succeeded, nil) }
