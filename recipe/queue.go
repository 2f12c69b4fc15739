package recipe

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/claim/queues"
	"bellwether/wire"
	"bellwether/zk"
)

// QueueNaming is how a queue names its items. It decides with which other libraries' producers and consumers the
// queue can be shared. Consumers of this package take items of all namings.
type QueueNaming uint8

// The namings.
const (
	// OwnItems: items are named <32 hex digits>-entry-<priority>-<seq>.
	OwnItems QueueNaming = iota
	// KazooItems: items are named entry-<priority>-<seq>, as in kazoo's Queue and
	// LockingQueue.
	KazooItems
	// PlainItems: items are named qn-<seq>, as in Curator's SimpleDistributedQueue and
	// Apache's recipe. Such items have no priorities.
	PlainItems
)

// QueueOptions are the settings of a Queue or a WorkQueue. A nil pointer means all defaults.
type QueueOptions struct {
	Naming QueueNaming
	// ACL is given to each znode that is created. By default everybody may do everything.
	ACL zk.ACLs
	// DeliveriesMax, for a WorkQueue, limits how often an item is delivered. An item that comes
	// back after that many deliveries goes to the WorkQueue at DeadLetters, with its data and ACL. 0, the default,
	// means no limit. Only deliveries by this package count, and only those to consumers that are permitted to
	// write the item: see Item.Deliveries.
	DeliveriesMax int
	// DeadLetters is the path of the WorkQueue for items that exceed DeliveriesMax. The
	// default is the path of this queue followed by .dead.
	DeadLetters string

	// Logger and Observer receive reports as described at ElectionOptions.
	Logger   *slog.Logger
	Observer func(Observation)
}

// ErrPriority says that a priority is not between 0 and 999, or that the naming of the
// queue has no priorities.
var ErrPriority = errors.New("priorities are 0 to 999, and plain items have none")

// queue holds what Queue and WorkQueue have in common.
type queue struct {
	b       agent
	items   string // the parent of the items
	line    string // the parent of the bids of waiting consumers
	root    string // path of a work queue; empty for another queue
	claims  string // only for a work queue: the parent of the claims
	delayed string // only for a work queue: the parent of items that are not due yet
	most    int    // QueueOptions.DeliveriesMax
	dead    string // the parent of the items of the queue at QueueOptions.DeadLetters
	naming  QueueNaming
	vetted  *atomic.Bool // vet has found that the path is not that of a work queue
}

func newQueue(c *zk.Client, path, items string, o *QueueOptions) (queue, error) {
	opt := optionsOr(o)
	b := newAgent(c, "queue", path, opt.ACL, opt.Logger, opt.Observer)
	q := queue{b: b, items: items, line: strings.TrimSuffix(path, "/") + ".line", naming: opt.Naming, vetted: new(atomic.Bool)}
	if err := b.validate(); err != nil {
		return q, err
	}
	q.most, q.dead = max(opt.DeliveriesMax, 0), claim.Join(cmp.Or(opt.DeadLetters, strings.TrimSuffix(path, "/")+".dead"), "entries")
	switch {
	case path == items && (opt.DeliveriesMax != 0 || opt.DeadLetters != ""):
		return q, fmt.Errorf("queue %s: DeliveriesMax and DeadLetters are only for a WorkQueue: %w", path, zk.ErrBadArguments)
	case opt.DeadLetters == path, opt.DeadLetters != "" && !wire.ValidPath(opt.DeadLetters), opt.DeliveriesMax < 0:
		return q, fmt.Errorf("queue %s: with DeliveriesMax %d, DeadLetters must be the path of another queue, and it is %q: %w", path, opt.DeliveriesMax, opt.DeadLetters, zk.ErrBadArguments)
	}
	switch {
	case path == "/":
		return q, errors.New("queue /: choose a path other than the root")
	case opt.Naming > PlainItems:
		return q, fmt.Errorf("queue %s: naming %d does not exist; use one of the constants of QueueNaming", path, opt.Naming)
	}
	return q, nil
}

// Put adds an item with the default priority, 100.
func (q *queue) Put(ctx context.Context, data []byte) error {
	return q.PutPriority(ctx, data, claim.PriorityDefault)
}

// PutPriority adds an item. Priority 0 is the most urgent and 999 the least. The
// item is added once, even if replies are lost. If the context or the session ends before the outcome
// is known, or an error keeps the client from finding it out, the error is a zk.UnknownOutcomeError with the
// reason, and the item may have been added.
func (q *queue) PutPriority(ctx context.Context, data []byte, priority int) error {
	return q.put(ctx, data, priority, time.Time{})
}

// put adds an item. If due is not zero, the item is not delivered before that time.
func (q *queue) put(ctx context.Context, data []byte, priority int, due time.Time) error {
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
	if err := q.vet(ctx); err != nil {
		return err
	}
	cfg := queues.PutConfig{Items: q.items, Root: q.root, Claims: q.claims, Mark: claim.Join(q.line, nonce()+"-put"), Prefix: prefix, Unique: q.naming == OwnItems, Data: data}
	if !due.IsZero() {
		cfg.Items, cfg.Prefix, cfg.Wake = q.delayed, queues.DuePrefix(due)+prefix, claim.Join(q.items, nonce()+"-due")
	}
	return q.b.perform(ctx, "put", q.items, queues.NewPut(cfg))
}

// vet checks, before the first item is put, that the path is not that of a work queue, whose
// consumers would never see the item. For a work queue it does nothing, because the machines check the path.
func (q *queue) vet(ctx context.Context) error {
	if q.root != "" || q.vetted.Load() {
		return nil
	}
	res, err := q.b.c.MultiRead(ctx, zk.GetOp(claim.Join(q.items, "entries")), zk.GetOp(claim.Join(q.items, "taken")))
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil && res[0].Err == nil && res[1].Err == nil:
		return &OtherRecipeError{Path: q.items, Want: string(claim.KindQueue), Found: string(claim.KindWorkQueue)}
	}
	q.vetted.Store(true) // also if the server refuses the read
	return nil
}

// take takes one item. The returned machine knows the item.
func (q *queue) take(ctx context.Context) (*queues.Take, error) {
	cfg := queues.TakeConfig{Items: q.items, Line: q.line, Root: q.root, Claims: q.claims, Delayed: q.delayed, Most: q.most, Dead: q.dead}
	rand.Read(cfg.Nonce[:])
	m := queues.NewTake(cfg)
	if err := q.b.removeLeftovers(ctx, q.line); err != nil {
		return m, &zk.OpError{Op: "take", Path: q.items, Err: err}
	}
	return m, q.b.perform(ctx, "take", q.items, m)
}

// Len returns the number of items, including those that consumers are working on.
func (q *queue) Len(ctx context.Context) (int, error) {
	names, _, err := q.b.c.Children(ctx, q.items)
	return len(claim.ParseItems(names)), ignoreNoNode(err)
}
