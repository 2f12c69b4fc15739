package claim

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"bellwether/wire"
)

// cacheDialogue drives a Cache of /r by hand.
type cacheDialogue struct {
	dialogue
	c *Cache
}

func newCacheDialogue(t *testing.T) *cacheDialogue {
	c := NewCache(CacheConfig{Root: "/r", NodesMax: 10, BytesMax: 100})
	return &cacheDialogue{dialogue{t: t, m: c}, c}
}

// tells are the events since the last call.
func (d *cacheDialogue) tells(want ...string) {
	d.t.Helper()
	var got []string
	for _, e := range d.c.Events() {
		path := ""
		if e.Node != nil {
			path = " " + e.Node.Path
		}
		got = append(got, e.Type.String()+path)
	}
	if !slices.Equal(got, want) {
		d.t.Errorf("it tells %q, want %q", got, want)
	}
}

// at is a znode that was made by one transaction and set by another.
func at(czxid, mzxid wire.Zxid) Result {
	return Result{Stat: wire.Stat{Czxid: czxid, Mzxid: mzxid, Pzxid: czxid}}
}

func kids(n ...string) Result { return Result{Names: n} }

func told(typ wire.EventType, paths ...string) Told {
	var t Told
	for _, p := range paths {
		t.Events = append(t.Events, TreeEvent{Type: typ, Path: p, Zxid: 9})
	}
	return t
}

// lostTo is a connection that was lost when everything up to a transaction was told.
func lostTo(z wire.Zxid) Told { return Told{[]TreeEvent{{Type: wire.EventNone, Zxid: z}}} }

// loaded holds /r, made at 1, and /r/a, made at 2, with /r/a/b, made at 3.
func loaded(t *testing.T) *cacheDialogue {
	d := newCacheDialogue(t)
	d.step(Attached{Session: 1}, OpWatchTree)
	d.step(d.answer(Result{}), OpGet, OpList)
	d.step(d.answer(at(1, 1), kids("a")), OpGet, OpList)
	d.step(d.answer(at(2, 2), kids("b")), OpGet, OpList)
	d.step(d.answer(at(3, 3), kids()))
	d.tells("added /r", "added /r/a", "added /r/a/b", "current")
	return d
}

// A Cache reads what an event is about, and what is deleted without a read; what
// comes together is read together.
func TestCacheFollows(t *testing.T) {
	d := loaded(t)
	d.step(told(wire.EventNodeDataChanged, "/r", "/r/a", "/r/a"), OpGet, OpGet)
	d.step(d.answer(at(1, 4), at(2, 5)))
	d.tells("changed /r", "changed /r/a")
	d.step(told(wire.EventNodeCreated, "/r/c", "/elsewhere"), OpGet, OpList)
	d.step(d.answer(at(6, 6), kids()))
	d.step(told(wire.EventNodeDeleted, "/r/a/b", "/r/a"))
	d.tells("added /r/c", "removed /r/a/b", "removed /r/a")
	if got := d.c.Children("/r"); !slices.Equal(got, []string{"c"}) || d.c.Len() != 2 || d.c.Get("/r/a") != nil {
		t.Errorf("it holds %v", got)
	}
}

// TestCacheDeletedWhileRead: the answer may be older than the deletion, or tell
// of another znode of that name, of which an event tells too.
func TestCacheDeletedWhileRead(t *testing.T) {
	d := loaded(t)
	d.step(told(wire.EventNodeDataChanged, "/r/a/b"), OpGet)
	d.step(told(wire.EventNodeDeleted, "/r/a/b"))
	d.step(d.answer(at(3, 4)))
	d.tells("removed /r/a/b")

	d = loaded(t)
	d.step(told(wire.EventNodeDataChanged, "/r/a/b"), OpGet)
	d.step(told(wire.EventNodeDeleted, "/r/a/b"))
	d.step(told(wire.EventNodeCreated, "/r/a/b"))
	d.step(d.answer(at(5, 5)), OpGet, OpList)
	d.step(d.answer(at(5, 5), kids()))
	d.tells("removed /r/a/b", "added /r/a/b")
}

