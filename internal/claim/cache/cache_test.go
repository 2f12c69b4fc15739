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

// cacheDialogue steps a Cache of /r event by event.
type cacheDialogue struct {
	claimtest.Dialogue
	c *Cache
}

func newCacheDialogue(t *testing.T) *cacheDialogue {
	c := NewCache(Config{Root: "/r", NodesMax: 10, BytesMax: 100})
	return &cacheDialogue{claimtest.Dialogue{T: t, M: c}, c}
}

// tells checks which events the Cache has added since the last call.
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

// at returns a znode that one transaction created and another one set.
func at(czxid, mzxid wire.Zxid) claim.Result {
	return claim.Result{Stat: wire.Stat{Czxid: czxid, Mzxid: mzxid, Pzxid: czxid}}
}

func childNames(n ...string) claim.Result { return claim.Result{Names: n} }

func told(typ wire.EventType, paths ...string) claim.TreeEvents {
	var t claim.TreeEvents
	for _, p := range paths {
		t.Events = append(t.Events, claim.TreeEvent{Type: typ, Path: p, Zxid: 9})
	}
	return t
}

// lostTo is the event of a connection that was lost after everything up to a transaction was reported.
func lostTo(z wire.Zxid) claim.TreeEvents {
	return claim.TreeEvents{Events: []claim.TreeEvent{{Type: wire.EventNone, Zxid: z}}}
}

// loaded returns a Cache that holds /r (created by transaction 1), /r/a (2) and /r/a/b (3).
func loaded(t *testing.T) *cacheDialogue {
	d := newCacheDialogue(t)
	d.Step(claim.Attached{Session: 1}, claim.OpWatchTree)
	d.Step(d.Answer(claim.Result{}), claim.OpGet, claim.OpList)
	d.Step(d.Answer(at(1, 1), childNames("a")), claim.OpGet, claim.OpList)
	d.Step(d.Answer(at(2, 2), childNames("b")), claim.OpGet, claim.OpList)
	d.Step(d.Answer(at(3, 3), childNames()))
	d.tells("added /r", "added /r/a", "added /r/a/b", "current")
	return d
}

// TestCacheFollows checks that a Cache reads the znodes that events concern, removes deleted znodes
// without a read, and combines reads that are due together.
func TestCacheFollows(t *testing.T) {
	d := loaded(t)
	d.Step(told(wire.EventNodeDataChanged, "/r", "/r/a", "/r/a"), claim.OpGet, claim.OpGet)
	d.Step(d.Answer(at(1, 4), at(2, 5)))
	d.tells("changed /r", "changed /r/a")
	d.Step(told(wire.EventNodeCreated, "/r/c", "/elsewhere"), claim.OpGet, claim.OpList)
	d.Step(d.Answer(at(6, 6), childNames()))
	d.Step(told(wire.EventNodeDeleted, "/r/a/b", "/r/a"))
	d.tells("added /r/c", "removed /r/a/b", "removed /r/a")
	if got := d.c.Children("/r"); !slices.Equal(got, []string{"c"}) || d.c.Len() != 2 || d.c.Get("/r/a") != nil {
		t.Errorf("it holds %v", got)
	}
}

// TestCacheDeletedWhileRead checks that a Cache ignores the answer to a read of a znode that was deleted
// meanwhile. The answer may be older than the deletion, or show a later znode of the same name, for which
// another event follows.
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
	d.Step(d.Answer(at(5, 5), childNames()))
	d.tells("removed /r/a/b", "added /r/a/b")
}

// TestCacheMadeAnewWhileAway checks that parents are read before their children, so that a new parent does
// not remove children that belong to it.
func TestCacheMadeAnewWhileAway(t *testing.T) {
	d := loaded(t)
	d.Step(lostTo(3), claim.OpSince, claim.OpStat)
	d.Step(d.Answer(claim.Result{Changes: told(wire.EventNodeDataChanged, "/r/a/b", "/r/a").Events}, at(1, 1)), claim.OpGet, claim.OpGet)
	d.Step(d.Answer(at(6, 6), at(7, 7)), claim.OpList, claim.OpList)
	d.tells("removed /r/a/b", "removed /r/a", "added /r/a", "added /r/a/b")
	d.Step(d.Answer(childNames("b"), childNames()))
	d.tells("current")
}

