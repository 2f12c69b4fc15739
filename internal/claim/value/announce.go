package value

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// Announcement is a configuration that a leader has announced. The first line
// of its znode says whose it is, the rest is the configuration.
type Announcement struct {
	Token   wire.Zxid // of the leader
	Version int32     // of the znode
	Data    []byte
}

// announcementHead is the first line.
type announcementHead struct {
	Token string `json:"token"`
	Bid   string `json:"bid"`
}

// Text is what the znode of an announcement holds, by whose bid, a path.
func (a Announcement) Text(bid string) []byte {
	head, err := json.Marshal(announcementHead{Token: fmt.Sprintf("%#x", int64(a.Token)), Bid: bid})
	if err != nil {
		panic(fmt.Sprintf("claim: encoding %q: %v", bid, err)) // two strings always encode
	}
	return append(append(head, '\n'), a.Data...)
}

// ParseAnnouncement takes a znode apart. It is false for what no leader
// announced.
func ParseAnnouncement(text []byte, stat wire.Stat) (Announcement, bool) {
	line, data, ok := bytes.Cut(text, []byte("\n"))
	var head announcementHead
	if !ok || json.Unmarshal(line, &head) != nil {
		return Announcement{}, false
	}
	token, err := strconv.ParseInt(head.Token, 0, 64)
	if err != nil {
		return Announcement{}, false
	}
	return Announcement{Token: wire.Zxid(token), Version: stat.Version, Data: data}, true
}

// Errors of an Announce.
var (
	ErrNewer   = errors.New("a later leader has announced a configuration")
	ErrBidGone = errors.New("the leader's bid is gone")
)

// AnnounceConfig is what an Announce is about.
type AnnounceConfig struct {
	Path    string         // where it is announced; the parent is not made
	Bid     string         // path of the leader's bid
	Session wire.SessionID // of the bid
	Token   wire.Zxid      // of the leader
	Data    []byte
}

// Announce announces a leader's configuration, in one transaction with the
// check that its bid still stands, and never over one of a later leader.
//
//	read ▸ of a later leader: refused
//	     ▸ check the bid, make or set the znode ▸ answer lost: is it this that stands there now?
type Announce struct {
	claim.Requester
	cfg    AnnounceConfig
	text   []byte
	read   bool
	there  bool // was a znode
	before wire.Stat
	gone   bool // the bid's session is over
}

// NewAnnounce makes the state machine, which waits for Attached.
func NewAnnounce(cfg AnnounceConfig) *Announce {
	a := &Announce{cfg: cfg, text: Announcement{Token: cfg.Token, Data: cfg.Data}.Text(cfg.Bid)}
	a.Forget = func() { a.gone = true }
	return a
}

// Step takes one event, which happened at now.
func (a *Announce) Step(now claim.Moment, ev claim.Event) {
	a.Advance(now, ev, a.plan)
	switch {
	case a.Over() || a.Asked != 0:
	case a.gone || a.Current != 0 && a.Current != a.cfg.Session:
		a.End(claim.Failed, ErrBidGone)
	case a.Leaving && a.Unsure == 0:
		a.End(claim.Withdrawn, nil)
	}
}

// Ready hands out what has come of the steps since the last call.
func (a *Announce) Ready() claim.Ready { return a.Collect() }

func (a *Announce) plan() {
	switch {
	case a.Current != a.cfg.Session || a.Leaving && a.Unsure == 0:
	case a.Unsure != 0:
		a.Ask(a.tookAgain, claim.Op{Kind: claim.OpSync, Path: a.cfg.Path}, claim.Op{Kind: claim.OpGet, Path: a.cfg.Path})
	case !a.read:
		a.Ask(func(res []claim.Result) { a.tookOld(res[0]) }, claim.Op{Kind: claim.OpGet, Path: a.cfg.Path})
	default:
		op := claim.Op{Kind: claim.OpCreate, Path: a.cfg.Path, Data: a.text, Persistent: true}
		if a.there {
			op = claim.Op{Kind: claim.OpSet, Path: a.cfg.Path, Data: a.text, Version: a.before.Version}
		}
		a.Attempt(a.tookWrite, claim.Op{Kind: claim.OpMulti, Path: a.cfg.Path, Ops: []claim.Op{{Kind: claim.OpCheck, Path: a.cfg.Bid, Version: claim.AnyVersion}, op}})
	}
}

// tookOld looks at what is to be replaced.
func (a *Announce) tookOld(r claim.Result) {
	if r.Err != nil && !errors.Is(r.Err, wire.ErrNoNode) {
		a.End(claim.Failed, r.Err)
		return
	}
	if r.Err == nil && a.isNewer(r) {
		a.End(claim.Failed, ErrNewer)
		return
	}
	a.read, a.there, a.before = true, r.Err == nil, r.Stat
}

// isNewer reports whether a znode is of a later leader.
func (a *Announce) isNewer(r claim.Result) bool {
	old, ok := ParseAnnouncement(r.Data, r.Stat)
	return ok && old.Token > a.cfg.Token
}

// tookWrite: where somebody else was faster it is read again.
func (a *Announce) tookWrite(res []claim.Result) {
	switch err, bid := res[0].Err, res[0].Failed == 0; {
	case err == nil:
		a.End(claim.Succeeded, nil)
	case bid && errors.Is(err, wire.ErrNoNode):
		a.End(claim.Failed, ErrBidGone)
	case errors.Is(err, wire.ErrBadVersion), errors.Is(err, wire.ErrNodeExists), a.there && errors.Is(err, wire.ErrNoNode):
		a.read = false
	default:
		a.End(claim.Failed, err)
	}
}

// tookAgain: a znode that has changed since it was read, and says this, was
// written by the attempt whose answer was lost. Otherwise it is tried again:
// the same attempt, should it come late, finds another version.
func (a *Announce) tookAgain(res []claim.Result) {
	switch sync, r := res[0].Err, res[1]; {
	case sync != nil, r.Err != nil && !errors.Is(r.Err, wire.ErrNoNode):
		a.End(claim.Failed, nil) // which is unclear
	case r.Err == nil && r.Stat.Mzxid != a.before.Mzxid && bytes.Equal(r.Data, a.text):
		a.Unsure = 0
		a.End(claim.Succeeded, nil)
	case r.Err == nil && a.isNewer(r): // in whose place this may have stood
		a.End(claim.Failed, ErrNewer)
	default:
		a.Unsure = 0
		a.tookOld(r)
	}
}
