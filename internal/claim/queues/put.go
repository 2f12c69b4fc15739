package queues

import (
	"errors"
	"path"
	"slices"
	"strings"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// PutConfig describes a Put.
type PutConfig struct {
	Items string // parent of the items
	// Root and Claims are set for a queue with claims. Root is the path above Items, and Claims is the
	// parent of the claims.
	Root, Claims string
	// Poke is set for an item that is not due yet and goes to a separate parent. It is a path below the
	// parent of the due items, which no other client uses. Put creates and deletes a znode there to wake
	// the waiting consumer.
	Poke string
	Mark string // path of an ephemeral znode that no other client creates
	// Prefix is the first part of the item's name. Unique means that no item had this prefix before, so
	// that finding the item proves that this Put added it.
	Prefix string
	Unique bool
	Data   []byte
}

// Put adds one item to a queue exactly once, even if replies are lost. A consumer may take the item at
// once, so a missing item proves nothing. Put therefore creates a mark, an ephemeral znode, in the same
// transaction.
//
//	create mark and item together ▸ delete the mark
//	                              ▸ answer lost: does the mark exist? yes: delete it; no: try again
type Put struct {
	claim.Requester
	cfg    PutConfig
	marked wire.SessionID // session in which the item was added and the mark exists
	done   bool           // the item was added
	vetted bool           // Root was checked for znodes of other recipes
}

// NewPut returns the state machine. It does nothing until Attached is stepped.
func NewPut(cfg PutConfig) *Put { return &Put{cfg: cfg} }

// Step processes one event, which happened at now.
func (p *Put) Step(now claim.Moment, ev claim.Event) {
	if p.Over() {
		return
	}
	p.Advance(now, ev, p.plan)
	switch {
	case p.Asked != 0 || p.Unsure != 0:
	case p.done && (p.ClientClosed || p.marked != p.Current): // the mark disappears with its session
		p.Ending, p.Failure = claim.Succeeded, nil
	case p.Leaving && !p.done && !p.Over():
		p.End(claim.Withdrawn, nil)
	}
}

// Ready returns what the steps since the last call have produced.
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

// tookLook processes the look at the mark. The mark exists exactly if the item was added.
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

// planSearch searches for the item itself, because the mark disappeared with its session. If the item is
// missing, a consumer may have taken it.
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

// tookRoot checks the children of Root for another recipe. If the server refused the list, the check
// succeeds.
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

// tookDelete ends the Put. A mark that could not be deleted disappears with its session.
func (p *Put) tookDelete([]claim.Result) { p.End(claim.Succeeded, nil) }
