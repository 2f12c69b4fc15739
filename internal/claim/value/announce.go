package value

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// Announcement is a configuration that a leader has announced. The first line of its znode identifies the
// leader, and the rest is the configuration.
type Announcement struct {
	Token   wire.Zxid // token of the leader
	Version int32     // version of the znode
	Data    []byte
}

// announcementHead is the first line, encoded as JSON.
type announcementHead struct {
	Token string `json:"token"`
	Bid   string `json:"bid"`
}

// Text returns the data of the znode. bid is the path of the leader's bid.
func (a Announcement) Text(bid string) []byte {
	head, err := json.Marshal(announcementHead{Token: fmt.Sprintf("%#x", int64(a.Token)), Bid: bid})
	if err != nil {
		panic(fmt.Sprintf("claim: encoding %q: %v", bid, err)) // two strings can always be encoded
	}
	return append(append(head, '\n'), a.Data...)
}

// ParseAnnouncement parses the data of a znode. It returns false if no leader announced it.
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

// Errors with which an Announce ends.
var (
	ErrNewer   = errors.New("a later leader has announced a configuration")
	ErrBidGone = errors.New("the leader's bid is gone")
)

// AnnounceConfig describes an Announce.
type AnnounceConfig struct {
	Path    string         // path of the announcement; Announce does not create its parent
	Bid     string         // path of the leader's bid
	Session wire.SessionID // session of the bid
	Token   wire.Zxid      // token of the leader
	Data    []byte
}

// Announce writes a leader's configuration, in one transaction with a check that the leader's bid exists.
// It never replaces the configuration of a later leader.
//
//	read ▸ of a later leader: refused
//	     ▸ check the bid, create or set the znode ▸ answer lost: does the znode hold this configuration now?
type Announce struct {
	claim.Requester
	cfg    AnnounceConfig
	text   []byte
	read   bool
	there  bool // the znode existed at the last read
	before wire.Stat
	gone   bool // the bid's session is over
}

// NewAnnounce returns the state machine. It does nothing until Attached is stepped.
func NewAnnounce(cfg AnnounceConfig) *Announce {
	a := &Announce{cfg: cfg, text: Announcement{Token: cfg.Token, Data: cfg.Data}.Text(cfg.Bid)}
	a.Forget = func() { a.gone = true }
	return a
}

// Step processes one event, which happened at now.
func (a *Announce) Step(now claim.Moment, ev claim.Event) {
	a.Advance(now, ev, a.plan)
	switch {
	case a.Over() || a.Asked != 0:
	case a.gone || a.Current != 0 && a.Current != a.cfg.Session:
		a.End(claim.Failed, ErrBidGone)
	case a.Leaving && a.InDoubt == 0:
		a.End(claim.Withdrawn, nil)
	}
}

func (a *Announce) plan() {
	switch {
	case a.Current != a.cfg.Session || a.Leaving && a.InDoubt == 0:
	case a.InDoubt != 0:
		a.Ask(a.tookAgain, claim.Sync(a.cfg.Path), claim.Get(a.cfg.Path))
	case !a.read:
		a.Ask(func(res []claim.Result) { a.tookOld(res[0]) }, claim.Get(a.cfg.Path))
	default:
		op := claim.Op{Kind: claim.OpCreate, Path: a.cfg.Path, Data: a.text, Persistent: true}
		if a.there {
			op = claim.Op{Kind: claim.OpSet, Path: a.cfg.Path, Data: a.text, Version: a.before.Version}
		}
		a.Attempt(a.tookWrite, claim.Multi(a.cfg.Path, claim.Check(a.cfg.Bid), op))
	}
}

// tookOld processes the read of the znode that is to be replaced.
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

// isNewer reports whether a znode holds the configuration of a later leader.
func (a *Announce) isNewer(r claim.Result) bool {
	old, ok := ParseAnnouncement(r.Data, r.Stat)
	return ok && old.Token > a.cfg.Token
}

// tookWrite processes the result of the write. If another client has changed the znode meanwhile, it is
// read again.
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

// tookAgain processes the look after a lost answer. If the znode has changed and holds this configuration,
// the write was carried out. Otherwise Announce tries again. If the first write still arrives later, its
// version condition fails.
func (a *Announce) tookAgain(res []claim.Result) {
	switch sync, r := res[0].Err, res[1]; {
	case sync != nil, r.Err != nil && !errors.Is(r.Err, wire.ErrNoNode):
		a.EndUnclear(cmp.Or(sync, r.Err))
	case r.Err == nil && r.Stat.Mzxid != a.before.Mzxid && bytes.Equal(r.Data, a.text):
		a.InDoubt = 0
		a.End(claim.Succeeded, nil)
	case r.Err == nil && a.isNewer(r): // this configuration may have been written in between
		a.End(claim.Failed, ErrNewer)
	default:
		a.InDoubt = 0
		a.tookOld(r)
	}
}