// TestCacheGapWhileItAsks checks a gap that occurs while the Cache asks what changed in an earlier gap: the
// answer counts as incomplete, and the Cache asks again.
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

// TestCacheInAnotherSession checks that the cache makes the server catch up before it reads.
func TestCacheInAnotherSession(t *testing.T) {
	d := loaded(t)
	d.Step(claim.Expired{})
	d.Step(claim.TreeWatchOver{Zxid: 3})
	d.Step(claim.Attached{Session: 2}, claim.OpSync)
	d.Step(d.Answer(claim.Result{}), claim.OpWatchTree)
	d.Step(d.Answer(claim.Result{}), claim.OpSince, claim.OpStat)
	gone := told(wire.EventNodeDeleted, "/r/a/b", "/r/a")
	d.Step(d.Answer(claim.Result{Changes: gone.Events}, claim.Result{Stat: wire.Stat{Czxid: 1, Mzxid: 1, Pzxid: 5}}), claim.OpList)
	d.Step(d.Answer(childNames()))
	d.tells("removed /r/a/b", "removed /r/a", "current")
}

// TestCacheAsksAgain checks that lost reads are repeated, except for znodes that were deleted meanwhile.
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

// TestCacheAnswerTooLarge checks that after an answer that is too large the Cache repeats each of its reads
// separately, once.
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

// TestCacheListOlderThanChild checks that a child that was created after the list is not removed.
func TestCacheListOlderThanChild(t *testing.T) {
	d := loaded(t)
	d.Step(told(wire.EventNodeCreated, "/r/c"), claim.OpGet, claim.OpList)
	d.Step(d.Answer(at(7, 7), childNames()))
	d.Step(told(wire.EventNodeChildrenChanged, "/r"), claim.OpList)
	d.Step(d.Answer(claim.Result{Names: nil, Stat: wire.Stat{Pzxid: 6}}))
	d.tells("added /r/c", "removed /r/a/b", "removed /r/a")
}

// TestCacheCurrentInAStorm checks that a cache becomes current even if events never stop.
func TestCacheCurrentInAStorm(t *testing.T) {
	d := newCacheDialogue(t)
	d.Step(claim.Attached{Session: 1}, claim.OpWatchTree)
	d.Step(d.Answer(claim.Result{}), claim.OpGet, claim.OpList)
	d.Step(told(wire.EventNodeDataChanged, "/r"))
	d.Step(d.Answer(at(1, 1), childNames()), claim.OpGet)
	d.tells("added /r", "current")
}

// TestCacheOfAnOldServer checks that each read sets a watch, also for the return of the root, and that
// these watches survive a lost connection.
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
	d.Step(d.Answer(at(5, 5), childNames()))
	d.tells("added /r")
	d.Step(told(wire.EventNodeDeleted, "/r"), claim.OpWatch, claim.OpWatchAll)
	d.tells("removed /r")
	d.Step(d.Answer(claimtest.None, claimtest.None), claim.OpExists)
	d.Step(d.Answer(at(7, 7)), claim.OpWatch, claim.OpWatchAll) // the root exists again
	d.Step(d.Answer(at(7, 7), childNames()))
	d.tells("added /r")
}

// loadedOld returns a Cache that holds /r (created by transaction 1) and /r/a (2), at a server without tree
// watches.
func loadedOld(t *testing.T) *cacheDialogue {
	d := newCacheDialogue(t)
	d.Step(claim.Attached{Session: 1}, claim.OpWatchTree)
	d.Step(d.Answer(claim.Result{Err: wire.ErrUnimplemented}), claim.OpListen)
	d.Step(d.Answer(claim.Result{}), claim.OpWatch, claim.OpWatchAll)
	d.Step(d.Answer(at(1, 1), childNames("a")), claim.OpWatch, claim.OpWatchAll)
	d.Step(d.Answer(at(2, 2), childNames()))
	d.tells("added /r", "added /r/a", "current")
	return d
}

