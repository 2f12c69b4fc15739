package claim

import (
	"errors"

	"bellwether/wire"
)

// follower reads one znode and watches it, whether there is one or not, and
// after each event again: it is what those who follow a leader have in common.
// A change costs it one event, and at most two reads. It goes on in the next
// session.
type follower struct {
	asker
	path  string
	watch uint64       // the request that set the watch; 0: there is none
	look  func(Result) // takes what was read; its error is ErrNoNode or none
}

func (f *follower) follow(path string, look func(Result)) {
	f.path, f.look = path, look
	f.forget = func() { f.watch = 0 }
}

// Step takes one event, which happened at now. Who gives up by Resign leaves
// the watch to its driver.
func (f *follower) Step(now Moment, ev Event) {
	if ev, ok := ev.(Fired); ok && ev.N == f.watch {
		f.watch = 0
	}
	f.step(now, ev, f.plan)
	if f.leaving && !f.Over() {
		f.end(Withdrawn, nil)
	}
}

// Ready hands out what has come of the steps since the last call.
func (f *follower) Ready() Ready { return f.ready() }

func (f *follower) plan() {
	if f.watch == 0 && !f.leaving {
		f.ask(f.took, Op{Kind: OpAwait, Path: f.path})
	}
}

func (f *follower) took(res []Result) {
	r := res[0]
	if r.Err != nil && !errors.Is(r.Err, wire.ErrNoNode) {
		f.end(Failed, r.Err)
		return
	}
	f.watch = f.n
	f.look(r)
}

// Announcements follows what leaders announce at one znode. One of an older
// leader than seen before, or an older one of the same, is no news; a server
// that is behind may show it in the next session.
type Announcements struct {
	follower
	last  Announcement
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
	return f.last, news
}

func (f *Announcements) saw(r Result) {
	a, ok := ParseAnnouncement(r.Data, r.Stat)
	if r.Err != nil || !ok || a.Token < f.last.Token || r.Stat.Mzxid <= f.mzxid {
		return
	}
	f.last, f.mzxid, f.news = a, r.Stat.Mzxid, true
}

// Succession is who has been seen to lead, at any time. A leader that is older than one
// seen before counts as a vacancy, and so does what others wrote.
type Succession struct{ seen wire.Zxid } // the largest token

// Know takes what LEADER says, and returns who leads by that.
func (s *Succession) Know(n Notice) Notice {
	if n.Token < s.seen {
		return Notice{}
	}
	s.seen = n.Token
	return n
}

// Leaders follows who leads, by LEADER.
type Leaders struct {
	follower
	know  func(Notice) Notice
	last  Notice // empty: nobody has made itself known
	told  bool   // there is a last
	fresh bool
}

// NewLeaders makes the state machine, which waits for Attached. What it reads goes
// through the Know of a Succession, which others may know of too.
func NewLeaders(path string, know func(Notice) Notice) *Leaders {
	l := &Leaders{know: know}
	l.follow(path, l.saw)
	return l
}

// Next is who leads, a vacancy included, if it was not returned before.
func (l *Leaders) Next() (Notice, bool) {
	fresh := l.fresh
	l.fresh = false
	return l.last, fresh
}

func (l *Leaders) saw(r Result) {
	var n Notice
	if r.Err == nil {
		n = NoticeOf(r.Data, r.Stat)
	}
	if n = l.know(n); !l.told || n != l.last {
		l.last, l.told, l.fresh = n, true, true
	}
}
