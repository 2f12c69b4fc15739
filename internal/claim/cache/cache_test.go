package cache

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"bellwether/internal/claim"
	"bellwether/internal/claim/claimtest"
	"bellwether/wire"
)

// cacheDialogue drives a Cache of /r by hand.
type cacheDialogue struct {
	claimtest.Dialogue
	c *Cache
}

func newCacheDialogue(t *testing.T) *cacheDialogue {
	c := NewCache(CacheConfig{Root: "/r", NodesMax: 10, BytesMax: 100})
	return &cacheDialogue{claimtest.Dialogue{T: t, M: c}, c}
}

// tells are the events since the last call.
func (d *cacheDialogue) tells(want ...string) {
	d.T.Helper()
	var got []string
	for _, e := range d.c.Events() {
		path := ""
		if e.Node != nil {
			path = " " + e.Node.Path
		}
		got = append(got, e.Type.String()+path)
	}
	if !slices.Equal(got, want) {
		d.T.Errorf("it tells %q, want %q", got, want)
	}
}

// at is a znode that was made by one transaction and set by another.
func at(czxid, mzxid wire.Zxid) claim.Result {
	return claim.Result{Stat: wire.Stat{Czxid: czxid, Mzxid: mzxid, Pzxid: czxid}}
}

func kids(n ...string) claim.Result { return claim.Result{Names: n} }

func told(typ wire.EventType, paths ...string) claim.Told {
	var t claim.Told
	for _, p := range paths {
		t.Events = append(t.Events, claim.TreeEvent{Type: typ, Path: p, Zxid: 9})
	}
	return t
}

// lostTo is a connection that was lost when everything up to a transaction was told.
func lostTo(z wire.Zxid) claim.Told {
	return claim.Told{Events: []claim.TreeEvent{{Type: wire.EventNone, Zxid: z}}}
}

// loaded holds /r, made at 1, and /r/a, made at 2, with /r/a/b, made at 3.
func loaded(t *testing.T) *cacheDialogue {
	d := newCacheDialogue(t)
	d.Step(claim.Attached{Session: 1}, claim.OpWatchTree)
	d.Step(d.Answer(claim.Result{}), claim.OpGet, claim.OpList)
	d.Step(d.Answer(at(1, 1), kids("a")), claim.OpGet, claim.OpList)
	d.Step(d.Answer(at(2, 2), kids("b")), claim.OpGet, claim.OpList)
	d.Step(d.Answer(at(3, 3), kids()))
	d.tells("added /r", "added /r/a", "added /r/a/b", "current")
	return d
}

// A Cache reads what an event is about, and what is deleted without a read; what
// comes together is read together.
func TestCacheFollows(t *testing.T) {
	d := loaded(t)
	d.Step(told(wire.EventNodeDataChanged, "/r", "/r/a", "/r/a"), claim.OpGet, claim.OpGet)
	d.Step(d.Answer(at(1, 4), at(2, 5)))
	d.tells("changed /r", "changed /r/a")
	d.Step(told(wire.EventNodeCreated, "/r/c", "/elsewhere"), claim.OpGet, claim.OpList)
	d.Step(d.Answer(at(6, 6), kids()))
	d.Step(told(wire.EventNodeDeleted, "/r/a/b", "/r/a"))
	d.tells("added /r/c", "removed /r/a/b", "removed /r/a")
	if got := d.c.Children("/r"); !slices.Equal(got, []string{"c"}) || d.c.Len() != 2 || d.c.Get("/r/a") != nil {
		t.Errorf("it holds %v", got)
	}
}

// TestCacheDeletedWhileRead: the answer may be older than the deletion, or tell
// of another znode of that name, of which an event tells too.
func TestCacheDeletedWhileRead(t *testing.T) {
	d := loaded(t)
	d.Step(told(wire.EventNodeDataChanged, "/r/a/b"), claim.OpGet)
	d.Step(told(wire.EventNodeDeleted, "/r/a/b"))
	d.Step(d.Answer(at(3, 4)))
	d.tells("removed /r/a/b")

	d = loaded(t)
	d.Step(told(wire.EventNodeDataChanged, "/r/a/b"), claim.OpGet)
	d.Step(told(wire.EventNodeDeleted, "/r/a/b"))
	d.Step(told(wire.EventNodeCreated, "/r/a/b"))
	d.Step(d.Answer(at(5, 5)), claim.OpGet, claim.OpList)
	d.Step(d.Answer(at(5, 5), kids()))
	d.tells("removed /r/a/b", "added /r/a/b")
}

