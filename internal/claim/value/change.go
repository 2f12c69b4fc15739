package value

import (
	"bytes"
	"cmp"
	"errors"
	"path"
	"strconv"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// jumpVersion is the version before -1. As a condition, -1 means any version, so a change from jumpVersion
// sets the data twice. Servers before ZOOKEEPER-4743 do not skip -1 themselves.
const jumpVersion = -2

// ErrVersion means that the version of a znode is -1, so that no write can depend on it.
var ErrVersion = errors.New("the znode has version -1, which cannot be compared: set its data once by hand")

// ChangeConfig describes a Change.
type ChangeConfig struct {
	Path    string
	Initial []byte // data with which a missing znode is created
	// Mark is the path of an ephemeral znode that no other client creates. It shows whether a change was
	// carried out, and remains for the next change.
	Mark string
	// Repeatable means that carrying out a change twice does no harm, for example if it only skips a number. A
	// change whose outcome cannot be determined is then tried again, unless the caller has resigned.
	Repeatable bool
}

// Mark is the state of a mark between two changes.
type Mark struct {
	Session wire.SessionID // session in which the mark exists; 0: unknown whether it exists
	N       int            // number of the last change that was tried
}

// Propose carries the value that replaces the one returned by Old.
type Propose struct{ Data []byte }

func (Propose) Event() {}

// Change replaces the data of a znode with a value that the caller computes from the old data. It uses
// compare and set on the version, and repeats until no other client was faster.
//
//	read ▸ the caller proposes ▸ set the value and the mark in one transaction
//	     ▸ answer lost: does the mark hold the number of this change?
//
// If the session ends before the mark was read, the mark is gone. The value itself then shows that the
// change was not carried out if the version is unchanged, or if it is one higher and the data is another.
// In all other cases the outcome is unknown.
type Change struct {
	claim.Requester
	cfg         ChangeConfig
	mark        Mark
	markInvalid bool // the mark is not in the expected state, and must be deleted
	read        bool // old and version are set
	old         []byte
	version     int32
	proposed    bool
	data        []byte
}

// NewChange returns the state machine. It does nothing until Attached is stepped.
func NewChange(cfg ChangeConfig, m Mark) *Change { return &Change{cfg: cfg, mark: m} }

// Mark returns the state of the mark, for the next change.
func (c *Change) Mark() Mark { return c.mark }

// Path returns the path of the znode to change.
func (c *Change) Path() string { return c.cfg.Path }

// Old returns the current value. awaited reports whether the caller must step Propose.
func (c *Change) Old() (data []byte, awaited bool) {
	return c.old, c.read && !c.proposed && !c.Over()
}

// Value returns the value that was set.
func (c *Change) Value() []byte { return c.data }

// Step processes one event, which happened at now.
func (c *Change) Step(now claim.Moment, ev claim.Event) {
	if p, ok := ev.(Propose); ok && c.read && !c.proposed {
		c.proposed, c.data = true, p.Data
	}
	c.Advance(now, ev, c.plan)
	if c.Leaving && !c.Over() && c.Asked == 0 && c.InDoubt == 0 {
		c.End(claim.Withdrawn, nil)
	}
}

func (c *Change) plan() {
	switch {
	case c.InDoubt != 0 && c.InDoubt == c.Current:
		c.Ask(c.tookMark, claim.Sync(c.cfg.Path), claim.Get(c.cfg.Mark))
	case c.InDoubt != 0:
		c.planInfer()
	case c.Leaving:
	case c.markInvalid:
		c.Ask(c.tookMarkAway, claim.Delete(c.cfg.Mark))
	case !c.read:
		c.Ask(c.tookValue, claim.Get(c.cfg.Path))
	case c.proposed:
		c.planSet()
	}
}

// restart starts the change again with a new read.
func (c *Change) restart() { c.read, c.proposed, c.InDoubt = false, false, 0 }

// outcomeUnknown handles a change whose outcome cannot be determined, because the mark is gone, or, with err, not readable.
func (c *Change) outcomeUnknown(err error) {
	if c.cfg.Repeatable && !c.Leaving {
		c.restart()
	} else {
		c.EndUnclear(err)
	}
}

func (c *Change) tookValue(res []claim.Result) {
	switch r := res[0]; {
	case errors.Is(r.Err, wire.ErrNoNode):
		c.Ask(c.tookCreate, claim.MakeParents(path.Dir(c.cfg.Path)),
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

// planSet sets the value if its version has not changed since the read.
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
			c.restart()
		case errors.Is(err, wire.ErrNoNode), errors.Is(err, wire.ErrNodeExists):
			c.mark.Session, c.markInvalid = 0, true
			c.restart()
		default:
			c.End(claim.Failed, err)
		}
	}, claim.Multi(c.cfg.Path, append(ops, mark)...))
}

func (c *Change) number() []byte { return strconv.AppendInt(nil, int64(c.mark.N), 10) }

// tookMark processes the look at the mark. If the mark existed before the change and is missing now,
// another client deleted it, and its absence proves nothing.
func (c *Change) tookMark(res []claim.Result) {
	switch r := res[1]; {
	case res[0].Err != nil:
		c.outcomeUnknown(res[0].Err)
	case r.Err == nil && bytes.Equal(r.Data, c.number()):
		c.mark.Session, c.InDoubt = c.Current, 0
		c.End(claim.Succeeded, nil)
	case r.Err == nil:
		c.mark.Session = c.Current
		c.restart()
	case !errors.Is(r.Err, wire.ErrNoNode):
		c.outcomeUnknown(r.Err)
	case c.mark.Session != c.Current: // the change would have created the mark, so it was not carried out
		c.restart()
	default:
		c.planInfer()
	}
}

// tookMarkAway processes the deletion of an unexpected mark. If the server refuses it, all later changes
// would fail too, so the machine ends.
func (c *Change) tookMarkAway(res []claim.Result) {
	if err := res[0].Err; err != nil && !errors.Is(err, wire.ErrNoNode) {
		c.End(claim.Failed, err)
	}
	c.markInvalid = false
}

// planInfer tries to determine the outcome from the value and its version.
func (c *Change) planInfer() {
	c.mark.Session = 0
	c.Ask(func(res []claim.Result) {
		now := res[1]
		switch {
		case res[0].Err != nil || now.Err != nil:
			c.outcomeUnknown(cmp.Or(res[0].Err, now.Err))
		case now.Stat.Version == c.version, now.Stat.Version == c.version+1 && !bytes.Equal(now.Data, c.data):
			c.restart()
		default:
			c.outcomeUnknown(nil)
		}
	}, claim.Sync(c.cfg.Path), claim.Get(c.cfg.Path))
}
