package claim

import (
	"slices"
	"testing"
	"time"

	"bellwether/wire"
)

// dialogue drives a single operation by hand.
type dialogue struct {
	t    *testing.T
	m    single
	at   time.Duration
	n    uint64 // of the request that was asked last
	ops  []Op   // its operations
	wake time.Duration
}

// step takes an event; what is asked then must be these operations.
func (d *dialogue) step(ev Event, want ...OpKind) {
	d.t.Helper()
	d.m.Step(Moment{Mono: d.at, Wall: d.at}, ev)
	var got []OpKind
	rd := d.m.Ready()
	if d.wake = rd.Wake; rd.Request != nil {
		d.n, d.ops = rd.Request.N, rd.Request.Ops
		for _, op := range rd.Request.Ops {
			got = append(got, op.Kind)
		}
	}
	if !slices.Equal(got, want) {
		d.t.Fatalf("after %+v it asks for %v, want %v", ev, got, want)
	}
}

// answer is the reply to what was asked last.
func (d *dialogue) answer(res ...Result) Reply { return Reply{d.n, res} }

// lost is the same where the connection ended.
func (d *dialogue) lost() Reply { return d.answer(Result{Err: wire.ErrConnectionLoss}) }

func (d *dialogue) ends(want Outcome) {
	d.t.Helper()
	if !d.m.Over() || d.m.Outcome() != want {
		d.t.Errorf("%v, want %v", d.m.Outcome(), want)
	}
}

var none = Result{Err: wire.ErrNoNode}

// aboutToTake is a consumer that has asked for the item it has found.
func aboutToTake(t *testing.T, claims string) *dialogue {
	d := &dialogue{t: t, m: NewTake(TakeConfig{Items: modelQueue, Line: modelQLine, Claims: claims})}
	d.step(Attached{Session: 1}, OpCreate)
	own := Nonce{}.String() + "-n_0000000000"
	d.step(d.answer(Result{Path: Join(modelQLine, own)}), OpList)
	items := Result{Names: []string{"entry-100-0000000003"}}
	if claims == "" {
		d.step(d.answer(Result{Names: []string{own}}), OpList)
		d.step(d.answer(items), OpGet)
	} else {
		d.step(d.answer(Result{Names: []string{own}}), OpList, OpList)
		d.step(d.answer(Result{}, items), OpGet)
	}
	d.step(d.answer(Result{Data: []byte("job")}), OpMulti)
	return d
}

// TestTakeInDoubtEndsWithItsSession: whether the item was taken cannot be known
// any more, so it does not stand in the line once again.
func TestTakeInDoubtEndsWithItsSession(t *testing.T) {
	d := aboutToTake(t, "")
	d.step(d.lost())
	d.step(Attached{Session: 2})
	d.ends(Unclear)
}

// TestClaimInDoubtIsTriedAgain in the next session: what was claimed has come back.
func TestClaimInDoubtIsTriedAgain(t *testing.T) {
	d := aboutToTake(t, modelClaims)
	d.step(d.lost())
	d.step(Attached{Session: 2}, OpCreate)
}

// TestTakeIsNotDisturbed by a watch that fires while it reads what it has found.
func TestTakeIsNotDisturbed(t *testing.T) {
	d := &dialogue{t: t, m: NewTake(TakeConfig{Items: modelQueue, Line: modelQLine, Claims: modelClaims})}
	own := Nonce{}.String() + "-n_0000000000"
	item, free := "entry-100-0000000003", "entry-100-0000000004"
	d.step(Attached{Session: 1}, OpCreate)
	d.step(d.answer(Result{Path: Join(modelQLine, own)}), OpList)
	d.step(d.answer(Result{Names: []string{own}}), OpList, OpList)
	taken := Result{Names: []string{item}}
	d.step(d.answer(taken, taken), OpWatchAll, OpWatchAll)
	d.step(d.answer(taken, taken))
	d.step(Fired{Path: modelQueue}, OpList, OpList)
	d.step(d.answer(taken, Result{Names: []string{item, free}}), OpGet)
	d.step(Fired{Path: modelClaims})
	d.step(d.answer(Result{Data: []byte("job")}), OpMulti)
	d.step(d.answer(Result{}))
	d.ends(Succeeded)
	if path, data, _ := d.m.(*Take).Taken(); path != Join(modelQueue, free) || string(data) != "job" {
		t.Errorf("took %s, %q", path, data)
	}
}

