package recipe

import (
	"context"
	"errors"
	"iter"
	"slices"

	"bellwether/internal/claim"
	"bellwether/internal/claim/lines"
	"bellwether/internal/claim/value"
	"bellwether/zk"
)

// readsMax limits how many znodes Candidates and Group.Members read in one request.
const readsMax = 128

// Leader is the current leader, as LEADER names it.
type Leader struct {
	ID    string
	Bid   string // name below the parent
	Token zk.Zxid
}

// Vacant reports whether LEADER names no leader.
func (l Leader) Vacant() bool { return l.Token == 0 }

// Candidate is a bid that exists in an election.
type Candidate struct {
	ID      string
	Bid     string // name below the parent
	Naming  Naming
	Token   zk.Zxid // the fencing token of the handle if this candidate leads
	Session zk.SessionID
}

// Leader returns the current leader, or ErrNoLeader. It reads LEADER once. If the election
// has no LEADER, see ElectionOptions.Leader, it lists the candidates instead.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	if e.opt.Leader == "" {
		return e.firstCandidate(ctx)
	}
	data, stat, err := e.c.Get(ctx, e.opt.Leader)
	if errors.Is(err, zk.ErrNoNode) {
		return Leader{}, ErrNoLeader
	}
	if err != nil {
		return Leader{}, err
	}
	l := Leader(e.know(claim.NoticeOf(data, stat)))
	if l.Vacant() {
		return l, ErrNoLeader
	}
	return l, nil
}

func (e *Election) firstCandidate(ctx context.Context) (Leader, error) {
	all, err := e.Candidates(ctx)
	if err != nil {
		return Leader{}, err
	}
	if len(all) == 0 {
		return Leader{}, ErrNoLeader
	}
	return Leader{ID: all[0].ID, Bid: all[0].Bid, Token: all[0].Token}, nil
}

// know compares the content of LEADER with what this Election has already seen, so that an older leader is not shown again.
func (e *Election) know(n claim.Notice) claim.Notice {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.seen.Newest(n)
}

// Observe yields the current leader and then each change, until the
// context ends. It yields a vacant Leader while nobody leads. It survives lost connections and sessions. It may
// merge changes in quick succession, or while it is not connected, into one. Each change costs the
// observer at most two watch events, and costs the candidates nothing. The second value is the error that
// ends the iteration: the context's, zk.ErrClosed, or the error of a server that refused a request.
//
// Observe needs LEADER: if the election has none, it ends with ErrNoLeader.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		if e.opt.Leader == "" {
			yield(Leader{}, ErrNoLeader)
			return
		}
		m := value.NewLeaders(e.opt.Leader, e.know)
		err := e.follow(ctx, "observe", e.opt.Leader, m, func() bool {
			now, ok := m.Next()
			return !ok || yield(Leader(now), nil)
		})
		if err != nil {
			yield(Leader{}, err)
		}
	}
}

// Candidates returns all bids in the order in which they will lead. The first one leads
// or is about to lead.
func (e *Election) Candidates(ctx context.Context) ([]Candidate, error) {
	if err := e.c.Sync(ctx, e.cfg.Parent); err != nil {
		return nil, err
	}
	names, _, err := e.c.Children(ctx, e.cfg.Parent)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Candidate
	for bids := range slices.Chunk(claim.ParseBids(names), readsMax) {
		some, err := e.readBids(ctx, bids)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	slices.SortFunc(all, func(a, b Candidate) int { return int(min(max(a.Token-b.Token, -1), 1)) })
	return all, nil
}

func (e *Election) readBids(ctx context.Context, bids []claim.Bid) ([]Candidate, error) {
	ops := make([]zk.Op, len(bids))
	for i, b := range bids {
		ops[i] = zk.GetOp(claim.Join(e.cfg.Parent, b.Name))
	}
	res, err := e.c.MultiRead(ctx, ops...)
	if err != nil {
		return nil, err
	}
	var out []Candidate
	for i, r := range res {
		switch {
		case errors.Is(r.Err, zk.ErrNoNode), r.Err == nil && r.Stat.EphemeralOwner == 0:
			continue // deleted meanwhile, or not a bid
		case r.Err != nil:
			return nil, &zk.OpError{Op: "getData", Path: claim.Join(e.cfg.Parent, bids[i].Name), Err: r.Err}
		}
		out = append(out, Candidate{ID: lines.BidID(bids[i].Naming, r.Data), Bid: bids[i].Name, Naming: bids[i].Naming,
			Token: r.Stat.Czxid, Session: r.Stat.EphemeralOwner})
	}
	return out, nil
}
