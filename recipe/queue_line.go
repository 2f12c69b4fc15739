package recipe

import (
	"context"
	"errors"

	"bellwether/internal/claim"
	"bellwether/wire"
	"bellwether/zk"
)

// spot is a consumer's place in the line of a queue. Only the first in the
// line looks for items, so that one that comes wakes one consumer, however
// many wait.
type spot struct {
	q       *queue
	session wire.SessionID
	bid     string // its path; who takes an item deletes it in the same transaction
}

// takeSpot waits until all who came before have their items. The place is to
// be ended.
func (q *queue) takeSpot(ctx context.Context) (*spot, error) {
	session, err := currentSession(ctx, q.b.c)
	if err != nil {
		return nil, err
	}
	t := &spot{q: q, session: session}
	in := zk.InSession(ctx, session)
	t.bid, _, err = q.b.c.CreateProtected(in, claim.Join(q.line, "n_"), nil, q.options(zk.Ephemeral, zk.Sequential)...)
	if errors.Is(err, zk.ErrNoNode) {
		if err = q.make(in, q.line); err == nil {
			t.bid, _, err = q.b.c.CreateProtected(in, claim.Join(q.line, "n_"), nil, q.options(zk.Ephemeral, zk.Sequential)...)
		}
	}
	if err != nil {
		return nil, err
	}
	if err = t.first(in); err != nil {
		t.end(ctx)
		return nil, err
	}
	return t, nil
}

// first waits for everybody ahead, one at a time, from the nearest on.
func (t *spot) first(ctx context.Context) error {
	own, err := claim.ParseBid(t.bid[len(t.q.line)+1:])
	if err != nil {
		return err
	}
	for {
		names, _, err := t.q.b.c.Children(ctx, t.q.line)
		if err != nil {
			return err
		}
		var ahead claim.Bid
		for _, b := range claim.ParseBids(names) {
			if b.Seq-own.Seq < 0 && (ahead.Name == "" || b.Seq-ahead.Seq > 0) {
				ahead = b
			}
		}
		if ahead.Name == "" {
			return nil
		}
		_, _, w, err := t.q.b.c.GetW(ctx, claim.Join(t.q.line, ahead.Name))
		if err == nil {
			err = waitAny(ctx, w)
		}
		if err = absent(err); err != nil {
			return err
		}
	}
}

// end gives up the place, if it was not given up with a transaction.
func (t *spot) end(ctx context.Context) { sweep(ctx, t.q.b.c, t.session, t.bid) }