// TestTakeFindsOut by its place whether the item was taken.
func TestTakeFindsOut(t *testing.T) {
	d := aboutToTake(t, "")
	d.step(d.lost())
	d.step(Attached{Session: 1}, OpSync, OpGet, OpGet)
	d.step(d.answer(Result{}, none, none))
	d.ends(Succeeded)

	d = aboutToTake(t, "")
	d.step(d.lost())
	d.step(Attached{Session: 1}, OpSync, OpGet, OpGet)
	d.step(d.answer(Result{}, Result{}, Result{}), OpMulti) // it was not
	d.step(d.answer(Result{}))
	d.ends(Succeeded)
}

// TestTakeWhosePlaceWasDeleted and whose answer was lost takes nothing for granted.
func TestTakeWhosePlaceWasDeleted(t *testing.T) {
	d := aboutToTake(t, "")
	d.step(d.lost())
	d.step(Attached{Session: 1}, OpSync, OpGet, OpGet)
	d.step(d.answer(Result{}, none, Result{}), OpCreate) // the item is there: stand in the line again
}

// TestHandInLeavesAnothersClaimAlone: it was given back, its answer lost, and
// somebody else has taken it since.
func TestHandInLeavesAnothersClaimAlone(t *testing.T) {
	mine, others := Result{Stat: wire.Stat{EphemeralOwner: 1}}, Result{Stat: wire.Stat{EphemeralOwner: 2}}
	d := &dialogue{t: t, m: NewHandIn(HandInConfig{Item: modelQueue + "/a", Claim: modelClaims + "/a", Session: 1, Release: true})}
	d.step(Attached{Session: 1}, OpSync, OpGet)
	d.step(d.answer(Result{}, mine), OpMulti)
	d.step(d.lost())
	d.step(Attached{Session: 1}, OpSync, OpGet)
	d.step(d.answer(Result{}, others))
	d.ends(Succeeded)
}

// TestPutThatWasTakenAtOnce is known by its mark, and not put again.
func TestPutThatWasTakenAtOnce(t *testing.T) {
	d := &dialogue{t: t, m: NewPut(PutConfig{Items: modelQueue, Mark: modelQLine + "/m", Prefix: "x-entry-100-", Unique: true})}
	d.step(Attached{Session: 1}, OpMulti)
	d.step(d.lost())
	d.step(Attached{Session: 1}, OpSync, OpGet)
	d.step(d.answer(Result{}, Result{}), OpDelete)
	d.step(d.answer(Result{}))
	d.ends(Succeeded)
}

// TestChangeWhoseMarkIsGone guesses by the value what it can, and no more.
func TestChangeWhoseMarkIsGone(t *testing.T) {
	for _, c := range []struct {
		now  Result
		want Outcome
	}{
		{Result{Data: []byte("6"), Stat: wire.Stat{Version: 8}}, Unclear},  // by this change, or another that added as much
		{Result{Data: []byte("9"), Stat: wire.Stat{Version: 8}}, Underway}, // by another
		{Result{Data: []byte("5"), Stat: wire.Stat{Version: 7}}, Underway}, // by none
		{Result{Data: []byte("6"), Stat: wire.Stat{Version: 10}}, Unclear}, // by many
	} {
		m := NewChange(ChangeConfig{Path: modelValue, Mark: modelValue + "/m"}, Mark{Session: 1})
		d := &dialogue{t: t, m: m}
		d.step(Attached{Session: 1}, OpGet)
		d.step(d.answer(Result{Data: []byte("5"), Stat: wire.Stat{Version: 7}}))
		d.step(Propose{[]byte("6")}, OpMulti)
		d.step(d.lost())
		d.step(Attached{Session: 2}, OpSync, OpGet)
		if c.want == Unclear {
			d.step(d.answer(Result{}, c.now))
		} else {
			d.step(d.answer(Result{}, c.now), OpGet)
		}
		if m.Outcome() != c.want {
			t.Errorf("%+v: %v, want %v", c.now, m.Outcome(), c.want)
		}
	}
}

