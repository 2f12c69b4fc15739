package recipe

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"bellwether/internal/claim"
	"bellwether/zk"
)

// QueueNaming is how items are named, and so with whose producers and
// consumers a queue is shared. Items of all namings are understood.
type QueueNaming uint8

// The namings.
const (
	OwnItems   QueueNaming = iota // <32 hex digits>-entry-<priority>-<seq>
	KazooItems                    // entry-<priority>-<seq>, of kazoo's Queue and LockingQueue
	PlainItems                    // qn-<seq>, of Curator's SimpleDistributedQueue and Apache's recipe: no priorities
)

// QueueOptions are the settings of a Queue or a WorkQueue; nil is all defaults.
type QueueOptions struct {
	Naming QueueNaming
	// ACL of the znodes made, open to everybody by default.
	ACL zk.ACLs
}

// ErrPriority: a priority is not between 0 and 999, or the naming has none.
var ErrPriority = errors.New("priorities are 0 to 999, and plain items have none")

// queue is what Queue and WorkQueue have in common.
type queue struct {
	b      bidder
	items  string // below which they stand
	line   string // below which consumers wait
	naming QueueNaming
}

func newQueue(c *zk.Client, path, items string, o *QueueOptions) (queue, error) {
	var opt QueueOptions
	if o != nil {
		opt = *o
	}
	b := newBidder(c, claim.Config{Parent: path}, ElectionOptions{ACL: opt.ACL}, "queue", nil)
	q := queue{b: b, items: items, line: strings.TrimSuffix(path, "/") + ".line", naming: opt.Naming}
	if err := b.validate(); err != nil {
		return q, err
	}
	if path == "/" || opt.Naming > PlainItems {
		return q, fmt.Errorf("queue %s: not a queue's path, or no naming %d", path, opt.Naming)
	}
	return q, nil
}

// Put adds an item with the usual priority, 100.
func (q *queue) Put(ctx context.Context, data []byte) error {
	return q.PutPriority(ctx, data, claim.PriorityDefault)
}

// PutPriority adds an item, 0 being the most urgent and 999 the least. The
// item is added once, whatever replies are lost. A zk.LostError, when the context or
// the session ended at the wrong moment, leaves open whether it was.
func (q *queue) PutPriority(ctx context.Context, data []byte, priority int) error {
	if priority < 0 || priority > 999 || q.naming == PlainItems && priority != claim.PriorityDefault {
		return ErrPriority
	}
	prefix := fmt.Sprintf("entry-%03d-", priority)
	switch q.naming {
	case PlainItems:
		prefix = "qn-"
	case OwnItems:
		prefix = nonce() + "-" + prefix
	}
	cfg := claim.PutConfig{Items: q.items, Mark: claim.Join(q.line, nonce()+"-put"), Prefix: prefix, Unique: q.naming == OwnItems, Data: data}
	return q.b.perform(ctx, "put", q.items, claim.NewPut(cfg))
}

// take drives one Take.
func (q *queue) take(ctx context.Context, claims string) (*claim.Take, error) {
	cfg := claim.TakeConfig{Items: q.items, Line: q.line, Claims: claims}
	rand.Read(cfg.Nonce[:])
	m := claim.NewTake(cfg)
	return m, q.b.perform(ctx, "take", q.items, m)
}

// Len is the number of items, those that are being worked on included.
func (q *queue) Len(ctx context.Context) (int, error) {
	names, _, err := q.b.c.Children(ctx, q.items)
	return len(claim.ParseItems(names)), absent(err)
}
