package recipe

import (
	"context"
	"slices"

	"bellwether/internal/claim/share"
	"bellwether/zk"
)

// PartitionerOptions are the settings of a Partitioner or Work; nil is all defaults.
type PartitionerOptions struct {
	// Election are the settings of the election by which a part is owned.
	Election ElectionOptions
	// Parallel is how many parts a member owns, or tries to, at the same time.
	// Default no limit; for Work 1.
	Parallel int
}

// Partitioner shares a fixed set of parts among the members of a group. Which
// member a part is meant for follows from who is there; whether it owns it is
// decided by an election of that part alone, in which a member stands while the part
// is meant for it. So no part has two owners, whatever they know of each
// other, and a part changes hands when its owner has let go, without a barrier.
type Partitioner struct {
	c      *zk.Client
	parent string
	id     string
	parts  []string
	opt    PartitionerOptions
}

// NewPartitioner prepares a member, with its id, of those who share the parts. The parts
// are names of znodes and the same for all members. The caller still owns the client.
func NewPartitioner(c *zk.Client, parent, id string, parts []string, o *PartitionerOptions) (*Partitioner, error) {
	p := &Partitioner{c: c, parent: parent, id: id, parts: slices.Clone(parts)}
	if o != nil {
		p.opt = *o
	}
	for _, name := range append(slices.Clone(parts), id) {
		if err := checkName("partitioner "+parent, name); err != nil {
			return p, err
		}
	}
	return p, checkPath("partitioner", parent)
}

// Run is a member until the context ends. For each part that it owns it calls
// own, whose context ends when the part is to be let go; it is somebody else's
// no sooner than own has returned or the handle is over, see Election.Lead. An
// error of own ends Run with it, unless it is one of those that end a term and not
// Lead: then this member stands for the part again after a pause. Where own returns nil before that, nobody stands
// for the part until it is meant for another member. A member whose id is taken waits until it is free.
func (p *Partitioner) Run(ctx context.Context, own func(ctx context.Context, part string, h *Handle) error) error {
	cfg := share.SharingConfig{Parent: p.parent, ID: p.id, Parts: p.parts, Most: p.opt.Parallel}
	return newSharing(p.c, cfg, p.opt.Election, own).run(ctx)
}