// TestCacheOfAnOldServerMadeAnew checks that a Cache shows no child of a znode that was deleted and created
// again before it shows that znode. With one-shot watches the reads of one request can show both, and no
// event tells of the deletion if the watches of the znode have fired.
func TestCacheOfAnOldServerMadeAnew(t *testing.T) {
	t.Run("list", func(t *testing.T) {
		d := loadedOld(t)
		d.Step(told(wire.EventNodeChildrenChanged, "/r/a"), claim.OpWatchAll)
		d.Step(d.Answer(childNames("b")), claim.OpWatch, claim.OpWatchAll)
		d.Step(told(wire.EventNodeChildrenChanged, "/r/a"))
		d.Step(d.Answer(claimtest.None, claimtest.None), claim.OpWatchAll)
		d.Step(told(wire.EventNodeDataChanged, "/r/a"))
		d.Step(d.Answer(claim.Result{Names: []string{"b"}, Stat: wire.Stat{Czxid: 5, Pzxid: 6}}), claim.OpWatch, claim.OpWatchAll)
		d.Step(d.Answer(at(5, 5), childNames("b")), claim.OpWatch, claim.OpWatchAll)
		d.Step(d.Answer(at(6, 6), childNames()))
		d.tells("removed /r/a", "added /r/a", "added /r/a/b")
	})
	t.Run("child", func(t *testing.T) {
		d := loadedOld(t)
		d.Step(told(wire.EventNodeChildrenChanged, "/r/a"), claim.OpWatchAll)
		d.Step(d.Answer(childNames("b")), claim.OpWatch, claim.OpWatchAll)
		d.Step(told(wire.EventNodeChildrenChanged, "/r/a"))
		d.Step(told(wire.EventNodeDataChanged, "/r/a"))
		d.Step(d.Answer(at(6, 6), childNames()), claim.OpWatch, claim.OpWatchAll, claim.OpWatch, claim.OpWatchAll)
		d.Step(d.Answer(at(5, 5), childNames("b"), at(6, 6), childNames()), claim.OpWatch, claim.OpWatchAll)
		d.Step(d.Answer(at(6, 6), childNames())) // the list of /r/a had b read once more
		d.tells("removed /r/a", "added /r/a", "added /r/a/b")
	})
	t.Run("root", func(t *testing.T) {
		d := loadedOld(t)
		d.Step(told(wire.EventNodeChildrenChanged, "/r"), claim.OpWatchAll)
		d.Step(told(wire.EventNodeDataChanged, "/r"))
		d.Step(d.Answer(childNames("a", "b")), claim.OpWatch, claim.OpWatch, claim.OpWatchAll)
		d.Step(d.Answer(claimtest.None, at(6, 6), childNames()), claim.OpExists)
		d.tells("removed /r/a", "removed /r")
		d.Step(d.Answer(at(5, 5)), claim.OpWatch, claim.OpWatchAll)
		d.Step(d.Answer(at(5, 5), childNames("b")), claim.OpWatch, claim.OpWatchAll)
		d.Step(d.Answer(at(6, 6), childNames()))
		d.tells("added /r", "added /r/b")
	})
}

// TestCacheWhoseWatchIsOverAtOnce checks that the cache sets another watch if the first ends before its
// request is answered.
func TestCacheWhoseWatchIsOverAtOnce(t *testing.T) {
	d := newCacheDialogue(t)
	d.Step(claim.Attached{Session: 1}, claim.OpWatchTree)
	d.Step(claim.TreeWatchOver{Zxid: 3})
	d.Step(d.Answer(claim.Result{}), claim.OpWatchTree)
	d.Step(d.Answer(claim.Result{Err: wire.ErrUnimplemented}), claim.OpListen)
	d.Step(claim.TreeWatchOver{Zxid: 4})
	d.Step(d.Answer(claim.Result{}), claim.OpWatchTree)
	d.Step(d.Answer(claim.Result{}), claim.OpGet, claim.OpList)
	d.Step(d.Answer(at(5, 5), childNames()))
	d.tells("added /r", "current")
}

// TestCacheHidden checks that an unreadable znode counts as missing, and that any other refusal ends the
// cache.
func TestCacheHidden(t *testing.T) {
	d := loaded(t)
	d.Step(told(wire.EventNodeDataChanged, "/r/a/b", "/r/a"), claim.OpGet, claim.OpGet)
	d.Step(d.Answer(claim.Result{Err: wire.ErrNoAuth}, claim.Result{Err: wire.ErrBadArguments}))
	d.tells("removed /r/a/b")
	d.Ends(claim.Failed)
}

