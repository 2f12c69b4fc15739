package value

import (
	"errors"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// follower reads one znode and watches it, whether there is one or not, and
// after each event again: it is what those who follow a leader have in common.
// A change costs it one event, and at most two reads. It goes on in the next
// session.
type follower struct {
	claim.Requester
	path  string
	watch uint64             // the request that set the watch; 0: there is none
	look  func(claim.Result) // takes what was read; its error is ErrNoNode or none
}

func (f *follower) follow(path string, look func(claim.Result)) {
	f.path, f.look = path, look
	f.Forget = func() { f.watch = 0 }
}

// Step takes one event, which happened at now. Who gives up by Resign leaves
// the watch to its driver.
func (f *follower) Step(now claim.Moment, ev claim.Event) {
	if ev, ok := ev.(claim.Fired); ok && ev.N == f.watch {
		f.watch = 0
	}
	f.Advance(now, ev, f.plan)
	if f.Leaving && !f.Over() {
		f.End(claim.Withdrawn, nil)
	}
}

// Ready hands out what has come of the steps since the last call.
func (f *follower) Ready() claim.Ready { return f.Collect() }

func (f *follower) plan() {
	if f.watch == 0 && !f.Leaving {
		f.Ask(f.took, claim.Op{Kind: claim.OpAwait, Path: f.path})
	}
}

func (f *follower) took(res []claim.Result) {
	r := res[0]
	if r.Err != nil && !errors.Is(r.Err, wire.ErrNoNode) {
		f.End(claim.Failed, r.Err)
		return
	}
	f.watch = f.N
	f.look(r)
}

// Announcements follows what leaders announce at one znode. One of an older
// leader than seen before, or an older one of the same, is no news; a server
// that is behind may show it in the next session.
type Announcements struct {
	follower
	Last  Announcement
	mzxid wire.Zxid // of the last
	news  bool
}

// NewAnnouncements makes the state machine, which waits for Attached.
func NewAnnouncements(path string) *Announcements {
	f := &Announcements{}
	f.follow(path, f.saw)
	return f
}

// Next is the latest, if it was not returned before.
func (f *Announcements) Next() (Announcement, bool) {
	news := f.news
	f.news = false
	return f.Last, news
}

func (f *Announcements) saw(r claim.Result) {
	a, ok := ParseAnnouncement(r.Data, r.Stat)
	if r.Err != nil || !ok || a.Token < f.Last.Token || r.Stat.Mzxid <= f.mzxid {
		return
	}
	f.Last, f.mzxid, f.news = a, r.Stat.Mzxid, true
}

// Succession is who has been seen to lead, at any time. A leader that is older than one
// seen before counts as a vacancy, and so does what others wrote.
type Succession struct{ seen wire.Zxid } // the largest token

// Know takes what LEADER says, and returns who leads by that.
func (s *Succession) Know(n claim.Notice) claim.Notice {
	if n.Token < s.seen {
		return claim.Notice{}
	}
	s.seen = n.Token
	return n
}

// Leaders follows who leads, by LEADER.
type Leaders struct {
	follower
	know  func(claim.Notice) claim.Notice
	last  claim.Notice // empty: nobody has made itself known
	told  bool         // there is a last
	fresh bool
}

// NewLeaders makes the state machine, which waits for Attached. What it reads goes
// through the Know of a Succession, which others may know of too.
func NewLeaders(path string, know func(claim.Notice) claim.Notice) *Leaders {
	l := &Leaders{know: know}
	l.follow(path, l.saw)
	return l
}

// Next is who leads, a vacancy included, if it was not returned before.
func (l *Leaders) Next() (claim.Notice, bool) {
	fresh := l.fresh
	l.fresh = false
	return l.last, fresh
}

func (l *Leaders) saw(r claim.Result) {
	var n claim.Notice
	if r.Err == nil {
		n = claim.NoticeOf(r.Data, r.Stat)
	}
	if n = l.know(n); !l.told || n != l.last {
		l.last, l.told, l.fresh = n, true, true
	}
}
