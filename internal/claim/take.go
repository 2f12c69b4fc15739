package claim

import (
	"errors"

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
	Root  string // of a queue with claims: the path above Items and Claims
	Nonce Nonce  // of the place in the line, random and never used before
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
	asker
	cfg   TakeConfig
	place spot

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
	t := &Take{cfg: cfg, place: spot{nonce: cfg.Nonce}, watched: map[string]bool{}}
	t.forget = t.startAnew
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
	if t.cfg.Claims == "" || t.uncounted {
		return 0
	}
	return int(t.version) + 1
}

// Step takes one event, which happened at now.
func (t *Take) Step(now Moment, ev Event) {
	if f, ok := ev.(Fired); ok {
		t.fired(f.Path)
	}
	t.step(now, ev, t.plan)
	if t.Over() || t.asked != 0 {
		return
	}
	if t.resolve(); t.session == 0 && t.doubt == 0 {
		t.left() // the place went with its session
	}
}

// resolve ends a doubt whose session is over: what was claimed comes back,
// what was to be taken may be gone.
func (t *Take) resolve() {
	switch {
	case t.doubt == 0 || t.doubt == t.session:
	case t.cfg.Claims != "":
		t.doubt = 0
	default:
		t.end(Unclear, nil)
	}
}

// Ready hands out what has come of the steps since the last call.
func (t *Take) Ready() Ready {
	r := t.ready()
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
	t.place.fired(path, t.cfg.Line)
}

// refuse gives up, and the place in the line with it.
func (t *Take) refuse(err error) { t.leaving, t.why = true, err }

// left ends what was given up, when there is no place any more.
func (t *Take) left() {
	switch {
	case !t.leaving:
	case t.why != nil:
		t.end(Failed, t.why)
	default:
		t.end(Withdrawn, nil)
	}
}

func (t *Take) plan() {
	switch t.resolve(); {
	case t.Over():
	case t.doubt != 0 && t.doubt == t.session:
		t.planFindOut()
	case !t.leaving && t.place.first && t.dueNow():
		t.planLater()
	case !t.leaving && t.read && t.cfg.Most > 0 && int(t.version) >= t.cfg.Most:
		t.planBury()
	case t.leaving || t.read:
		t.planUnwatch()
	case !t.place.first:
		t.planPlace()
	case t.found == "" && !t.waits:
		t.planLook()
	case t.found != "":
		t.ask(t.tookItem, Op{Kind: OpGet, Path: Join(t.cfg.Items, t.found)})
	}
}

// planUnwatch gives up what is watched, which else costs an event later; then
// the item is taken, or the place left.
func (t *Take) planUnwatch() {
	paths := []string{t.cfg.Items, t.cfg.Claims}
	if p := &t.place; p.watch {
		paths = append(paths, Join(t.cfg.Line, p.ahead))
	}
	for _, path := range paths {
		if t.watched[path] || t.place.watch && path == Join(t.cfg.Line, t.place.ahead) {
			t.ask(func([]Result) { delete(t.watched, path); t.place.fired(path, t.cfg.Line) }, Op{Kind: OpUnwatch, Path: path})
			return
		}
	}
	if t.leaving {
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
		t.ask(t.tookLeave, Op{Kind: OpDelete, Path: Join(t.cfg.Line, p.own), Version: AnyVersion})
	}
}

// tookLeave: a place that cannot be removed stays until the session ends, and all behind it wait.
func (t *Take) tookLeave(res []Result) {
	p := &t.place
	if err := res[0].Err; err != nil && !errors.Is(err, wire.ErrNoNode) {
		t.tell(Left{p.own, Join(t.cfg.Line, p.own), err})
		if t.why == nil {
			t.why = err
		}
	}
	p.own = ""
	t.left()
}
