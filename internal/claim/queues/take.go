package queues

import (
	"errors"
	"slices"

	"bellwether/internal/claim"
	"bellwether/internal/claim/lines"
	"bellwether/wire"
)

// TakeConfig is what a Take is about.
type TakeConfig struct {
	Items string // below which the items stand
	Line  string // below which consumers wait
	// Claims is where items are claimed that stay until they are acknowledged.
	// Empty: an item is gone when it is taken.
	Claims string
	// Delayed is where items wait that are not due yet; empty: nowhere. Only with Claims.
	Delayed string
	// Most is how often an item is delivered before it goes to Dead, below which the items of
	// another queue stand; 0: any number of times. Only with Claims.
	Most  int
	Dead  string
	Root  string      // of a queue with claims: the path above Items and Claims
	Nonce claim.Nonce // of the place in the line, random and never used before
}

// Take takes one item of a queue: the most urgent, and of those the oldest.
// Consumers stand in a line; its first alone looks for items, so that one
// that comes wakes one consumer, however many wait.
//
//	wait in line ▸ list the items ▸ none: list and watch them ▸ none: wait
//	             ▸ read the first ▸ in one transaction delete it, or claim it, and leave the line
//	                              ▸ answer lost: does the place in the line still stand?
//
// An item that is only claimed comes back with the session that has claimed
// it, so a lost answer never leaves open what has become of it.
type Take struct {
	claim.Requester
	Config TakeConfig
	place  position

	stale   bool            // what was found was gone: bring the server up to date
	watch   bool            // the last look found nothing: watch with the next one
	claims  bool            // and all items were claimed: watch the claims as well
	waits   bool            // there was nothing yet, and what would change that is watched
	watched map[string]bool // parents whose children are
	found   string          // the item to be taken, by name
	read    bool            // and its data is known
	data    []byte
	version int32 // and how often it was delivered before
	// uncounted: this delivery is not counted, since the server does not allow it or the item is large.
	uncounted bool
	later     laterItem      // the one that is due first, as of the last look
	clock     serversClock   // by which it is due
	moved     bool           // one that was due has been moved
	item      string         // that was taken, by path
	got       wire.SessionID // in which
	why       error          // of leaving, other than Resign
	vetted    bool           // no other recipe stands at Root, as far as names tell
}

// NewTake makes the state machine, which waits for Attached.
func NewTake(cfg TakeConfig) *Take {
	t := &Take{Config: cfg, place: position{nonce: cfg.Nonce}, watched: map[string]bool{}}
	t.Forget = t.startAnew
	return t
}

// Taken is the item of a Take that has succeeded, by its path, and the session
// that took it.
func (t *Take) Taken() (item string, data []byte, session wire.SessionID) {
	return t.item, t.data, t.got
}

// Deliveries is how often the item of a Take that has succeeded was delivered, this time included;
// 0: it is not known.
func (t *Take) Deliveries() int {
	if t.Config.Claims == "" || t.uncounted {
		return 0
	}
	return int(t.version) + 1
}

// Step takes one event, which happened at now.
func (t *Take) Step(now claim.Moment, ev claim.Event) {
	if f, ok := ev.(claim.Fired); ok {
		t.fired(f.Path)
	}
	t.Advance(now, ev, t.plan)
	if t.Over() || t.Asked != 0 {
		return
	}
	if t.resolve(); t.Current == 0 && t.Unsure == 0 {
		t.left() // the place went with its session
	}
}

// resolve ends a doubt whose session is over: what was claimed comes back,
// what was to be taken may be gone.
func (t *Take) resolve() {
	switch {
	case t.Unsure == 0 || t.Unsure == t.Current:
	case t.Config.Claims != "":
		t.Unsure = 0
	default:
		t.End(claim.Unclear, nil)
	}
}

// Ready hands out what has come of the steps since the last call.
func (t *Take) Ready() claim.Ready {
	r := t.Collect()
	if due := t.wake(); due > 0 && (r.Wake == 0 || due < r.Wake) {
		r.Wake = due
	}
	return r
}

// startAnew drops what has gone with the session.
func (t *Take) startAnew() {
	t.place.renew()
	t.lookAgain()
	clear(t.watched)
}

func (t *Take) lookAgain() {
	t.watch, t.claims, t.waits, t.found, t.read, t.uncounted, t.later = false, false, false, "", false, false, laterItem{}
}

func (t *Take) fired(path string) {
	if t.watched[path] {
		if delete(t.watched, path); t.waits { // otherwise there is something already
			t.lookAgain()
		}
	}
	t.place.fired(path, t.Config.Line)
}

// refuse gives up, and the place in the line with it.
func (t *Take) refuse(err error) { t.Leaving, t.why = true, err }

// left ends what was given up, when there is no place any more.
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
	case t.Unsure != 0 && t.Unsure == t.Current:
		t.planFindOut()
	case !t.Leaving && t.place.first && t.dueNow():
		t.planLater()
	case !t.Leaving && t.read && t.Config.Most > 0 && int(t.version) >= t.Config.Most:
		t.planBury()
	case t.Leaving || t.read:
		t.planUnwatch()
	case !t.place.first:
		t.planPlace()
	case t.found == "" && !t.waits:
		t.planLook()
	case t.found != "":
		t.Ask(t.tookItem, claim.Op{Kind: claim.OpGet, Path: claim.Join(t.Config.Items, t.found)})
	}
}

// planUnwatch gives up what is watched, which else costs an event later; then
// the item is taken, or the place left.
func (t *Take) planUnwatch() {
	paths := []string{t.Config.Items, t.Config.Claims}
	if p := &t.place; p.watch {
		paths = append(paths, claim.Join(t.Config.Line, p.ahead))
	}
	for _, path := range paths {
		if t.watched[path] || t.place.watch && path == claim.Join(t.Config.Line, t.place.ahead) {
			t.Ask(func([]claim.Result) { delete(t.watched, path); t.place.fired(path, t.Config.Line) }, claim.Op{Kind: claim.OpUnwatch, Path: path})
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
		t.Ask(t.tookLeave, claim.Op{Kind: claim.OpDelete, Path: claim.Join(t.Config.Line, p.own), Version: claim.AnyVersion})
	}
}

// tookLeave: a place that cannot be removed stays until the session ends, and all behind it wait.
func (t *Take) tookLeave(res []claim.Result) {
	p := &t.place
	if err := res[0].Err; err != nil && !errors.Is(err, wire.ErrNoNode) {
		t.Tell(lines.Left{Bid: p.own, Path: claim.Join(t.Config.Line, p.own), Err: err})
		if t.why == nil {
			t.why = err
		}
	}
	p.own = ""
	t.left()
}

// otherThanQueue is otherRecipe for a queue that has so many items. With some, what else stands
// there does not matter, unless it is a work queue, whose consumers stand in the same line.
func otherThanQueue(path string, names []string, items int) error {
	if items > 0 && !(slices.Contains(names, "entries") && slices.Contains(names, "taken")) {
		return nil
	}
	return claim.OtherRecipe(path, claim.KindQueue, names)
}