// TestChangeThatMayBePassedOver is tried once more where it cannot be told whether it
// was carried out, as long as somebody wants it.
func TestChangeThatMayBePassedOver(t *testing.T) {
	now := func(data string, version int32) Result {
		return Result{Data: []byte(data), Stat: wire.Stat{Version: version}}
	}
	inDoubt := func() *dialogue {
		d := &dialogue{t: t, m: NewChange(ChangeConfig{Path: modelValue, Mark: modelValue + "/m", Anew: true}, Mark{Session: 1})}
		d.step(Attached{Session: 1}, OpGet)
		d.step(d.answer(now("5", 7)))
		d.step(Propose{[]byte("6")}, OpMulti)
		d.step(d.lost())
		return d
	}
	d := inDoubt()
	d.step(Attached{Session: 2}, OpSync, OpGet)
	d.step(d.answer(Result{}, now("6", 8)), OpGet) // by this one, or another that added as much
	d.step(d.answer(now("6", 8)))
	d.step(Propose{[]byte("7")}, OpMulti)
	d.step(d.answer(Result{}))
	d.ends(Succeeded)

	d = inDoubt()
	d.step(Attached{Session: 1}, OpSync, OpGet)
	d.step(d.answer(Result{}, Result{Err: wire.ErrNoAuth}), OpGet) // the mark cannot be read
	d.step(d.answer(Result{Err: wire.ErrNoAuth}))
	d.ends(Failed)

	d = inDoubt()
	d.step(Attached{Session: 2}, OpSync, OpGet)
	d.step(Resign{})
	d.step(d.answer(Result{}, now("6", 8)))
	d.ends(Unclear)

	d = inDoubt()
	d.step(Closed{})
	d.ends(Unclear)
}

// TestChangeWhoseMarkIsInTheWay, and must not be deleted, fails at once.
func TestChangeWhoseMarkIsInTheWay(t *testing.T) {
	d := &dialogue{t: t, m: NewChange(ChangeConfig{Path: modelValue, Mark: modelValue + "/m"}, Mark{})}
	d.step(Attached{Session: 1}, OpGet)
	d.step(d.answer(Result{Data: []byte("5")}))
	d.step(Propose{[]byte("6")}, OpMulti)
	d.step(d.answer(Result{Err: wire.ErrNodeExists, Failed: 1}), OpDelete)
	d.step(d.answer(Result{Err: wire.ErrNoAuth}))
	d.ends(Failed)
}

// TestTaskIsEndedOnce: after a lost answer it is ended again if it is there, and
// another of its name is left alone.
func TestTaskIsEndedOnce(t *testing.T) {
	stood := func(z wire.Zxid) Result { return Result{Data: []byte("job"), Stat: wire.Stat{Czxid: z}} }
	inDoubt := func() *dialogue {
		d := &dialogue{t: t, m: NewTask(TaskConfig{Path: "/w/t", Bid: "/w/b", Session: 1})}
		d.step(Attached{Session: 1}, OpGet)
		d.step(d.answer(stood(5)))
		d.step(Begin{})
		d.step(Finish{}, OpMulti)
		d.step(d.lost())
		d.step(Attached{Session: 1}, OpSync, OpGet)
		return d
	}
	for _, now := range []Result{none, stood(6)} {
		d := inDoubt()
		d.step(d.answer(Result{}, now))
		d.ends(Succeeded)
	}
	d := inDoubt()
	d.step(d.answer(Result{}, stood(5)), OpMulti)
	d.step(d.answer(Result{}))
	d.ends(Succeeded)
}

