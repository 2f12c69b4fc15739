package recipe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
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

// priorityDefault is that of Put, and of items whose names carry none.
const priorityDefault = 100

// ErrPriority: a priority is not between 0 and 999, or the naming has none.
var ErrPriority = errors.New("priorities are 0 to 999, and PlainItems have none")

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
	return q.PutPriority(ctx, data, priorityDefault)
}

// PutPriority adds an item, 0 being the most urgent and 999 the least. The
// item is added once, whatever replies are lost. A zk.LostError, when the context or
// the session ended at the wrong moment, leaves open whether it was.
func (q *queue) PutPriority(ctx context.Context, data []byte, priority int) error {
	if priority < 0 || priority > 999 || q.naming == PlainItems && priority != priorityDefault {
		return ErrPriority
	}
	err := q.put(ctx, data, priority)
	if errors.Is(err, zk.ErrNoNode) {
		if err = q.make(ctx, q.items, q.line); err == nil {
			err = q.put(ctx, data, priority)
		}
	}
	return err
}

// make creates what a queue stands on.
func (q *queue) make(ctx context.Context, paths ...string) error {
	for _, path := range paths {
		if err := persist(ctx, func() error { return q.b.makeParents(ctx, path) }); err != nil {
			return err
		}
	}
	return nil
}

func (q *queue) put(ctx context.Context, data []byte, priority int) error {
	name := claim.Join(q.items, fmt.Sprintf("entry-%03d-", priority))
	switch q.naming {
	case PlainItems:
		name = claim.Join(q.items, "qn-")
	case OwnItems:
		_, _, err := q.b.c.CreateProtected(ctx, name, data, q.options(zk.Sequential)...)
		return err
	}
	return q.putMarked(ctx, name, data)
}

func (q *queue) options(o ...zk.CreateOption) []zk.CreateOption {
	if q.b.opt.ACL != nil {
		o = append(o, q.b.opt.ACL)
	}
	return o
}

// putMarked creates an item whose name can carry nothing to know it again by:
// an ephemeral znode made with it tells, after a lost reply, that it was.
func (q *queue) putMarked(ctx context.Context, name string, data []byte) error {
	session, err := currentSession(ctx, q.b.c)
	if err != nil {
		return err
	}
	in := zk.InSession(ctx, session)
	mark := claim.Join(q.line, nonce()+"-put")
	defer sweep(ctx, q.b.c, session, mark)
	for {
		_, err := q.b.c.Multi(in, zk.CreateOp(mark, nil, q.options(zk.Ephemeral)...), zk.CreateOp(name, data, q.options(zk.Sequential)...))
		if !errors.Is(err, zk.ErrConnectionLoss) {
			return err
		}
		if there, serr := q.there(in, mark); there || serr != nil {
			return lostUnless(there, err)
		}
	}
}

// lostUnless is the error of a write of which it is, or is not, known that it was carried out.
func lostUnless(done bool, err error) error {
	if done {
		return nil
	}
	return err
}

// there reports whether a znode stands now.
func (q *queue) there(ctx context.Context, path string) (bool, error) {
	var ok bool
	err := persist(ctx, func() (err error) {
		if err = q.b.c.Sync(ctx, path); err == nil {
			_, ok, err = q.b.c.Exists(ctx, path)
		}
		return err
	})
	return ok, err
}

// Len is the number of items, those that are being worked on included.
func (q *queue) Len(ctx context.Context) (int, error) {
	names, _, err := q.b.c.Children(ctx, q.items)
	return len(ordered(names)), absent(err)
}

// item is the name of one, taken apart.
type item struct {
	name     string
	priority int
	seq      int32
}

// ordered are the items among the names, the next one first.
func ordered(names []string) []item {
	var all []item
	for _, name := range names {
		if it, ok := parseItem(name); ok {
			all = append(all, it)
		}
	}
	slices.SortFunc(all, func(a, b item) int {
		return cmp.Or(a.priority-b.priority, int(a.seq-b.seq), strings.Compare(a.name, b.name))
	})
	return all
}

// parseItem takes an item's name apart; anything else beside the items is none.
func parseItem(name string) (item, bool) {
	bid, err := claim.ParseBid(name)
	if err != nil {
		return item{}, false
	}
	head := strings.TrimSuffix(name, claim.FormatSeq(bid.Seq))
	if _, rest, ok := strings.Cut(head, "-entry-"); ok {
		head = "entry-" + rest
	}
	if head == "qn-" {
		return item{name, priorityDefault, bid.Seq}, true
	}
	digits, ok := strings.CutPrefix(head, "entry-")
	priority, err := strconv.Atoi(strings.TrimSuffix(digits, "-"))
	return item{name, priority, bid.Seq}, ok && err == nil && len(digits) == 4
}

// waitAny waits for the first of some watches, and removes the others.
func waitAny(ctx context.Context, watches ...*zk.Watch) error {
	fired := make(chan struct{}, len(watches)) // room for all: none is kept
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, w := range watches {
		go func() {
			if _, err := w.Wait(inner); err != nil {
				unwatch(ctx, w)
			}
			fired <- struct{}{}
		}()
	}
	for i := range watches {
		<-fired
		if i == 0 {
			cancel()
		}
	}
	return ctx.Err()
}
