package claim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

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
	asker
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
	a.forget = func() { a.gone = true }
	return a
}

// Step takes one event, which happened at now.
func (a *Announce) Step(now Moment, ev Event) {
	a.step(now, ev, a.plan)
	switch {
	case a.Over() || a.asked != 0:
	case a.gone || a.session != 0 && a.session != a.cfg.Session:
		a.end(Failed, ErrBidGone)
	case a.leaving && a.doubt == 0:
		a.end(Withdrawn, nil)
	}
}

// Ready hands out what has come of the steps since the last call.
func (a *Announce) Ready() Ready { return a.ready() }

func (a *Announce) plan() {
	switch {
	case a.session != a.cfg.Session || a.leaving && a.doubt == 0:
	case a.doubt != 0:
		a.ask(a.tookAgain, Op{Kind: OpSync, Path: a.cfg.Path}, Op{Kind: OpGet, Path: a.cfg.Path})
	case !a.read:
		a.ask(func(res []Result) { a.tookOld(res[0]) }, Op{Kind: OpGet, Path: a.cfg.Path})
	default:
		op := Op{Kind: OpCreate, Path: a.cfg.Path, Data: a.text, Persistent: true}
		if a.there {
			op = Op{Kind: OpSet, Path: a.cfg.Path, Data: a.text, Version: a.before.Version}
		}
		a.attempt(a.tookWrite, Op{Kind: OpMulti, Path: a.cfg.Path, Ops: []Op{{Kind: OpCheck, Path: a.cfg.Bid, Version: AnyVersion}, op}})
	}
}

// tookOld looks at what is to be replaced.
func (a *Announce) tookOld(r Result) {
	if r.Err != nil && !errors.Is(r.Err, wire.ErrNoNode) {
		a.end(Failed, r.Err)
		return
	}
	if r.Err == nil && a.isNewer(r) {
		a.end(Failed, ErrNewer)
		return
	}
	a.read, a.there, a.before = true, r.Err == nil, r.Stat
}

// isNewer reports whether a znode is of a later leader.
func (a *Announce) isNewer(r Result) bool {
	old, ok := ParseAnnouncement(r.Data, r.Stat)
	return ok && old.Token > a.cfg.Token
}

// tookWrite: where somebody else was faster it is read again.
func (a *Announce) tookWrite(res []Result) {
	switch err, bid := res[0].Err, res[0].Failed == 0; {
	case err == nil:
		a.end(Succeeded, nil)
	case bid && errors.Is(err, wire.ErrNoNode):
		a.end(Failed, ErrBidGone)
	case errors.Is(err, wire.ErrBadVersion), errors.Is(err, wire.ErrNodeExists), a.there && errors.Is(err, wire.ErrNoNode):
		a.read = false
	default:
		a.end(Failed, err)
	}
}

// tookAgain: a znode that has changed since it was read, and says this, was
// written by the attempt whose answer was lost. Otherwise it is tried again:
// the same attempt, should it come late, finds another version.
func (a *Announce) tookAgain(res []Result) {
	switch sync, r := res[0].Err, res[1]; {
	case sync != nil, r.Err != nil && !errors.Is(r.Err, wire.ErrNoNode):
		a.end(Failed, nil) // which is unclear
	case r.Err == nil && r.Stat.Mzxid != a.before.Mzxid && bytes.Equal(r.Data, a.text):
		a.doubt = 0
		a.end(Succeeded, nil)
	case r.Err == nil && a.isNewer(r): // in whose place this may have stood
		a.end(Failed, ErrNewer)
	default:
		a.doubt = 0
		a.tookOld(r)
	}
}
