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
	// Wake is set for an item that is not due yet and goes to a separate parent. It is a path below the
	// parent of the due items, which no other client uses. Put creates and deletes a znode there to wake
	// the waiting consumer.
	Wake string
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
	cfg     PutConfig
	marked  wire.SessionID // session in which the item was added and the mark exists
	done    bool           // the item was added
	parents claim.Parents
}

// NewPut returns the state machine. It does nothing until Attached is stepped.
func NewPut(cfg PutConfig) *Put {
	return &Put{cfg: cfg, parents: claim.Parents{Root: cfg.Root, Want: claim.KindWorkQueue}}
}

// Step processes one event, which happened at now.
func (p *Put) Step(now claim.Moment, ev claim.Event) {
	if p.Over() {
		return
	}
	p.Advance(now, ev, p.plan)
	switch {
	case p.Asked != 0 || p.InDoubt != 0:
	case p.done && (p.ClientClosed || p.marked != p.Current): // the mark disappears with its session
		p.Ending, p.Failure = claim.Succeeded, nil
	case p.Leaving && !p.done && !p.Over():
		p.End(claim.Withdrawn, nil)
	}
}

func (p *Put) plan() {
	switch {
	case p.done:
		p.Ask(p.tookDelete, claim.Delete(p.cfg.Mark))
	case p.InDoubt != 0 && p.InDoubt != p.Current:
		p.planSearch()
	case p.InDoubt != 0:
		p.Ask(p.tookLook, claim.Sync(p.cfg.Mark), claim.Get(p.cfg.Mark))
	case !p.Leaving:
		ops := []claim.Op{
			{Kind: claim.OpCreate, Path: p.cfg.Mark},
			{Kind: claim.OpCreate, Path: claim.Join(p.cfg.Items, p.cfg.Prefix), Data: p.cfg.Data, Sequential: true, Persistent: true},
		}
		if p.cfg.Wake != "" {
			ops = append(ops, claim.Op{Kind: claim.OpCreate, Path: p.cfg.Wake, Persistent: true}, claim.Delete(p.cfg.Wake))
		}
		p.Attempt(p.tookPut, claim.Multi(p.cfg.Items, ops...))
	}
}

// tookLook processes the look at the mark. After a sync, the mark exists exactly if the item was added.
func (p *Put) tookLook(res []claim.Result) {
	switch sync, mark := res[0].Err, res[1].Err; {
	case sync != nil:
		p.EndUnclear(sync)
	case mark == nil:
		p.done, p.marked, p.InDoubt = true, p.InDoubt, 0
	case errors.Is(mark, wire.ErrNoNode):
		p.InDoubt = 0
	default:
		p.EndUnclear(mark)
	}
}

// planSearch searches for the item itself, because the mark disappeared with its session. If the item is
// missing, a consumer may have taken it.
func (p *Put) planSearch() {
	if !p.cfg.Unique {
		p.End(claim.Unclear, nil)
		return
	}
	p.Ask(p.tookSearch, claim.Sync(p.cfg.Items), claim.List(p.cfg.Items))
}

func (p *Put) tookSearch(res []claim.Result) {
	there := func(name string) bool { return strings.HasPrefix(name, p.cfg.Prefix) }
	if slices.ContainsFunc(res[1].Names, there) {
		p.InDoubt, p.done = 0, true
	}
	p.End(claim.Succeeded, nil)
}

func (p *Put) tookPut(res []claim.Result) {
	switch err := res[0].Err; {
	case err == nil:
		p.done, p.marked = true, p.Current
	case errors.Is(err, wire.ErrNoNode):
		ops := []claim.Op{claim.MakeParents(p.cfg.Items), claim.MakeParents(p.cfg.Mark[:strings.LastIndexByte(p.cfg.Mark, '/')])}
		if p.cfg.Claims != "" {
			ops = append(ops, claim.MakeParents(p.cfg.Claims))
		}
		if p.cfg.Wake != "" {
			ops = append(ops, claim.MakeParents(path.Dir(p.cfg.Wake)))
		}
		p.parents.Create(&p.Requester, func(err error) { p.End(claim.Failed, err) }, ops...)
	default:
		p.End(claim.Failed, err)
	}
}

// tookDelete ends the Put. A mark that could not be deleted disappears with its session.
func (p *Put) tookDelete([]claim.Result) { p.End(claim.Succeeded, nil) }
