package recipe

import (
	"context"
	"slices"

	"bellwether/internal/claim/share"
	"bellwether/zk"
)

// PartitionerOptions are the settings of a Partitioner or Work. A nil pointer means all defaults.
type PartitionerOptions struct {
	// Election holds the settings of the election that each part has.
	Election ElectionOptions
	// Parallel limits how many parts a member owns, or has bids for, at the same time. By
	// default there is no limit; for Work the default is 1.
	Parallel int
}

// Partitioner shares a fixed set of parts among the members of a group. The present
// members determine to which of them each part is assigned. But only the part's own
// election decides who owns the part: a member takes part in the election while the part
// is assigned to it. So no part has two owners, whatever the members know of each other.
// A part moves when its owner has let it go, and no member waits for the others.
type Partitioner struct {
	c      *zk.Client
	parent string
	id     string
	parts  []string
	opt    PartitionerOptions
}

// NewPartitioner prepares a member of the group that shares the parts. The parts
// are names of znodes, the same for all members. The caller still owns the client.
func NewPartitioner(c *zk.Client, parent, id string, parts []string, o *PartitionerOptions) (*Partitioner, error) {
	p := &Partitioner{c: c, parent: parent, id: id, parts: slices.Clone(parts), opt: optionsOr(o)}
	for _, name := range append(slices.Clone(parts), id) {
		if err := checkName("partitioner "+parent, name); err != nil {
			return p, err
		}
	}
	return p, checkClient("partitioner", c, parent)
}

// Run makes this client a member until the context ends. For each part that the member
// owns, Run calls own. The context of own ends when the part must be let go. Nobody else
// owns the part before own has returned or the handle is over, see Election.Lead. If own
// returns an error, Run ends with that error, unless it is one of those after which
// Election.Lead campaigns again: then this member makes a bid for the part again after a
// pause. If own returns nil while the part is assigned to this member, no member makes a
// bid for the part until it is assigned to another member. If another member has the same
// id, Run waits until the id is free.
func (p *Partitioner) Run(ctx context.Context, own func(ctx context.Context, part string, h *Handle) error) error {
	if own == nil {
		return errNil("partitioner", p.parent, "function own")
	}
	cfg := share.SharingConfig{Parent: p.parent, ID: p.id, Parts: p.parts, Most: p.opt.Parallel}
	return newSharing(p.c, cfg, p.opt.Election, own).run(ctx)
}
