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

// QueueNaming is how items are named, which decides with whose producers and consumers a
// queue can be shared. Consumers of this package take items of all namings.
type QueueNaming uint8

// The namings.
const (
	// OwnItems are <32 hex digits>-entry-<priority>-<seq>.
	OwnItems QueueNaming = iota
	// KazooItems are entry-<priority>-<seq>, as kazoo's Queue and LockingQueue have
	// them.
	KazooItems
	// PlainItems are qn-<seq>, as Curator's SimpleDistributedQueue and Apache's recipe
	// have them: no priorities.
	PlainItems
)

// QueueOptions are the settings of a Queue or a WorkQueue; nil is all defaults.
type QueueOptions struct {
	Naming QueueNaming
	// ACL of the znodes made, open to everybody by default.
	ACL zk.ACLs
	// DeliveriesMax, for a WorkQueue, is how often an item is delivered to a consumer. One that comes
	// back after that goes to the WorkQueue at DeadLetters, with its data and ACL. 0, the default, is any number of times.
	// Only the deliveries of this package are counted, and of those the ones to consumers that may
	// write the item: see Item.Deliveries.
	DeliveriesMax int
	// DeadLetters is the path of that WorkQueue. Default is the queue's own with .dead behind it.
	DeadLetters string

	// Logger and Observer are those of ElectionOptions.
	Logger   *slog.Logger
	Observer func(Observation)
}

// ErrPriority says that a priority is not between 0 and 999, or that the naming of the
// queue has no priorities.
var ErrPriority = errors.New("priorities are 0 to 999, and plain items have none")

// queue is what Queue and WorkQueue have in common.
type queue struct {
	b      agent
	items  string // below which they stand
	line   string // below which consumers wait
	root   string // of a work queue: its path
	claims string // of a work queue: where items are claimed
	later  string // of a work queue: where items wait that are not due yet
	most   int    // QueueOptions.DeliveriesMax
	dead   string // below which the items of the queue at QueueOptions.DeadLetters stand
	naming QueueNaming
	vetted *atomic.Bool // the path is not that of a work queue
}

func newQueue(c *zk.Client, path, items string, o *QueueOptions) (queue, error) {
	var opt QueueOptions
	if o != nil {
		opt = *o
	}
	b := newAgent(c, "queue", path, opt.ACL, opt.Logger, opt.Observer)
	q := queue{b: b, items: items, line: strings.TrimSuffix(path, "/") + ".line", naming: opt.Naming, vetted: new(atomic.Bool)}
	if err := b.validate(); err != nil {
		return q, err
	}
	q.most, q.dead = max(opt.DeliveriesMax, 0), claim.Join(cmp.Or(opt.DeadLetters, strings.TrimSuffix(path, "/")+".dead"), "entries")
	switch {
	case path == items && (opt.DeliveriesMax != 0 || opt.DeadLetters != ""):
		return q, fmt.Errorf("queue %s: only the items of a WorkQueue come back, and can become dead letters: %w", path, zk.ErrBadArguments)
	case opt.DeadLetters == path, opt.DeadLetters != "" && !wire.ValidPath(opt.DeadLetters), opt.DeliveriesMax < 0:
		return q, fmt.Errorf("queue %s: %d deliveries, then to %q, which must be the path of another queue: %w", path, opt.DeliveriesMax, opt.DeadLetters, zk.ErrBadArguments)
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
// item is added once, whatever replies are lost. A zk.UnknownOutcomeError, when the context or
// the session ended at the wrong moment, leaves open whether it was.
func (q *queue) PutPriority(ctx context.Context, data []byte, priority int) error {
	return q.put(ctx, data, priority, time.Time{})
}

// put adds an item, which is not due before a time unless that is zero.
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
		cfg.Items, cfg.Prefix, cfg.Poke = q.later, queues.DuePrefix(due)+prefix, claim.Join(q.items, nonce()+"-due")
	}
	return q.b.perform(ctx, "put", q.items, queues.NewPut(cfg))
}

// vet looks, before the first item is put, whether the path is that of a work queue, whose
// consumers would never see it. A work queue is looked at when it is made.
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
	q.vetted.Store(true) // also where the server refuses to tell
	return nil
}

// take drives one Take.
func (q *queue) take(ctx context.Context) (*queues.Take, error) {
	cfg := queues.TakeConfig{Items: q.items, Line: q.line, Root: q.root, Claims: q.claims, Delayed: q.later, Most: q.most, Dead: q.dead}
	rand.Read(cfg.Nonce[:])
	m := queues.NewTake(cfg)
	if err := q.b.removeLeftovers(ctx, q.line); err != nil {
		return m, &zk.OpError{Op: "take", Path: q.items, Err: err}
	}
	return m, q.b.perform(ctx, "take", q.items, m)
}

// Len is the number of items, those that are being worked on included.
func (q *queue) Len(ctx context.Context) (int, error) {
	names, _, err := q.b.c.Children(ctx, q.items)
	return len(claim.ParseItems(names)), absent(err)
}