// TestCacheIsFull checks the limits of znodes and bytes.
func TestCacheIsFull(t *testing.T) {
	d := newCacheDialogue(t)
	d.Step(claim.Attached{Session: 1}, claim.OpWatchTree)
	d.Step(d.Answer(claim.Result{}), claim.OpGet, claim.OpList)
	d.Step(d.Answer(claim.Result{Data: make([]byte, 101)}, childNames()))
	if d.Ends(claim.Failed); d.c.Err() != ErrFull {
		t.Errorf("ended by %v", d.c.Err())
	}
}

// TestCacheEnds checks that the cache removes its watch before it ends, if it is connected.
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

// TestCacheAll checks the order of the znodes that a Cache returns, and what it returns for a path that it does not hold.
func TestCacheAll(t *testing.T) {
	d := newCacheDialogue(t)
	d.Step(claim.Attached{Session: 1}, claim.OpWatchTree)
	d.Step(d.Answer(claim.Result{}), claim.OpGet, claim.OpList)
	if all := d.c.All(); len(all) != 0 {
		t.Errorf("it holds %v before it has read anything", all)
	}
	d.Step(d.Answer(at(1, 1), childNames("b", "a")), claim.OpGet, claim.OpList, claim.OpGet, claim.OpList)
	d.Step(d.Answer(at(2, 2), childNames("x"), at(3, 3), childNames()), claim.OpGet, claim.OpList)
	d.Step(d.Answer(at(4, 4), childNames()))
	var got []string
	for _, n := range d.c.All() {
		got = append(got, n.Path)
	}
	first := d.c.Children("/r/a")
	if want := []string{"/r", "/r/a", "/r/b"}; len(got) != 4 || !slices.Equal(slices.DeleteFunc(got, func(p string) bool { return strings.HasSuffix(p, "/x") }), want) {
		t.Errorf("it holds %v, want %v and an x", got, want)
	}
	if missing := d.c.Children("/r/none"); missing != nil || d.c.Get("/r/none") != nil || len(first)+len(d.c.Children("/r/b")) != 1 {
		t.Errorf("children: %v and %v", first, missing)
	}
}

// TestCacheMayNotAsk checks that a Cache ends if the server refuses to tell what has changed while it was away.
func TestCacheMayNotAsk(t *testing.T) {
	for _, answer := range [][]claim.Result{{claimtest.Refused, at(1, 1)}, {{}, claimtest.Refused}} {
		d := loaded(t)
		d.Step(lostTo(3), claim.OpSince, claim.OpStat)
		d.Step(d.Answer(answer...))
		if d.Ends(claim.Failed); d.c.Err() != wire.ErrNoAuth {
			t.Error(d.c.Err())
		}
	}
}

// TestCacheCountsBytes checks that a Cache counts the data that it holds, also after data was replaced or removed, and
// ends when there is more than BytesMax.
func TestCacheCountsBytes(t *testing.T) {
	sized := func(czxid, mzxid wire.Zxid, n int) claim.Result {
		r := at(czxid, mzxid)
		r.Data = make([]byte, n)
		return r
	}
	d := loaded(t) // 100 bytes are allowed
	d.Step(told(wire.EventNodeDataChanged, "/r/a", "/r/a/b"), claim.OpGet, claim.OpGet)
	d.Step(d.Answer(sized(2, 4, 60), sized(3, 5, 40)))
	d.Step(told(wire.EventNodeDataChanged, "/r/a/b"), claim.OpGet)
	d.Step(d.Answer(sized(3, 6, 10)))
	d.Step(told(wire.EventNodeDataChanged, "/r/a"), claim.OpGet)
	d.Step(d.Answer(sized(2, 7, 90)))
	d.Step(told(wire.EventNodeDeleted, "/r/a/b"))
	d.Step(told(wire.EventNodeDataChanged, "/r/a"), claim.OpGet)
	d.Step(d.Answer(sized(2, 8, 100)))
	if d.c.Over() {
		t.Fatalf("it ends with 100 bytes: %v", d.c.Err())
	}
	d.Step(told(wire.EventNodeDataChanged, "/r/a"), claim.OpGet)
	d.Step(d.Answer(sized(2, 9, 101)))
	if d.Ends(claim.Failed); d.c.Err() != ErrFull {
		t.Error(d.c.Err())
	}
}
