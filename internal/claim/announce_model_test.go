package claim

import (
	"fmt"
	"testing"

	"bellwether/wire"
)

// Leaders that announce configurations, and who follows them, in the model of
// single operations.

const (
	modelConfig = "/app/config"
	modelBids   = "/app/bids"
)

// configWorld has leaders, one after the other, and followers. The bids stand
// and go as they please: it is the model's election.
type configWorld struct {
	*singleWorld
	bid   string
	words int               // announced, to tell them apart
	said  map[string]bool   // texts that ever stood there
	last  map[*actor]seenBy // of followers
	own   map[*actor]bidOf  // of who leads, or did
	over  bool              // nobody announces any more
}

// bidOf is an actor's bid.
type bidOf struct {
	bid     string
	token   wire.Zxid
	session wire.SessionID
}

// seenBy is what a follower has seen last, in one life.
type seenBy struct {
	m    single
	seen Announcement
}

func newConfigWorld(choose func(int) int, b singleBroken) *configWorld {
	w := &configWorld{singleWorld: newSingleWorld(choose, b),
		said: map[string]bool{}, last: map[*actor]seenBy{}, own: map[*actor]bidOf{}}
	w.log[0]["/app"], w.log[0][modelBids] = &node{}, &node{}
	w.effect = func(_ *actor, ops []Op) bool { return ops[len(ops)-1].Path == modelConfig }
	w.changed, w.stepped = w.note, w.look
	for i := range 3 {
		var a *actor
		a = w.add(fmt.Sprint("leader ", i), func() single { return w.announce(a) }, nil)
	}
	for i := range 3 {
		w.add(fmt.Sprint("follower ", i), func() single { return NewAnnouncements(modelConfig) }, nil)
	}
	return w
}

// announce is the next word of who takes itself for the leader, rightly or not.
func (w *configWorld) announce(a *actor) single {
	l, led := w.own[a]
	if !led || w.over {
		return nil
	}
	w.words++
	return NewAnnounce(AnnounceConfig{Path: modelConfig, Bid: l.bid, Session: l.session, Token: l.token, Data: fmt.Append(nil, w.words)})
}

// elect lets another lead: the bid of the one before has gone by then.
func (w *configWorld) elect() {
	a := w.actors[w.choose(3)]
	view := map[string]*node{}
	for p, n := range w.tree() {
		if p != w.bid {
			view[p] = n
		}
	}
	z := wire.Zxid(len(w.log))
	w.bid = fmt.Sprintf("%s/n_%d", modelBids, z)
	view[w.bid] = &node{czxid: z, owner: a.session}
	w.own[a] = bidOf{w.bid, z, a.session}
	w.tellf("%s leads by %v in session %v", a.name, z, a.session)
	w.commit(view)
	if a.m == nil {
		w.next(a)
	}
}

// note: no announcement is followed by one of an older leader.
func (w *configWorld) note() {
	now := len(w.log) - 1
	before, after := w.log[now-1][modelConfig], w.log[now][modelConfig]
	if after == nil || before == after {
		return
	}
	w.said[after.data] = true
	a, ok := ParseAnnouncement([]byte(after.data), wire.Stat{})
	if !ok {
		w.violated("%q is announced", after.data)
	}
	if before != nil {
		if old, _ := ParseAnnouncement([]byte(before.data), wire.Stat{}); old.Token > a.Token {
			w.violated("the word of %v stands in the place of that of %v", a.Token, old.Token)
		}
	}
}

// look: what a follower sees was announced, and never goes back.
func (w *configWorld) look(a *actor) {
	f, ok := a.m.(*Announcements)
	if !ok {
		return
	}
	now, news := f.Next()
	was := w.last[a]
	switch {
	case !news:
		return
	case !w.said[string(now.Text(fmt.Sprintf("%s/n_%d", modelBids, now.Token)))]:
		w.violated("%s sees %+v, which nobody announced", a.name, now)
	case was.m == a.m && (now.Token < was.seen.Token || now.Token == was.seen.Token && now.Version <= was.seen.Version):
		w.violated("%s sees %+v after %+v", a.name, now, was.seen)
	}
	w.last[a] = seenBy{a.m, now}
}

// run is one history: faults, then none until all have seen the last word.
func (w *configWorld) run(steps int) {
	for range steps {
		if w.choose(30) == 0 {
			w.elect()
		}
		if w.act(); w.wrong != "" {
			return
		}
	}
	w.over = true
	w.settle()
	n := w.tree()[modelConfig]
	for _, a := range w.actors[3:] {
		f, ok := a.m.(*Announcements)
		if w.wrong != "" || n == nil || !ok { // who has given up sees nothing
			continue
		}
		if last, _ := ParseAnnouncement([]byte(n.data), wire.Stat{}); string(f.last.Data) != string(last.Data) {
			w.violated("%s knows %q, and %q stands there", a.name, f.last.Data, last.Data)
		}
	}
}

// TestAnnouncementsUnderFaults: each is announced once, or not, as its leader
// says; none stands in the place of a later leader's; followers see none that
// is older than what they have seen, and in the end the last.
func TestAnnouncementsUnderFaults(t *testing.T) { underFaults(t, newConfigWorld) }

