package modeltest

import (
	"fmt"
	"testing"

	"bellwether/internal/claim"
	"bellwether/internal/claim/claimtest"
	"bellwether/internal/claim/value"
	"bellwether/wire"
)

// Leaders that announce configurations, and their followers, in the model of single operations.

const (
	modelConfig = "/app/config"
	modelBids   = "/app/bids"
)

// configWorld has a sequence of leaders, and followers. The model decides freely when bids are created and
// deleted.
type configWorld struct {
	*singleWorld
	bid   string
	words int               // number of announcements so far, which makes each text different
	said  map[string]bool   // texts that the znode has ever held
	last  map[*actor]seenBy // state of each follower
	own   map[*actor]bidOf  // bids of current and earlier leaders
	over  bool              // no leader announces any more
}

// bidOf is the bid of an actor.
type bidOf struct {
	bid     string
	token   wire.Zxid
	session wire.SessionID
}

// seenBy is the last configuration that a follower saw since it was started.
type seenBy struct {
	m    claimtest.Single
	seen value.Announcement
}

func newConfigWorld(choose func(int) int, b singleBroken) *configWorld {
	w := &configWorld{singleWorld: newSingleWorld(choose, b),
		said: map[string]bool{}, last: map[*actor]seenBy{}, own: map[*actor]bidOf{}}
	w.log[0]["/app"], w.log[0][modelBids] = &claimtest.Node{}, &claimtest.Node{}
	w.effect = func(_ *actor, ops []claim.Op) bool { return ops[len(ops)-1].Path == modelConfig }
	w.changed, w.stepped = w.note, w.look
	for i := range 3 {
		var a *actor
		a = w.add(fmt.Sprint("leader ", i), func() claimtest.Single { return w.announce(a) }, nil)
	}
	for i := range 3 {
		w.add(fmt.Sprint("follower ", i), func() claimtest.Single { return value.NewAnnouncements(modelConfig) }, nil)
	}
	return w
}

// announce lets an actor that believes that it leads announce the next text. The actor may be wrong.
func (w *configWorld) announce(a *actor) claimtest.Single {
	l, led := w.own[a]
	if !led || w.over {
		return nil
	}
	w.words++
	return value.NewAnnounce(value.AnnounceConfig{Path: modelConfig, Bid: l.bid, Session: l.session, Token: l.token, Data: fmt.Append(nil, w.words)})
}

// elect makes another actor the leader after the bid of the previous leader is gone.
func (w *configWorld) elect() {
	a := w.actors[w.choose(3)]
	view := map[string]*claimtest.Node{}
	for p, n := range w.tree() {
		if p != w.bid {
			view[p] = n
		}
	}
	z := wire.Zxid(len(w.log))
	w.bid = fmt.Sprintf("%s/n_%d", modelBids, z)
	view[w.bid] = &claimtest.Node{Czxid: z, Owner: a.session}
	w.own[a] = bidOf{w.bid, z, a.session}
	w.tellf("%s leads by %v in session %v", a.name, z, a.session)
	w.commit(view)
	if a.m == nil {
		w.next(a)
	}
}

// note checks that no announcement is followed by one of an older leader.
func (w *configWorld) note() {
	now := len(w.log) - 1
	before, after := w.log[now-1][modelConfig], w.log[now][modelConfig]
	if after == nil || before == after {
		return
	}
	w.said[after.Data] = true
	a, ok := value.ParseAnnouncement([]byte(after.Data), wire.Stat{})
	if !ok {
		w.violated("%q is announced", after.Data)
	}
	if before != nil {
		if old, _ := value.ParseAnnouncement([]byte(before.Data), wire.Stat{}); old.Token > a.Token {
			w.violated("the word of %v stands in the place of that of %v", a.Token, old.Token)
		}
	}
}

// look checks that a follower sees only announced texts, and never returns to an older one.
func (w *configWorld) look(a *actor) {
	f, ok := a.m.(*value.Announcements)
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

// run plays one history: first faults, then none until all followers have seen the last text.
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
		f, ok := a.m.(*value.Announcements)
		if w.wrong != "" || n == nil || !ok { // an actor that gave up has no state to check
			continue
		}
		if last, _ := value.ParseAnnouncement([]byte(n.Data), wire.Stat{}); string(f.Last.Data) != string(last.Data) {
			w.violated("%s knows %q, and %q stands there", a.name, f.Last.Data, last.Data)
		}
	}
}

// TestAnnouncementsUnderFaults checks that each text is announced once or not at all, as its leader
// reports; that none replaces that of a later leader; and that followers never return to an older text and
// see the last one.
func TestAnnouncementsUnderFaults(t *testing.T) { underFaults(t, newConfigWorld) }

// TestLeadersShowNobodyOlder checks that Leaders reports an older leader, or data that no leader wrote,
// once as a vacancy.
func TestLeadersShowNobodyOlder(t *testing.T) {
	l := value.NewLeaders("/e/LEADER", new(value.Succession).Newest)
	d := &claimtest.Dialogue{T: t, M: l}
	says := func(token wire.Zxid, owner wire.SessionID) claim.Result {
		return claim.Result{Data: claim.Notice{ID: "a", Bid: "b", Token: token}.Encode(), Stat: wire.Stat{EphemeralOwner: owner}}
	}
	d.Step(claim.Attached{Session: 1}, claim.OpAwait)
	for i, x := range []struct {
		saw   claim.Result
		token wire.Zxid
		news  bool
	}{
		{claimtest.None, 0, true}, {says(5, 1), 5, true}, {says(7, 0), 0, true}, {claimtest.None, 0, false}, {says(7, 2), 7, true},
		{says(7, 2), 7, false}, {says(6, 2), 0, true}, {claim.Result{Data: []byte("junk")}, 0, false}, {says(7, 2), 7, true},
	} {
		d.Step(d.Answer(x.saw))
		if n, news := l.Next(); n.Token != x.token || news != x.news {
			t.Errorf("%d: %+v, news %v", i, n, news)
		}
		if i%2 == 0 {
			d.Step(claim.Fired{Path: "/e/LEADER", N: d.N}, claim.OpAwait)
		} else {
			d.Step(claim.Expired{})
			d.Step(claim.Attached{Session: wire.SessionID(i)}, claim.OpAwait)
		}
	}
	d.Step(d.Answer(claim.Result{Err: wire.ErrNoAuth}))
	d.Ends(claim.Failed)
}

