package value

import (
	"errors"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// follower reads and watches one znode, whether it exists or not, and reads it again after each event. It
// is the common part of Announcements and Leaders. A change costs one event and at most two reads. A
// follower continues in later sessions.
type follower struct {
	claim.Requester
	path  string
	watch uint64             // number of the request that set the watch; 0: no watch
	look  func(claim.Result) // processes what was read; the error of its argument is nil or ErrNoNode
}

func (f *follower) follow(path string, look func(claim.Result)) {
	f.path, f.look = path, look
	f.Forget = func() { f.watch = 0 }
}

// Step processes one event, which happened at now. After Resign, the driver must remove the watch.
func (f *follower) Step(now claim.Moment, ev claim.Event) {
	if ev, ok := ev.(claim.Fired); ok && ev.N == f.watch {
		f.watch = 0
	}
	f.Advance(now, ev, f.plan)
	if f.Leaving && !f.Over() {
		f.End(claim.Withdrawn, nil)
	}
}

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

// Announcements follows the configurations that leaders announce at one znode. It ignores a configuration
// that is older than the last one it has seen, which a server that is behind may show in a later session.
type Announcements struct {
	follower
	Last  Announcement
	mzxid wire.Zxid // mzxid of Last
	news  bool      // Next has not returned Last yet
}

// NewAnnouncements returns the state machine. It does nothing until Attached is stepped.
func NewAnnouncements(path string) *Announcements {
	f := &Announcements{}
	f.follow(path, f.saw)
	return f
}

// Next returns the last configuration, and whether it is new since the last call.
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

// Succession remembers the newest leader that was seen. An older leader, or data that no leader of this
// recipe wrote, counts as a vacancy.
type Succession struct{ seen wire.Zxid } // the largest token seen

// Newest processes the content of LEADER. It returns the current leader, or an empty Notice for a vacancy.
func (s *Succession) Newest(n claim.Notice) claim.Notice {
	if n.Token < s.seen {
		return claim.Notice{}
	}
	s.seen = n.Token
	return n
}

// Leaders follows who leads an election, by reading LEADER.
type Leaders struct {
	follower
	know  func(claim.Notice) claim.Notice
	last  claim.Notice // empty: no leader is published
	told  bool         // LEADER was read at least once
	fresh bool         // Next has not returned last yet
}

// NewLeaders returns the state machine. It does nothing until Attached is stepped. know is the method
// Newest of a Succession. Several machines may share the Succession.
func NewLeaders(path string, know func(claim.Notice) claim.Notice) *Leaders {
	l := &Leaders{know: know}
	l.follow(path, l.saw)
	return l
}

// Next returns the current leader, or an empty Notice for a vacancy, and whether it is new since the last
// call.
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
