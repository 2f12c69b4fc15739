package queues

import (
	"errors"
	"slices"

	"bellwether/internal/claim"
	"bellwether/internal/claim/lines"
	"bellwether/wire"
)

// TakeConfig describes a Take.
type TakeConfig struct {
	Items string // parent of the items
	Line  string // parent of the consumers' bids
	// Claims is the parent of the claims of items that stay until they are acknowledged. If it is empty,
	// an item is deleted when it is taken.
	Claims string
	// Delayed is the parent of items that are not due yet; empty: there are none. Only with Claims.
	Delayed string
	// Most is how often an item is delivered before it is moved below Dead, the parent of another queue's
	// items. 0 means no limit. Only with Claims.
	Most  int
	Dead  string
	Root  string      // for a queue with claims: the path above Items and Claims
	Nonce claim.Nonce // nonce of the bid, random and never used before
}

// Take takes one item of a queue: the one with the highest priority, and among those the oldest. Consumers
// wait in a line, and only the first looks for items. A new item therefore wakes one consumer, however
// many wait.
//
//	wait in line ▸ list the items ▸ none: list and watch them ▸ none: wait
//	             ▸ read the first ▸ in one transaction delete it, or claim it, and leave the line
//	                              ▸ answer lost: does the consumer's bid in the line still exist?
//
// A claim ends with the session that made it, and its item is delivered again. So with claims, no item is
// lost if an answer is lost.
type Take struct {
	claim.Requester
	Config TakeConfig
	place  position

	stale   bool            // the last answer showed an outdated state: sync before the next look
	watch   bool            // the last look found no item, so the next look sets a watch
	claims  bool            // all items were claimed: watch the claims too
	waits   bool            // there was no item, and the necessary watches are set
	watched map[string]bool // parents whose children are watched
	found   string          // name of the item to take
	read    bool            // data is set
	data    []byte
	version int32 // version of the item, which is also the number of earlier deliveries
	// uncounted means that this delivery is not counted, because the server refuses the write or the item
	// is large.
	uncounted bool
	delayed   delayedItem    // the item that is due first, as of the last look
	clock     serversClock   // estimates whether the item in delayed is due
	moved     bool           // a due item has been moved
	item      string         // path of the item that was taken
	got       wire.SessionID // session that took it
	why       error          // error that made the machine give up; nil after Resign
	parents   claim.Parents
}

// NewTake returns the state machine. It does nothing until Attached is stepped.
func NewTake(cfg TakeConfig) *Take {
	t := &Take{Config: cfg, parents: claim.Parents{Root: cfg.Root, Want: claim.KindWorkQueue}, place: position{nonce: cfg.Nonce}, watched: map[string]bool{}}
	t.Forget = t.startAnew
	return t
}

// Taken returns the path and data of the item that was taken, and the session that took it. Call it only
// after the Take has succeeded.
func (t *Take) Taken() (item string, data []byte, session wire.SessionID) {
	return t.item, t.data, t.got
}

// Deliveries returns how often the item that was taken has been delivered, including this time; 0 means
// unknown. Call it only after the Take has succeeded.
func (t *Take) Deliveries() int {
	if t.Config.Claims == "" || t.uncounted {
		return 0
	}
	return int(t.version) + 1
}

// Step processes one event, which happened at now.
func (t *Take) Step(now claim.Moment, ev claim.Event) {
	if f, ok := ev.(claim.Fired); ok {
		t.fired(f.Path)
	}
	t.Advance(now, ev, t.plan)
	if t.Over() || t.Asked != 0 {
		return
	}
	if t.resolve(); t.Current == 0 && t.InDoubt == 0 {
		t.left() // the bid ended with its session
	}
}

// resolve handles an unknown outcome whose session is over. A claimed item is delivered again, so the
// outcome does not matter. Without claims the item may be lost, and the result is Unclear.
func (t *Take) resolve() {
	switch {
	case t.InDoubt == 0 || t.InDoubt == t.Current:
	case t.Config.Claims != "":
		t.InDoubt = 0
	default:
		t.End(claim.Unclear, nil)
	}
}