// TestTaskOfALostBid is not ended, neither in its own session nor in the next.
func TestTaskOfALostBid(t *testing.T) {
	for _, ev := range []func(d *dialogue) Event{
		func(d *dialogue) Event { return d.answer(Result{Err: wire.ErrNoNode, Failed: 0}) },
		func(d *dialogue) Event { d.step(d.lost()); return Attached{Session: 2} },
	} {
		m := NewTask(TaskConfig{Path: "/w/t", Bid: "/w/b", Session: 1})
		d := &dialogue{t: t, m: m}
		d.step(Attached{Session: 1}, OpGet)
		d.step(d.answer(Result{}))
		d.step(Begin{})
		d.step(Finish{}, OpMulti)
		d.step(ev(d))
		if d.ends(Failed); m.Err() != ErrTaskLost {
			t.Errorf("%v", m.Err())
		}
	}
}

// TestTaskIsBroughtToItsEnd once it is begun; before it can be left alone, at once.
func TestTaskIsBroughtToItsEnd(t *testing.T) {
	read := func() *dialogue {
		d := &dialogue{t: t, m: NewTask(TaskConfig{Path: "/w/t", Bid: "/w/b", Session: 1})}
		d.step(Attached{Session: 1}, OpGet)
		return d
	}
	d := read()
	d.step(Resign{})
	d.ends(Withdrawn)
	d = read()
	d.step(d.answer(Result{}))
	d.step(Finish{}) // of what is not begun
	d.step(Resign{})
	d.ends(Withdrawn)
	d = read()
	d.step(d.answer(Result{}))
	d.step(Begin{})
	d.step(Resign{})
	d.step(Finish{}, OpMulti)
	d.step(d.answer(Result{}))
	d.ends(Succeeded)
}

// TestTaskThatIsGone was done before.
func TestTaskThatIsGone(t *testing.T) {
	d := &dialogue{t: t, m: NewTask(TaskConfig{Path: "/w/t", Bid: "/w/b", Session: 1})}
	d.step(Attached{Session: 1}, OpGet)
	d.step(d.answer(none))
	d.ends(Succeeded)
}

// TestHandInOfAnItemThatIsGone gives up the claim, says that there is no item,
// and does nothing of what was to go with it.
func TestHandInOfAnItemThatIsGone(t *testing.T) {
	mine := Result{Stat: wire.Stat{EphemeralOwner: 1}}
	d := &dialogue{t: t, m: NewHandIn(HandInConfig{Item: modelQueue + "/a", Claim: modelClaims + "/a", Session: 1, More: true})}
	d.step(Attached{Session: 1}, OpSync, OpGet)
	d.step(d.answer(Result{}, mine), OpMulti)
	d.step(d.answer(Result{Err: wire.ErrNoNode, Failed: 1}), OpMulti)
	d.step(d.lost())
	d.step(Attached{Session: 1}, OpSync, OpGet)
	d.step(d.answer(Result{}, mine), OpMulti)
	d.step(d.answer(Result{}))
	if d.ends(Failed); d.m.(*HandIn).Err() != wire.ErrNoNode {
		t.Error(d.m.(*HandIn).Err())
	}
}

// TestTakeMayNotLook for a place whose answer was lost: it stands in the line no
// second time. Where the line is gone the place is.
func TestTakeMayNotLook(t *testing.T) {
	for _, c := range []struct {
		err  error
		then []OpKind
	}{{wire.ErrNoAuth, nil}, {wire.ErrNoNode, []OpKind{OpCreate}}} {
		d := &dialogue{t: t, m: NewTake(TakeConfig{Items: modelQueue, Line: modelQLine})}
		d.step(Attached{Session: 1}, OpCreate)
		d.step(d.lost())
		d.step(Attached{Session: 1}, OpSync, OpList)
		d.step(d.answer(Result{}, Result{Err: c.err}), c.then...)
		if m := d.m.(*Take); m.Over() != (c.then == nil) || m.Over() && m.Err() != c.err {
			t.Errorf("%v: over %v, %v", c.err, m.Over(), m.Err())
		}
	}
}