// TestCacheMadeAnewWhileAway: parents are read before their children, so that
// none goes with a parent that it does not belong to.
func TestCacheMadeAnewWhileAway(t *testing.T) {
	d := loaded(t)
	d.step(lostTo(3), OpSince, OpStat)
	d.step(d.answer(Result{Told: told(wire.EventNodeDataChanged, "/r/a/b", "/r/a").Events}, at(1, 1)), OpGet, OpGet)
	d.step(d.answer(at(6, 6), at(7, 7)), OpList, OpList)
	d.tells("removed /r/a/b", "removed /r/a", "added /r/a", "added /r/a/b")
	d.step(d.answer(kids("b"), kids()))
	d.tells("current")
}

// TestCacheGapWhileItAsks: what is answered then may not be all.
func TestCacheGapWhileItAsks(t *testing.T) {
	d := loaded(t)
	d.step(lostTo(3), OpSince, OpStat)
	d.step(lostTo(8))
	d.m.Step(Moment{}, d.answer(Result{}, at(1, 1)))
	if req := d.m.Ready().Request; req == nil || req.Ops[0].Kind != OpSince || req.Ops[0].Since.Zxid != 3 {
		t.Fatalf("it asks for %+v", req)
	} else {
		d.n = req.N
	}
	if !d.c.Stale() {
		t.Error("it is not stale")
	}
	d.step(d.answer(Result{}, at(1, 1)))
	d.tells("current")
}

// TestCacheInAnotherSession brings the server up to date before it believes it.
func TestCacheInAnotherSession(t *testing.T) {
	d := loaded(t)
	d.step(Expired{})
	d.step(WatchOver{Zxid: 3})
	d.step(Attached{Session: 2}, OpSync)
	d.step(d.answer(Result{}), OpWatchTree)
	d.step(d.answer(Result{}), OpSince, OpStat)
	gone := told(wire.EventNodeDeleted, "/r/a/b", "/r/a")
	d.step(d.answer(Result{Told: gone.Events}, Result{Stat: wire.Stat{Czxid: 1, Mzxid: 1, Pzxid: 5}}), OpList)
	d.step(d.answer(kids()))
	d.tells("removed /r/a/b", "removed /r/a", "current")
}

// TestCacheAsksAgain for what was lost, but not for what has gone meanwhile.
func TestCacheAsksAgain(t *testing.T) {
	d := loaded(t)
	d.step(told(wire.EventNodeDataChanged, "/r/a", "/r/a/b"), OpGet, OpGet)
	d.step(Disconnected{})
	d.step(d.answer(Result{Err: wire.ErrConnectionLoss}, Result{Err: wire.ErrConnectionLoss}))
	d.step(told(wire.EventNodeDeleted, "/r/a/b"))
	d.step(Attached{Session: 1}, OpGet)
	d.step(d.answer(at(2, 4)))
	d.tells("removed /r/a/b", "changed /r/a")
}

// TestCacheAnswerTooLarge: each by itself, once.
func TestCacheAnswerTooLarge(t *testing.T) {
	d := loaded(t)
	large := Result{Err: ErrTooLarge}
	d.step(told(wire.EventNodeDataChanged, "/r", "/r/a"), OpGet, OpGet)
	d.m.Step(Moment{}, d.answer(large, large))
	req := d.m.Ready().Request
	if req == nil || len(req.Ops) != 2 || !req.Ops[0].Alone || !req.Ops[1].Alone {
		t.Fatalf("it asks for %+v", req)
	}
	d.n = req.N
	d.step(d.answer(at(1, 4), large))
	d.tells("changed /r")
	if d.ends(Failed); !errors.Is(d.c.Err(), ErrTooLarge) || !strings.Contains(d.c.Err().Error(), "/r/a") {
		t.Errorf("ended by %v", d.c.Err())
	}
}

// TestCacheListOlderThanChild: what was made after the list is not missing in it.
func TestCacheListOlderThanChild(t *testing.T) {
	d := loaded(t)
	d.step(told(wire.EventNodeCreated, "/r/c"), OpGet, OpList)
	d.step(d.answer(at(7, 7), kids()))
	d.step(told(wire.EventNodeChildrenChanged, "/r"), OpList)
	d.step(d.answer(Result{Names: nil, Stat: wire.Stat{Pzxid: 6}}))
	d.tells("added /r/c", "removed /r/a/b", "removed /r/a")
}