// aboutToAnnounce returns the dialogue of a leader that has requested the write.
func aboutToAnnounce(t *testing.T, old claim.Result) *claimtest.Dialogue {
	d := &claimtest.Dialogue{T: t, M: value.NewAnnounce(value.AnnounceConfig{Path: modelConfig, Bid: "/b", Session: 1, Token: 5, Data: []byte("x")})}
	d.Step(claim.Attached{Session: 1}, claim.OpGet)
	d.Step(d.Answer(old), claim.OpMulti)
	return d
}

// TestAnnounceFindsOut checks how Announce determines the outcome of a lost write.
func TestAnnounceFindsOut(t *testing.T) {
	text := value.Announcement{Token: 5, Data: []byte("x")}.Text("/b")
	same := claim.Result{Data: text, Stat: wire.Stat{Mzxid: 3}}
	d := aboutToAnnounce(t, same) // the same leader has announced the same text before
	d.Step(d.Lost())
	d.Step(claim.Attached{Session: 1}, claim.OpSync, claim.OpGet)
	d.Step(d.Answer(claim.Result{}, same), claim.OpMulti)
	d.Step(d.Lost())
	d.Step(claim.Attached{Session: 1}, claim.OpSync, claim.OpGet)
	d.Step(d.Answer(claim.Result{}, claim.Result{Data: text, Stat: wire.Stat{Mzxid: 9}}))
	d.Ends(claim.Succeeded)

	d = aboutToAnnounce(t, claimtest.None)
	d.Step(d.Lost())
	d.Step(claim.Attached{Session: 2})
	d.Ends(claim.Unclear)

	d = aboutToAnnounce(t, claimtest.None)
	d.Step(d.Lost())
	d.Step(claim.Attached{Session: 1}, claim.OpSync, claim.OpGet)
	d.Step(d.Answer(claim.Result{}, claim.Result{Data: value.Announcement{Token: 6}.Text("/c"), Stat: wire.Stat{Mzxid: 9}})) // this leader's write may have come before that of the later leader
	d.Ends(claim.Unclear)
}

// TestAnnounceKnowsItsPlace checks that the text of a later leader is never replaced, and that nothing is
// announced after the bid is gone.
func TestAnnounceKnowsItsPlace(t *testing.T) {
	later := claim.Result{Data: value.Announcement{Token: 6}.Text("/c")}
	d := aboutToAnnounce(t, claimtest.None)
	d.Step(d.Answer(claim.Result{Err: wire.ErrNodeExists, Failed: 1}), claim.OpGet)
	d.Step(d.Answer(later))
	d.Ends(claim.Failed)
	if err := d.M.(*value.Announce).Err(); err != value.ErrNewer {
		t.Error(err)
	}
	d = aboutToAnnounce(t, claim.Result{})
	d.Step(d.Answer(claim.Result{Err: wire.ErrNoNode, Failed: 0}))
	d.Ends(claim.Failed)
	if err := d.M.(*value.Announce).Err(); err != value.ErrBidGone {
		t.Error(err)
	}
	d = aboutToAnnounce(t, claimtest.None)
	d.Step(d.Answer(claim.Result{Err: wire.ErrNoNode, Failed: 1})) // the parent is missing
	d.Ends(claim.Failed)
}

// TestFollowersHearTheWatchThatStands checks that a follower ignores the late end of a watch that it set
// in an earlier session.
func TestFollowersHearTheWatchThatStands(t *testing.T) {
	d := &claimtest.Dialogue{T: t, M: value.NewLeaders("/e/LEADER", new(value.Succession).Newest)}
	d.Step(claim.Attached{Session: 1}, claim.OpAwait)
	late := claim.Fired{Path: "/e/LEADER", N: d.N}
	d.Step(d.Answer(claimtest.None))
	d.Step(claim.Expired{})
	d.Step(claim.Attached{Session: 2}, claim.OpAwait)
	d.Step(d.Answer(claimtest.None))
	d.Step(late)
	d.Step(claim.Fired{Path: "/e/LEADER", N: d.N}, claim.OpAwait)
}

// TestLeadersShareASuccession checks that several Leaders share what they know: once one of them knows a
// later leader, the others ignore older leaders.
func TestLeadersShareASuccession(t *testing.T) {
	var all value.Succession
	for _, c := range []struct {
		token wire.Zxid
		ok    bool
	}{{5, true}, {7, true}, {6, false}, {0, false}, {7, true}} {
		l := value.NewLeaders("/e/LEADER", all.Newest)
		d := &claimtest.Dialogue{T: t, M: l}
		d.Step(claim.Attached{Session: 1}, claim.OpAwait)
		d.Step(d.Answer(claim.Result{Data: claim.Notice{ID: "a", Bid: "b", Token: c.token}.Encode(), Stat: wire.Stat{EphemeralOwner: 1}}))
		if n, fresh := l.Next(); !fresh || (n.Token != 0) != c.ok {
			t.Errorf("token %v: %+v (%v)", c.token, n, fresh)
		}
	}
}