// Ready returns what the steps since the last call have produced.
func (t *Take) Ready() claim.Ready {
	r := t.Requester.Ready()
	if due := t.wake(); due > 0 && (r.Wake == 0 || due < r.Wake) {
		r.Wake = due
	}
	return r
}

// startAnew discards the state that depended on the session.
func (t *Take) startAnew() {
	t.place.renew()
	t.lookAgain()
	clear(t.watched)
}

func (t *Take) lookAgain() {
	t.watch, t.claims, t.waits, t.found, t.read, t.uncounted, t.delayed = false, false, false, "", false, false, delayedItem{}
}

func (t *Take) fired(path string) {
	if t.watched[path] {
		if delete(t.watched, path); t.waits { // otherwise the consumer does not wait for this event
			t.lookAgain()
		}
	}
	t.place.fired(path, t.Config.Line)
}

// refuse gives up because of an error. The machine then removes its bid.
func (t *Take) refuse(err error) { t.Leaving, t.why = true, err }

// left ends a machine that gave up, once its bid is gone.
func (t *Take) left() {
	switch {
	case !t.Leaving:
	case t.why != nil:
		t.End(claim.Failed, t.why)
	default:
		t.End(claim.Withdrawn, nil)
	}
}

func (t *Take) plan() {
	switch t.resolve(); {
	case t.Over():
	case t.InDoubt != 0 && t.InDoubt == t.Current:
		t.planFindOut()
	case !t.Leaving && t.place.first && t.dueNow():
		t.planDelayed()
	case !t.Leaving && t.read && t.Config.Most > 0 && int(t.version) >= t.Config.Most:
		t.planDeadLetter()
	case t.Leaving || t.read:
		t.planUnwatch()
	case !t.place.first:
		t.planPlace()
	case t.found == "" && !t.waits:
		t.planLook()
	case t.found != "":
		t.Ask(t.tookItem, claim.Get(claim.Join(t.Config.Items, t.found)))
	}
}

// planUnwatch removes watches that are no longer needed, because each would cause an event later. Then the
// consumer takes the item or leaves the line.
func (t *Take) planUnwatch() {
	paths := []string{t.Config.Items, t.Config.Claims}
	if p := &t.place; p.watch {
		paths = append(paths, claim.Join(t.Config.Line, p.ahead))
	}
	for _, path := range paths {
		if t.watched[path] || t.place.watch && path == claim.Join(t.Config.Line, t.place.ahead) {
			t.Ask(func([]claim.Result) { delete(t.watched, path); t.place.fired(path, t.Config.Line) }, claim.Unwatch(path))
			return
		}
	}
	if t.Leaving {
		t.planLeave()
	} else {
		t.planTake()
	}
}

func (t *Take) planLeave() {
	p := &t.place
	switch {
	case p.own == "" && p.sent:
		t.planPlace()
	case p.own == "":
		t.left()
	default:
		t.Ask(t.tookLeave, claim.Delete(claim.Join(t.Config.Line, p.own)))
	}
}

// tookLeave processes the deletion of the bid. A bid that cannot be deleted stays until the session ends,
// and blocks all bids behind it.
func (t *Take) tookLeave(res []claim.Result) {
	p := &t.place
	if err := res[0].Err; err != nil && !errors.Is(err, wire.ErrNoNode) {
		t.Report(lines.Left{Bid: p.own, Path: claim.Join(t.Config.Line, p.own), Err: err})
		if t.why == nil {
			t.why = err
		}
	}
	p.own = ""
	t.left()
}

// otherThanQueue is claim.OtherRecipe for a queue with this number of items. If the queue has items, other
// znodes do not matter, except those of a work queue, whose consumers wait in the same line.
func otherThanQueue(path string, names []string, items int) error {
	if items > 0 && !(slices.Contains(names, "entries") && slices.Contains(names, "taken")) {
		return nil
	}
	return claim.OtherRecipe(path, claim.KindQueue, names)
}