// TestCacheCurrentInAStorm: events that go on coming do not keep it from being
// current as of its beginning.
func TestCacheCurrentInAStorm(t *testing.T) {
	d := newCacheDialogue(t)
	d.step(Attached{Session: 1}, OpWatchTree)
	d.step(d.answer(Result{}), OpGet, OpList)
	d.step(told(wire.EventNodeDataChanged, "/r"))
	d.step(d.answer(at(1, 1), kids()), OpGet)
	d.tells("added /r", "current")
}

// TestCacheOfAnOldServer sets its watches with each read, one for the return of
// the root too, which stands over a lost connection.
func TestCacheOfAnOldServer(t *testing.T) {
	d := newCacheDialogue(t)
	d.step(Attached{Session: 1}, OpWatchTree)
	d.step(d.answer(Result{Err: wire.ErrUnimplemented}), OpListen)
	d.step(d.answer(Result{}), OpWatch, OpWatchAll)
	d.step(d.answer(none, none), OpExists)
	d.step(d.answer(none))
	d.tells("current")
	d.step(lostTo(3))
	d.tells("current")
	d.step(told(wire.EventNodeCreated, "/r"), OpWatch, OpWatchAll)
	d.step(d.answer(at(5, 5), kids()))
	d.tells("added /r")
	d.step(told(wire.EventNodeDeleted, "/r"), OpWatch, OpWatchAll)
	d.tells("removed /r")
	d.step(d.answer(none, none), OpExists)
	d.step(d.answer(at(7, 7)), OpWatch, OpWatchAll) // it is back
	d.step(d.answer(at(7, 7), kids()))
	d.tells("added /r")
}

// TestCacheWhoseWatchIsOverAtOnce, before it is known to stand, sets another one.
func TestCacheWhoseWatchIsOverAtOnce(t *testing.T) {
	d := newCacheDialogue(t)
	d.step(Attached{Session: 1}, OpWatchTree)
	d.step(WatchOver{Zxid: 3})
	d.step(d.answer(Result{}), OpWatchTree)
	d.step(d.answer(Result{Err: wire.ErrUnimplemented}), OpListen)
	d.step(WatchOver{Zxid: 4})
	d.step(d.answer(Result{}), OpWatchTree)
	d.step(d.answer(Result{}), OpGet, OpList)
	d.step(d.answer(at(5, 5), kids()))
	d.tells("added /r", "current")
}

// TestCacheHidden: what may not be read is not there; any other refusal ends it.
func TestCacheHidden(t *testing.T) {
	d := loaded(t)
	d.step(told(wire.EventNodeDataChanged, "/r/a/b", "/r/a"), OpGet, OpGet)
	d.step(d.answer(Result{Err: wire.ErrNoAuth}, Result{Err: wire.ErrBadArguments}))
	d.tells("removed /r/a/b")
	d.ends(Failed)
}

// TestCacheIsFull when it holds more znodes, or more bytes, than it may.
func TestCacheIsFull(t *testing.T) {
	d := newCacheDialogue(t)
	d.step(Attached{Session: 1}, OpWatchTree)
	d.step(d.answer(Result{}), OpGet, OpList)
	d.step(d.answer(Result{Data: make([]byte, 101)}, kids()))
	if d.ends(Failed); d.c.Err() != ErrCacheFull {
		t.Errorf("ended by %v", d.c.Err())
	}
}

// TestCacheEnds: its watch is given up where there is a connection.
func TestCacheEnds(t *testing.T) {
	d := loaded(t)
	d.step(Resign{}, OpUnwatch)
	d.step(d.answer(Result{}))
	d.ends(Withdrawn)
	d = loaded(t)
	d.step(Disconnected{})
	d.step(Resign{})
	d.ends(Withdrawn)
	d = loaded(t)
	d.step(Closed{})
	d.ends(Failed)
}