// TestCacheMadeAnewWhileAway: parents are read before their children, so that
// none goes with a parent that it does not belong to.
func TestCacheMadeAnewWhileAway(t *testing.T) {
	d := loaded(t)
	d.Step(lostTo(3), claim.OpSince, claim.OpStat)
	d.Step(d.Answer(claim.Result{Told: told(wire.EventNodeDataChanged, "/r/a/b", "/r/a").Events}, at(1, 1)), claim.OpGet, claim.OpGet)
	d.Step(d.Answer(at(6, 6), at(7, 7)), claim.OpList, claim.OpList)
	d.tells("removed /r/a/b", "removed /r/a", "added /r/a", "added /r/a/b")
	d.Step(d.Answer(kids("b"), kids()))
	d.tells("current")
}

// TestCacheGapWhileItAsks: what is answered then may not be all.
func TestCacheGapWhileItAsks(t *testing.T) {
	d := loaded(t)
	d.Step(lostTo(3), claim.OpSince, claim.OpStat)
	d.Step(lostTo(8))
	d.M.Step(claim.Moment{}, d.Answer(claim.Result{}, at(1, 1)))
	if req := d.M.Ready().Request; req == nil || req.Ops[0].Kind != claim.OpSince || req.Ops[0].Since.Zxid != 3 {
		t.Fatalf("it asks for %+v", req)
	} else {
		d.N = req.N
	}
	if !d.c.Stale() {
		t.Error("it is not stale")
	}
	d.Step(d.Answer(claim.Result{}, at(1, 1)))
	d.tells("current")
}

// TestCacheInAnotherSession brings the server up to date before it believes it.
func TestCacheInAnotherSession(t *testing.T) {
	d := loaded(t)
	d.Step(claim.Expired{})
	d.Step(claim.WatchOver{Zxid: 3})
	d.Step(claim.Attached{Session: 2}, claim.OpSync)
	d.Step(d.Answer(claim.Result{}), claim.OpWatchTree)
	d.Step(d.Answer(claim.Result{}), claim.OpSince, claim.OpStat)
	gone := told(wire.EventNodeDeleted, "/r/a/b", "/r/a")
	d.Step(d.Answer(claim.Result{Told: gone.Events}, claim.Result{Stat: wire.Stat{Czxid: 1, Mzxid: 1, Pzxid: 5}}), claim.OpList)
	d.Step(d.Answer(kids()))
	d.tells("removed /r/a/b", "removed /r/a", "current")
}

// TestCacheAsksAgain for what was lost, but not for what has gone meanwhile.
func TestCacheAsksAgain(t *testing.T) {
	d := loaded(t)
	d.Step(told(wire.EventNodeDataChanged, "/r/a", "/r/a/b"), claim.OpGet, claim.OpGet)
	d.Step(claim.Disconnected{})
	d.Step(d.Answer(claim.Result{Err: wire.ErrConnectionLoss}, claim.Result{Err: wire.ErrConnectionLoss}))
	d.Step(told(wire.EventNodeDeleted, "/r/a/b"))
	d.Step(claim.Attached{Session: 1}, claim.OpGet)
	d.Step(d.Answer(at(2, 4)))
	d.tells("removed /r/a/b", "changed /r/a")
}

// TestCacheAnswerTooLarge: each by itself, once.
func TestCacheAnswerTooLarge(t *testing.T) {
	d := loaded(t)
	large := claim.Result{Err: ErrTooLarge}
	d.Step(told(wire.EventNodeDataChanged, "/r", "/r/a"), claim.OpGet, claim.OpGet)
	d.M.Step(claim.Moment{}, d.Answer(large, large))
	req := d.M.Ready().Request
	if req == nil || len(req.Ops) != 2 || !req.Ops[0].Alone || !req.Ops[1].Alone {
		t.Fatalf("it asks for %+v", req)
	}
	d.N = req.N
	d.Step(d.Answer(at(1, 4), large))
	d.tells("changed /r")
	if d.Ends(claim.Failed); !errors.Is(d.c.Err(), ErrTooLarge) || !strings.Contains(d.c.Err().Error(), "/r/a") {
		t.Errorf("ended by %v", d.c.Err())
	}
}

// TestCacheListOlderThanChild: what was made after the list is not missing in it.
func TestCacheListOlderThanChild(t *testing.T) {
	d := loaded(t)
	d.Step(told(wire.EventNodeCreated, "/r/c"), claim.OpGet, claim.OpList)
	d.Step(d.Answer(at(7, 7), kids()))
	d.Step(told(wire.EventNodeChildrenChanged, "/r"), claim.OpList)
	d.Step(d.Answer(claim.Result{Names: nil, Stat: wire.Stat{Pzxid: 6}}))
	d.tells("added /r/c", "removed /r/a/b", "removed /r/a")
}