// TestLeadersShowNobodyOlder: what LEADER says of an older leader, and what
// none wrote, is a vacancy, and told once.
func TestLeadersShowNobodyOlder(t *testing.T) {
	l := NewLeaders("/e/LEADER", new(Succession).Know)
	d := &dialogue{t: t, m: l}
	says := func(token wire.Zxid, owner wire.SessionID) Result {
		return Result{Data: Notice{ID: "a", Bid: "b", Token: token}.Encode(), Stat: wire.Stat{EphemeralOwner: owner}}
	}
	d.step(Attached{Session: 1}, OpAwait)
	for i, x := range []struct {
		saw   Result
		token wire.Zxid
		news  bool
	}{
		{none, 0, true}, {says(5, 1), 5, true}, {says(7, 0), 0, true}, {none, 0, false}, {says(7, 2), 7, true},
		{says(7, 2), 7, false}, {says(6, 2), 0, true}, {Result{Data: []byte("junk")}, 0, false}, {says(7, 2), 7, true},
	} {
		d.step(d.answer(x.saw))
		if n, news := l.Next(); n.Token != x.token || news != x.news {
			t.Errorf("%d: %+v, news %v", i, n, news)
		}
		if i%2 == 0 {
			d.step(Fired{Path: "/e/LEADER", N: d.n}, OpAwait)
		} else {
			d.step(Expired{})
			d.step(Attached{Session: wire.SessionID(i)}, OpAwait)
		}
	}
	d.step(d.answer(Result{Err: wire.ErrNoAuth}))
	d.ends(Failed)
}

// aboutToAnnounce is a leader that has asked for its word to be written.
func aboutToAnnounce(t *testing.T, old Result) *dialogue {
	d := &dialogue{t: t, m: NewAnnounce(AnnounceConfig{Path: modelConfig, Bid: "/b", Session: 1, Token: 5, Data: []byte("x")})}
	d.step(Attached{Session: 1}, OpGet)
	d.step(d.answer(old), OpMulti)
	return d
}

// TestAnnounceFindsOut whether what it has sent was carried out.
func TestAnnounceFindsOut(t *testing.T) {
	text := Announcement{Token: 5, Data: []byte("x")}.Text("/b")
	same := Result{Data: text, Stat: wire.Stat{Mzxid: 3}}
	d := aboutToAnnounce(t, same) // which has announced the same before
	d.step(d.lost())
	d.step(Attached{Session: 1}, OpSync, OpGet)
	d.step(d.answer(Result{}, same), OpMulti)
	d.step(d.lost())
	d.step(Attached{Session: 1}, OpSync, OpGet)
	d.step(d.answer(Result{}, Result{Data: text, Stat: wire.Stat{Mzxid: 9}}))
	d.ends(Succeeded)

	d = aboutToAnnounce(t, none)
	d.step(d.lost())
	d.step(Attached{Session: 2})
	d.ends(Unclear)

	d = aboutToAnnounce(t, none)
	d.step(d.lost())
	d.step(Attached{Session: 1}, OpSync, OpGet)
	d.step(d.answer(Result{}, Result{Data: Announcement{Token: 6}.Text("/c"), Stat: wire.Stat{Mzxid: 9}})) // perhaps after this one
	d.ends(Unclear)
}

// TestAnnounceKnowsItsPlace: a later leader's word stays, and so does any when
// the bid is gone.
func TestAnnounceKnowsItsPlace(t *testing.T) {
	later := Result{Data: Announcement{Token: 6}.Text("/c")}
	d := aboutToAnnounce(t, none)
	d.step(d.answer(Result{Err: wire.ErrNodeExists, Failed: 1}), OpGet)
	d.step(d.answer(later))
	d.ends(Failed)
	if err := d.m.(*Announce).Err(); err != ErrNewer {
		t.Error(err)
	}
	d = aboutToAnnounce(t, Result{})
	d.step(d.answer(Result{Err: wire.ErrNoNode, Failed: 0}))
	d.ends(Failed)
	if err := d.m.(*Announce).Err(); err != ErrBidGone {
		t.Error(err)
	}
	d = aboutToAnnounce(t, none)
	d.step(d.answer(Result{Err: wire.ErrNoNode, Failed: 1})) // no parent
	d.ends(Failed)
}

// TestFollowersHearTheWatchThatStands: the end of one of an older session, which
// comes late, is no news.
func TestFollowersHearTheWatchThatStands(t *testing.T) {
	d := &dialogue{t: t, m: NewLeaders("/e/LEADER", new(Succession).Know)}
	d.step(Attached{Session: 1}, OpAwait)
	late := Fired{Path: "/e/LEADER", N: d.n}
	d.step(d.answer(none))
	d.step(Expired{})
	d.step(Attached{Session: 2}, OpAwait)
	d.step(d.answer(none))
	d.step(late)
	d.step(Fired{Path: "/e/LEADER", N: d.n}, OpAwait)
}

// TestLeadersShareASuccession: whoever knows of the later leader tells the others.
func TestLeadersShareASuccession(t *testing.T) {
	var all Succession
	for _, c := range []struct {
		token wire.Zxid
		ok    bool
	}{{5, true}, {7, true}, {6, false}, {0, false}, {7, true}} {
		l := NewLeaders("/e/LEADER", all.Know)
		d := &dialogue{t: t, m: l}
		d.step(Attached{Session: 1}, OpAwait)
		d.step(d.answer(Result{Data: Notice{ID: "a", Bid: "b", Token: c.token}.Encode(), Stat: wire.Stat{EphemeralOwner: 1}}))
		if n, fresh := l.Next(); !fresh || (n.Token != 0) != c.ok {
			t.Errorf("token %v: %+v (%v)", c.token, n, fresh)
		}
	}
}
