package value

import (
	"bytes"
	"errors"
	"path"
	"strconv"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// jumpVersion is the version before -1, which as a condition means any.
// Servers before ZOOKEEPER-4743 do not jump over it themselves.
const jumpVersion = -2

// ErrVersion: a znode's version is -1, so that nothing can be made to depend on it.
var ErrVersion = errors.New("its version is -1, which cannot be compared: set it once by hand")

// ChangeConfig is what a Change is about.
type ChangeConfig struct {
	Path    string
	Initial []byte // with which the znode is made
	// Mark is the path of an ephemeral znode that nobody else makes. It tells
	// whether a change was carried out, and stays for the next one.
	Mark string
	// Anew: a change too many does no harm, as where a number is passed over: one of
	// which it cannot be told whether it was carried out is tried once more, unless
	// nobody wants it any more.
	Anew bool
}

// Mark is what is known of a mark between two changes.
type Mark struct {
	Session wire.SessionID // in which it stands; 0: it may, or may not
	N       int            // of the last change that was tried
}

// Propose is a value that is to replace the one of Old.
type Propose struct{ Data []byte }

func (Propose) Event() {}

// Change replaces the data of a znode by what the caller makes of it: compare
// and set, by version, again and again until nobody else was faster.
//
//	read ▸ the caller proposes ▸ set it and the mark together
//	     ▸ answer lost: does the mark bear this change's number?
//
// Where the session, and with it the mark, has gone before that is known, a
// value that was not changed, or to something else, tells as much.
type Change struct {
	claim.Requester
	cfg      ChangeConfig
	mark     Mark
	spoilt   bool // the mark is not as it was thought to be
	read     bool // what follows is known
	old      []byte
	version  int32
	proposed bool
	data     []byte
}

// NewChange makes the state machine, which waits for Attached.
func NewChange(cfg ChangeConfig, m Mark) *Change { return &Change{cfg: cfg, mark: m} }

// Mark is what the next change is to begin with.
func (c *Change) Mark() Mark { return c.mark }

// Path is the znode that is changed.
func (c *Change) Path() string { return c.cfg.Path }

// Old is the value for which a Propose is awaited, if one is.
func (c *Change) Old() (data []byte, awaited bool) {
	return c.old, c.read && !c.proposed && !c.Over()
}

// Value is what was set.
func (c *Change) Value() []byte { return c.data }

// Step takes one event, which happened at now.
func (c *Change) Step(now claim.Moment, ev claim.Event) {
	if p, ok := ev.(Propose); ok && c.read && !c.proposed {
		c.proposed, c.data = true, p.Data
	}
	c.Advance(now, ev, c.plan)
	if c.Leaving && !c.Over() && c.Asked == 0 && c.Unsure == 0 {
		c.End(claim.Withdrawn, nil)
	}
}

// Ready hands out what has come of the steps since the last call.
func (c *Change) Ready() claim.Ready { return c.Collect() }

func (c *Change) plan() {
	switch {
	case c.Unsure != 0 && c.Unsure == c.Current:
		c.Ask(c.tookMark, claim.Op{Kind: claim.OpSync, Path: c.cfg.Path}, claim.Op{Kind: claim.OpGet, Path: c.cfg.Mark})
	case c.Unsure != 0:
		c.planGuess()
	case c.Leaving:
	case c.spoilt:
		c.Ask(c.tookMarkAway, claim.Op{Kind: claim.OpDelete, Path: c.cfg.Mark, Version: claim.AnyVersion})
	case !c.read:
		c.Ask(c.tookValue, claim.Op{Kind: claim.OpGet, Path: c.cfg.Path})
	case c.proposed:
		c.planSet()
	}
}

// again begins once more, with what is there now.
func (c *Change) again() { c.read, c.proposed, c.Unsure = false, false, 0 }

// untold: what would have told whether it was carried out is gone, or not to be read.
func (c *Change) untold() {
	if c.cfg.Anew && !c.Leaving {
		c.again()
	} else {
		c.End(claim.Unclear, nil)
	}
}

func (c *Change) tookValue(res []claim.Result) {
	switch r := res[0]; {
	case errors.Is(r.Err, wire.ErrNoNode):
		c.Ask(c.tookCreate, claim.Op{Kind: claim.OpParents, Path: path.Dir(c.cfg.Path)},
			claim.Op{Kind: claim.OpCreate, Path: c.cfg.Path, Data: c.cfg.Initial, Persistent: true})
	case r.Err != nil:
		c.End(claim.Failed, r.Err)
	case r.Stat.Version == claim.AnyVersion:
		c.End(claim.Failed, ErrVersion)
	default:
		c.read, c.old, c.version = true, r.Data, r.Stat.Version
	}
}

func (c *Change) tookCreate(res []claim.Result) {
	for _, r := range res {
		if r.Err != nil && !errors.Is(r.Err, wire.ErrNodeExists) && !c.Over() {
			c.End(claim.Failed, r.Err)
		}
	}
}

// planSet sets the value if its version is still that which was read.
func (c *Change) planSet() {
	c.mark.N++
	ops := []claim.Op{{Kind: claim.OpSet, Path: c.cfg.Path, Data: c.data, Version: c.version}}
	if c.version == jumpVersion {
		ops = append(ops, claim.Op{Kind: claim.OpSet, Path: c.cfg.Path, Data: c.data, Version: claim.AnyVersion})
	}
	mark := claim.Op{Kind: claim.OpCreate, Path: c.cfg.Mark, Data: c.number()}
	if c.mark.Session == c.Current {
		mark = claim.Op{Kind: claim.OpSet, Path: c.cfg.Mark, Data: c.number(), Version: claim.AnyVersion}
	}
	session := c.Current
	c.Attempt(func(res []claim.Result) {
		switch err := res[0].Err; {
		case err == nil:
			c.mark.Session = session
			c.End(claim.Succeeded, nil)
		case errors.Is(err, wire.ErrBadVersion):
			c.again()
		case errors.Is(err, wire.ErrNoNode), errors.Is(err, wire.ErrNodeExists):
			c.mark.Session, c.spoilt = 0, true
			c.again()
		default:
			c.End(claim.Failed, err)
		}
	}, claim.Op{Kind: claim.OpMulti, Path: c.cfg.Path, Ops: append(ops, mark)})
}

func (c *Change) number() []byte { return strconv.AppendInt(nil, int64(c.mark.N), 10) }

// tookMark: a mark that was there before the change, and is gone, was deleted
// by somebody and tells nothing.
func (c *Change) tookMark(res []claim.Result) {
	switch r := res[1]; {
	case res[0].Err != nil:
		c.untold()
	case r.Err == nil && bytes.Equal(r.Data, c.number()):
		c.mark.Session, c.Unsure = c.Current, 0
		c.End(claim.Succeeded, nil)
	case r.Err == nil:
		c.mark.Session = c.Current
		c.again()
	case !errors.Is(r.Err, wire.ErrNoNode):
		c.untold()
	case c.mark.Session != c.Current: // it would have been made
		c.again()
	default:
		c.planGuess()
	}
}

// tookMarkAway: a mark that must not be deleted would be in the way for ever.
func (c *Change) tookMarkAway(res []claim.Result) {
	if err := res[0].Err; err != nil && !errors.Is(err, wire.ErrNoNode) {
		c.End(claim.Failed, err)
	}
	c.spoilt = false
}

// planGuess draws what can be drawn from the value.
func (c *Change) planGuess() {
	c.mark.Session = 0
	c.Ask(func(res []claim.Result) {
		now := res[1]
		switch {
		case res[0].Err != nil || now.Err != nil:
			c.untold()
		case now.Stat.Version == c.version, now.Stat.Version == c.version+1 && !bytes.Equal(now.Data, c.data):
			c.again()
		default:
			c.untold()
		}
	}, claim.Op{Kind: claim.OpSync, Path: c.cfg.Path}, claim.Op{Kind: claim.OpGet, Path: c.cfg.Path})
}