// TestCacheCurrentInAStorm: events that go on coming do not keep it from being
// current as of its beginning.
func TestCacheCurrentInAStorm(t *testing.T) {
	d := newCacheDialogue(t)
	d.Step(claim.Attached{Session: 1}, claim.OpWatchTree)
	d.Step(d.Answer(claim.Result{}), claim.OpGet, claim.OpList)
	d.Step(told(wire.EventNodeDataChanged, "/r"))
	d.Step(d.Answer(at(1, 1), kids()), claim.OpGet)
	d.tells("added /r", "current")
}

// TestCacheOfAnOldServer sets its watches with each read, one for the return of
// the root too, which stands over a lost connection.
func TestCacheOfAnOldServer(t *testing.T) {
	d := newCacheDialogue(t)
	d.Step(claim.Attached{Session: 1}, claim.OpWatchTree)
	d.Step(d.Answer(claim.Result{Err: wire.ErrUnimplemented}), claim.OpListen)
	d.Step(d.Answer(claim.Result{}), claim.OpWatch, claim.OpWatchAll)
	d.Step(d.Answer(claimtest.None, claimtest.None), claim.OpExists)
	d.Step(d.Answer(claimtest.None))
	d.tells("current")
	d.Step(lostTo(3))
	d.tells("current")
	d.Step(told(wire.EventNodeCreated, "/r"), claim.OpWatch, claim.OpWatchAll)
	d.Step(d.Answer(at(5, 5), kids()))
	d.tells("added /r")
	d.Step(told(wire.EventNodeDeleted, "/r"), claim.OpWatch, claim.OpWatchAll)
	d.tells("removed /r")
	d.Step(d.Answer(claimtest.None, claimtest.None), claim.OpExists)
	d.Step(d.Answer(at(7, 7)), claim.OpWatch, claim.OpWatchAll) // it is back
	d.Step(d.Answer(at(7, 7), kids()))
	d.tells("added /r")
}

// TestCacheWhoseWatchIsOverAtOnce, before it is known to stand, sets another one.
func TestCacheWhoseWatchIsOverAtOnce(t *testing.T) {
	d := newCacheDialogue(t)
	d.Step(claim.Attached{Session: 1}, claim.OpWatchTree)
	d.Step(claim.WatchOver{Zxid: 3})
	d.Step(d.Answer(claim.Result{}), claim.OpWatchTree)
	d.Step(d.Answer(claim.Result{Err: wire.ErrUnimplemented}), claim.OpListen)
	d.Step(claim.WatchOver{Zxid: 4})
	d.Step(d.Answer(claim.Result{}), claim.OpWatchTree)
	d.Step(d.Answer(claim.Result{}), claim.OpGet, claim.OpList)
	d.Step(d.Answer(at(5, 5), kids()))
	d.tells("added /r", "current")
}

// TestCacheHidden: what may not be read is not there; any other refusal ends it.
func TestCacheHidden(t *testing.T) {
	d := loaded(t)
	d.Step(told(wire.EventNodeDataChanged, "/r/a/b", "/r/a"), claim.OpGet, claim.OpGet)
	d.Step(d.Answer(claim.Result{Err: wire.ErrNoAuth}, claim.Result{Err: wire.ErrBadArguments}))
	d.tells("removed /r/a/b")
	d.Ends(claim.Failed)
}

// TestCacheIsFull when it holds more znodes, or more bytes, than it may.
func TestCacheIsFull(t *testing.T) {
	d := newCacheDialogue(t)
	d.Step(claim.Attached{Session: 1}, claim.OpWatchTree)
	d.Step(d.Answer(claim.Result{}), claim.OpGet, claim.OpList)
	d.Step(d.Answer(claim.Result{Data: make([]byte, 101)}, kids()))
	if d.Ends(claim.Failed); d.c.Err() != ErrCacheFull {
		t.Errorf("ended by %v", d.c.Err())
	}
}

// TestCacheEnds: its watch is given up where there is a connection.
func TestCacheEnds(t *testing.T) {
	d := loaded(t)
	d.Step(claim.Resign{}, claim.OpUnwatch)
	d.Step(d.Answer(claim.Result{}))
	d.Ends(claim.Withdrawn)
	d = loaded(t)
	d.Step(claim.Disconnected{})
	d.Step(claim.Resign{})
	d.Ends(claim.Withdrawn)
	d = loaded(t)
	d.Step(claim.Closed{})
	d.Ends(claim.Failed)
}
