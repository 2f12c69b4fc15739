package modeltest

import (
	"testing"

	"bellwether/internal/claim"
	"bellwether/internal/claim/claimtest"
	"bellwether/internal/claim/lines"
	"bellwether/internal/claim/queues"
	"bellwether/internal/claim/share"
	"bellwether/internal/claim/value"
	"bellwether/wire"
)

// aboutToTake returns the dialogue of a consumer that has found an item and has sent the request that
// takes it.
func aboutToTake(t *testing.T, claims string) *claimtest.Dialogue {
	d := &claimtest.Dialogue{T: t, M: queues.NewTake(queues.TakeConfig{Items: modelQueue, Line: modelQLine, Claims: claims})}
	d.Step(claim.Attached{Session: 1}, claim.OpCreate)
	own := claim.Nonce{}.String() + "-n_0000000000"
	d.Step(d.Answer(claim.Result{Path: claim.Join(modelQLine, own)}), claim.OpList)
	items := claim.Result{Names: []string{"entry-100-0000000003"}}
	if claims == "" {
		d.Step(d.Answer(claim.Result{Names: []string{own}}), claim.OpList)
		d.Step(d.Answer(items), claim.OpGet)
	} else {
		d.Step(d.Answer(claim.Result{Names: []string{own}}), claim.OpList, claim.OpList)
		d.Step(d.Answer(claim.Result{}, items), claim.OpGet)
	}
	d.Step(d.Answer(claim.Result{Data: []byte("job")}), claim.OpMulti)
	return d
}

// TestTakeInDoubtEndsWithItsSession: when the session has ended, the consumer can no longer find out
// whether it took the item. So it does not queue up again.
func TestTakeInDoubtEndsWithItsSession(t *testing.T) {
	d := aboutToTake(t, "")
	d.Step(d.Lost())
	d.Step(claim.Attached{Session: 2})
	d.Ends(claim.Unclear)
}

// TestClaimInDoubtIsTriedAgain checks that a consumer that claims items tries again in its next session,
// because an item that it had claimed has come back.
func TestClaimInDoubtIsTriedAgain(t *testing.T) {
	d := aboutToTake(t, modelClaims)
	d.Step(d.Lost())
	d.Step(claim.Attached{Session: 2}, claim.OpCreate)
}

// TestTakeIsNotDisturbed checks that a watch event does not disturb a consumer while it reads the item that it
// has found.
func TestTakeIsNotDisturbed(t *testing.T) {
	d := &claimtest.Dialogue{T: t, M: queues.NewTake(queues.TakeConfig{Items: modelQueue, Line: modelQLine, Claims: modelClaims})}
	own := claim.Nonce{}.String() + "-n_0000000000"
	item, free := "entry-100-0000000003", "entry-100-0000000004"
	d.Step(claim.Attached{Session: 1}, claim.OpCreate)
	d.Step(d.Answer(claim.Result{Path: claim.Join(modelQLine, own)}), claim.OpList)
	d.Step(d.Answer(claim.Result{Names: []string{own}}), claim.OpList, claim.OpList)
	taken := claim.Result{Names: []string{item}}
	d.Step(d.Answer(taken, taken), claim.OpWatchAll, claim.OpWatchAll)
	d.Step(d.Answer(taken, taken))
	d.Step(claim.Fired{Path: modelQueue}, claim.OpList, claim.OpList)
	d.Step(d.Answer(taken, claim.Result{Names: []string{item, free}}), claim.OpGet)
	d.Step(claim.Fired{Path: modelClaims})
	d.Step(d.Answer(claim.Result{Data: []byte("job")}), claim.OpMulti)
	d.Step(d.Answer(claim.Result{}))
	d.Ends(claim.Succeeded)
	if path, data, _ := d.M.(*queues.Take).Taken(); path != claim.Join(modelQueue, free) || string(data) != "job" {
		t.Errorf("took %s, %q", path, data)
	}
}

// TestTakeFindsOut checks that a consumer learns from its place in the line whether it took the item.
func TestTakeFindsOut(t *testing.T) {
	d := aboutToTake(t, "")
	d.Step(d.Lost())
	d.Step(claim.Attached{Session: 1}, claim.OpSync, claim.OpGet, claim.OpGet)
	d.Step(d.Answer(claim.Result{}, claimtest.None, claimtest.None))
	d.Ends(claim.Succeeded)

	d = aboutToTake(t, "")
	d.Step(d.Lost())
	d.Step(claim.Attached{Session: 1}, claim.OpSync, claim.OpGet, claim.OpGet)
	d.Step(d.Answer(claim.Result{}, claim.Result{}, claim.Result{}), claim.OpMulti) // the item was not taken
	d.Step(d.Answer(claim.Result{}))
	d.Ends(claim.Succeeded)
}

// TestTakeMayNotFindOut checks a consumer that lost the answer to the transaction that takes an item, and whom the
// server does not tell whether it was carried out: the consumer deletes its bid, so that nobody waits for it. If the
// bid existed, the item was not taken. Otherwise the outcome is unclear.
func TestTakeMayNotFindOut(t *testing.T) {
	there := claim.Result{}
	for _, claims := range []string{"", modelClaims} {
		for _, c := range []struct {
			name       string
			look       []claim.Result
			bid        claim.Result
			want       claim.Outcome
			err, doubt error
		}{
			{"the sync is refused", []claim.Result{claimtest.Refused, there, there}, there, claim.Failed, wire.ErrNoAuth, nil},
			{"the sync is refused, and the bid is gone", []claim.Result{claimtest.Refused, there, there}, claimtest.None, claim.Unclear, nil, wire.ErrNoAuth},
			{"the bid may not be read", []claim.Result{{}, claimtest.Refused, there}, there, claim.Failed, wire.ErrNoAuth, nil},
			{"the bid may not be deleted", []claim.Result{{}, claimtest.Refused, there}, claimtest.Refused, claim.Unclear, nil, wire.ErrNoAuth},
		} {
			d := aboutToTake(t, claims)
			d.Step(d.Lost())
			d.Step(claim.Attached{Session: 1}, claim.OpSync, claim.OpGet, claim.OpGet)
			own := d.Ops[1].Path
			d.Step(d.Answer(c.look...), claim.OpDelete)
			if d.Ops[0].Path != own {
				t.Errorf("%s: it deletes %s, not %s", c.name, d.Ops[0].Path, own)
			}
			d.Step(d.Answer(c.bid))
			m := d.M.(*queues.Take)
			if d.Ends(c.want); m.Err() != c.err || m.WhyUnclear() != c.doubt {
				t.Errorf("%s: %v, %v", c.name, m.Err(), m.WhyUnclear())
			}
		}
		d := aboutToTake(t, claims)
		d.Step(d.Lost())
		d.Step(claim.Attached{Session: 1}, claim.OpSync, claim.OpGet, claim.OpGet)
		d.Step(d.Answer(claim.Result{}, claimtest.None, claimtest.Refused)) // the bid is gone, and the item or its claim may not be read
		if d.Ends(claim.Unclear); d.M.(*queues.Take).WhyUnclear() != wire.ErrNoAuth {
			t.Error(d.M.(*queues.Take).WhyUnclear())
		}
	}
}

// TestTakeWhosePlaceWasDeleted checks a consumer that lost an answer and whose place was deleted: it does
// not conclude that it took the item.
func TestTakeWhosePlaceWasDeleted(t *testing.T) {
	d := aboutToTake(t, "")
	d.Step(d.Lost())
	d.Step(claim.Attached{Session: 1}, claim.OpSync, claim.OpGet, claim.OpGet)
	d.Step(d.Answer(claim.Result{}, claimtest.None, claim.Result{}), claim.OpCreate) // the item still exists, so the consumer queues up again
}

// TestAcknowledgementLeavesAnothersClaimAlone: a consumer gave its claim back, and the answer was lost.
// Meanwhile another consumer has claimed the item, and the first one must not end that claim.
func TestAcknowledgementLeavesAnothersClaimAlone(t *testing.T) {
	mine, others := claim.Result{Stat: wire.Stat{EphemeralOwner: 1}}, claim.Result{Stat: wire.Stat{EphemeralOwner: 2}}
	d := &claimtest.Dialogue{T: t, M: queues.NewAcknowledgement(queues.AcknowledgementConfig{Item: modelQueue + "/a", Claim: modelClaims + "/a", Session: 1, Release: true})}
	d.Step(claim.Attached{Session: 1}, claim.OpSync, claim.OpGet)
	d.Step(d.Answer(claim.Result{}, mine), claim.OpMulti)
	d.Step(d.Lost())
	d.Step(claim.Attached{Session: 1}, claim.OpSync, claim.OpGet)
	d.Step(d.Answer(claim.Result{}, others))
	d.Ends(claim.Succeeded)
}

// TestPutThatWasTakenAtOnce checks that a producer recognises by its mark that it has put an item which a
// consumer has taken already. It does not put the item again.
func TestPutThatWasTakenAtOnce(t *testing.T) {
	d := &claimtest.Dialogue{T: t, M: queues.NewPut(queues.PutConfig{Items: modelQueue, Mark: modelQLine + "/m", Prefix: "x-entry-100-", Unique: true})}
	d.Step(claim.Attached{Session: 1}, claim.OpMulti)
	d.Step(d.Lost())
	d.Step(claim.Attached{Session: 1}, claim.OpSync, claim.OpGet)
	d.Step(d.Answer(claim.Result{}, claim.Result{}), claim.OpDelete)
	d.Step(d.Answer(claim.Result{}))
	d.Ends(claim.Succeeded)
}

// TestPutWhoseSyncIsRefused checks that a producer in doubt does not put an item again because the mark is missing on a
// server that may be behind: the outcome is unclear, and the error of the sync says why.
func TestPutWhoseSyncIsRefused(t *testing.T) {
	m := queues.NewPut(queues.PutConfig{Items: modelQueue, Mark: modelQLine + "/m", Prefix: "x-entry-100-", Unique: true})
	d := &claimtest.Dialogue{T: t, M: m}
	d.Step(claim.Attached{Session: 1}, claim.OpMulti)
	d.Step(d.Lost())
	d.Step(claim.Attached{Session: 1}, claim.OpSync, claim.OpGet)
	d.Step(d.Answer(claim.Result{Err: wire.ErrNoAuth}, claim.Result{Err: wire.ErrNoNode}))
	d.Ends(claim.Unclear)
	if m.WhyUnclear() != wire.ErrNoAuth {
		t.Error(m.WhyUnclear())
	}
}

// TestChangeWhoseMarkIsGone checks what a change whose mark is gone concludes from the value: it tries again if it
// was not carried out, and otherwise the outcome is unclear.
func TestChangeWhoseMarkIsGone(t *testing.T) {
	for _, c := range []struct {
		now  claim.Result
		want claim.Outcome
	}{
		{claim.Result{Data: []byte("6"), Stat: wire.Stat{Version: 8}}, claim.Unclear},  // made by this change, or by another that added as much
		{claim.Result{Data: []byte("9"), Stat: wire.Stat{Version: 8}}, claim.Underway}, // another change was made
		{claim.Result{Data: []byte("5"), Stat: wire.Stat{Version: 7}}, claim.Underway}, // no change was made
		{claim.Result{Data: []byte("6"), Stat: wire.Stat{Version: 10}}, claim.Unclear}, // many changes were made
	} {
		m := value.NewChange(value.ChangeConfig{Path: modelValue, Mark: modelValue + "/m"}, value.Mark{Session: 1})
		d := &claimtest.Dialogue{T: t, M: m}
		d.Step(claim.Attached{Session: 1}, claim.OpGet)
		d.Step(d.Answer(claim.Result{Data: []byte("5"), Stat: wire.Stat{Version: 7}}))
		d.Step(value.Propose{Data: []byte("6")}, claim.OpMulti)
		d.Step(d.Lost())
		d.Step(claim.Attached{Session: 2}, claim.OpSync, claim.OpGet)
		if c.want == claim.Unclear {
			d.Step(d.Answer(claim.Result{}, c.now))
		} else {
			d.Step(d.Answer(claim.Result{}, c.now), claim.OpGet)
		}
		if m.Outcome() != c.want {
			t.Errorf("%+v: %v, want %v", c.now, m.Outcome(), c.want)
		}
	}
}

// TestChangeThatMayBePassedOver checks a change that cannot find out whether it was carried out. If it
// may be repeated, it is tried once more, as long as its caller has not given up.
func TestChangeThatMayBePassedOver(t *testing.T) {
	now := func(data string, version int32) claim.Result {
		return claim.Result{Data: []byte(data), Stat: wire.Stat{Version: version}}
	}
	inDoubt := func() *claimtest.Dialogue {
		d := &claimtest.Dialogue{T: t, M: value.NewChange(value.ChangeConfig{Path: modelValue, Mark: modelValue + "/m", Repeatable: true}, value.Mark{Session: 1})}
		d.Step(claim.Attached{Session: 1}, claim.OpGet)
		d.Step(d.Answer(now("5", 7)))
		d.Step(value.Propose{Data: []byte("6")}, claim.OpMulti)
		d.Step(d.Lost())
		return d
	}
	d := inDoubt()
	d.Step(claim.Attached{Session: 2}, claim.OpSync, claim.OpGet)
	d.Step(d.Answer(claim.Result{}, now("6", 8)), claim.OpGet) // made by this change, or by another that added as much
	d.Step(d.Answer(now("6", 8)))
	d.Step(value.Propose{Data: []byte("7")}, claim.OpMulti)
	d.Step(d.Answer(claim.Result{}))
	d.Ends(claim.Succeeded)

	d = inDoubt()
	d.Step(claim.Attached{Session: 1}, claim.OpSync, claim.OpGet)
	d.Step(d.Answer(claim.Result{}, claim.Result{Err: wire.ErrNoAuth}), claim.OpGet) // the mark cannot be read
	d.Step(d.Answer(claim.Result{Err: wire.ErrNoAuth}))
	d.Ends(claim.Failed)

	d = inDoubt()
	d.Step(claim.Attached{Session: 2}, claim.OpSync, claim.OpGet)
	d.Step(claim.Resign{})
	d.Step(d.Answer(claim.Result{}, now("6", 8)))
	d.Ends(claim.Unclear)

	d = inDoubt()
	d.Step(claim.Closed{})
	d.Ends(claim.Unclear)
}

// TestTaskIsEndedOnce: after a lost answer a task is deleted again only if it still exists. A newer task
// with the same name is not deleted.
func TestTaskIsEndedOnce(t *testing.T) {
	stood := func(z wire.Zxid) claim.Result { return claim.Result{Data: []byte("job"), Stat: wire.Stat{Czxid: z}} }
	inDoubt := func() *claimtest.Dialogue {
		d := &claimtest.Dialogue{T: t, M: share.NewTask(share.TaskConfig{Path: "/w/t", Bid: "/w/b", Session: 1})}
		d.Step(claim.Attached{Session: 1}, claim.OpGet)
		d.Step(d.Answer(stood(5)))
		d.Step(share.Begin{})
		d.Step(share.Finish{}, claim.OpMulti)
		d.Step(d.Lost())
		d.Step(claim.Attached{Session: 1}, claim.OpSync, claim.OpGet)
		return d
	}
	for _, now := range []claim.Result{claimtest.None, stood(6)} {
		d := inDoubt()
		d.Step(d.Answer(claim.Result{}, now))
		d.Ends(claim.Succeeded)
	}
	d := inDoubt()
	d.Step(d.Answer(claim.Result{}, stood(5)), claim.OpMulti)
	d.Step(d.Answer(claim.Result{}))
	d.Ends(claim.Succeeded)
}

// TestTaskOfALostBid checks that a task is not ended if its bid is gone, neither in the same session nor
// in the next.
func TestTaskOfALostBid(t *testing.T) {
	for _, ev := range []func(d *claimtest.Dialogue) claim.Event{
		func(d *claimtest.Dialogue) claim.Event { return d.Answer(claim.Result{Err: wire.ErrNoNode, Failed: 0}) },
		func(d *claimtest.Dialogue) claim.Event { d.Step(d.Lost()); return claim.Attached{Session: 2} },
	} {
		m := share.NewTask(share.TaskConfig{Path: "/w/t", Bid: "/w/b", Session: 1})
		d := &claimtest.Dialogue{T: t, M: m}
		d.Step(claim.Attached{Session: 1}, claim.OpGet)
		d.Step(d.Answer(claim.Result{}))
		d.Step(share.Begin{})
		d.Step(share.Finish{}, claim.OpMulti)
		d.Step(ev(d))
		if d.Ends(claim.Failed); m.Err() != share.ErrTaskLost {
			t.Errorf("%v", m.Err())
		}
	}
}

// TestTaskIsBroughtToItsEnd checks that a task that was begun must be finished, while one that was not
// begun can be given up at once.
func TestTaskIsBroughtToItsEnd(t *testing.T) {
	read := func() *claimtest.Dialogue {
		d := &claimtest.Dialogue{T: t, M: share.NewTask(share.TaskConfig{Path: "/w/t", Bid: "/w/b", Session: 1})}
		d.Step(claim.Attached{Session: 1}, claim.OpGet)
		return d
	}
	d := read()
	d.Step(claim.Resign{})
	d.Ends(claim.Withdrawn)
	d = read()
	d.Step(d.Answer(claim.Result{}))
	d.Step(share.Finish{}) // the task was not begun, so this has no effect
	d.Step(claim.Resign{})
	d.Ends(claim.Withdrawn)
	d = read()
	d.Step(d.Answer(claim.Result{}))
	d.Step(share.Begin{})
	d.Step(claim.Resign{})
	d.Step(share.Finish{}, claim.OpMulti)
	d.Step(d.Answer(claim.Result{}))
	d.Ends(claim.Succeeded)
}

// TestTaskThatIsGone checks that a task whose znode does not exist counts as done.
func TestTaskThatIsGone(t *testing.T) {
	d := &claimtest.Dialogue{T: t, M: share.NewTask(share.TaskConfig{Path: "/w/t", Bid: "/w/b", Session: 1})}
	d.Step(claim.Attached{Session: 1}, claim.OpGet)
	d.Step(d.Answer(claimtest.None))
	d.Ends(claim.Succeeded)
}

// TestAcknowledgementOfAMissingItem checks an acknowledgement of an item that does not exist: it gives up the
// claim, reports that there is no item, and carries out none of the operations that were to go with it.
func TestAcknowledgementOfAMissingItem(t *testing.T) {
	mine := claim.Result{Stat: wire.Stat{EphemeralOwner: 1}}
	d := &claimtest.Dialogue{T: t, M: queues.NewAcknowledgement(queues.AcknowledgementConfig{Item: modelQueue + "/a", Claim: modelClaims + "/a", Session: 1, More: true})}
	d.Step(claim.Attached{Session: 1}, claim.OpSync, claim.OpGet)
	d.Step(d.Answer(claim.Result{}, mine), claim.OpMulti)
	d.Step(d.Answer(claim.Result{Err: wire.ErrNoNode, Failed: 1}), claim.OpMulti)
	d.Step(d.Lost())
	d.Step(claim.Attached{Session: 1}, claim.OpSync, claim.OpGet)
	d.Step(d.Answer(claim.Result{}, mine), claim.OpMulti)
	d.Step(d.Answer(claim.Result{}))
	if d.Ends(claim.Failed); d.M.(*queues.Acknowledgement).Err() != wire.ErrNoNode {
		t.Error(d.M.(*queues.Acknowledgement).Err())
	}
}

// TestTakeMayNotLook checks a consumer that lost the answer to the creation of its place and may not list
// the line, or whose sync is refused: it does not queue up a second time. If the line does not exist,
// neither does the place, and the consumer queues up.
func TestTakeMayNotLook(t *testing.T) {
	for _, c := range []struct {
		sync, err error
		then      []claim.OpKind
	}{{nil, wire.ErrNoAuth, nil}, {wire.ErrNoAuth, nil, nil}, {nil, wire.ErrNoNode, []claim.OpKind{claim.OpCreate}}} {
		d := &claimtest.Dialogue{T: t, M: queues.NewTake(queues.TakeConfig{Items: modelQueue, Line: modelQLine})}
		d.Step(claim.Attached{Session: 1}, claim.OpCreate)
		d.Step(d.Lost())
		d.Step(claim.Attached{Session: 1}, claim.OpSync, claim.OpList)
		d.Step(d.Answer(claim.Result{Err: c.sync}, claim.Result{Err: c.err}), c.then...)
		if m := d.M.(*queues.Take); m.Over() != (c.then == nil) || m.Over() && m.Err() != wire.ErrNoAuth {
			t.Errorf("%v, %v: over %v, %v", c.sync, c.err, m.Over(), m.Err())
		}
	}
}

// TestAcknowledgementMayNotLook checks an acknowledgement that may not read its claim, or whose sync is refused: it
// fails, or its outcome is unclear if the answer to its transaction was lost.
func TestAcknowledgementMayNotLook(t *testing.T) {
	mine := claim.Result{Stat: wire.Stat{EphemeralOwner: 1}}
	for _, answer := range [][]claim.Result{{claimtest.Refused, mine}, {{}, claimtest.Refused}} {
		for _, doubt := range []bool{false, true} {
			m := queues.NewAcknowledgement(queues.AcknowledgementConfig{Item: modelQueue + "/a", Claim: modelClaims + "/a", Session: 1})
			d := &claimtest.Dialogue{T: t, M: m}
			d.Step(claim.Attached{Session: 1}, claim.OpSync, claim.OpGet)
			want, err, unclear := claim.Failed, error(wire.ErrNoAuth), error(nil)
			if doubt {
				d.Step(d.Answer(claim.Result{}, mine), claim.OpMulti)
				d.Step(d.Lost())
				d.Step(claim.Attached{Session: 1}, claim.OpSync, claim.OpGet)
				want, err, unclear = claim.Unclear, nil, wire.ErrNoAuth
			}
			d.Step(d.Answer(answer...))
			if d.Ends(want); m.Err() != err || m.WhyUnclear() != unclear {
				t.Errorf("in doubt %v: %v, %v", doubt, m.Err(), m.WhyUnclear())
			}
		}
	}
}

// TestTakeMayNotLeave checks a consumer that gives up and may not delete its bid: it reports the bid that stays, and
// fails with the server's error. A bid that is already gone is no error.
func TestTakeMayNotLeave(t *testing.T) {
	own := claim.Nonce{}.String() + "-n_0000000001"
	for _, c := range []struct {
		err  error
		want claim.Outcome
	}{{wire.ErrNoAuth, claim.Failed}, {wire.ErrNoNode, claim.Withdrawn}, {nil, claim.Withdrawn}} {
		m := queues.NewTake(queues.TakeConfig{Items: modelQueue, Line: modelQLine})
		d := &claimtest.Dialogue{T: t, M: m}
		d.Step(claim.Attached{Session: 1}, claim.OpCreate)
		d.Step(claim.Resign{})
		d.Step(d.Answer(claim.Result{Path: claim.Join(modelQLine, own)}), claim.OpDelete)
		m.Step(claim.Moment{}, d.Answer(claim.Result{Err: c.err}))
		d.Ends(c.want)
		left := m.Ready().Observations
		if c.want == claim.Failed {
			if len(left) != 1 || left[0] != (lines.Left{Bid: own, Path: claim.Join(modelQLine, own), Err: c.err}) || m.Err() != c.err {
				t.Errorf("%v: it reports %v and ends with %v", c.err, left, m.Err())
			}
		} else if len(left) != 0 {
			t.Errorf("%v: it reports %v", c.err, left)
		}
	}
}

// TestTaskIsRefused checks that a task whose owner may not read or remove it ends with the server's error.
func TestTaskIsRefused(t *testing.T) {
	stands := claim.Result{Data: []byte("job"), Stat: wire.Stat{Czxid: 5}}
	begin := func() (*claimtest.Dialogue, *share.Task) {
		m := share.NewTask(share.TaskConfig{Path: "/w/t", Bid: "/w/b", Session: 1})
		d := &claimtest.Dialogue{T: t, M: m}
		d.Step(claim.Attached{Session: 1}, claim.OpGet)
		return d, m
	}
	finished := func() (*claimtest.Dialogue, *share.Task) {
		d, m := begin()
		d.Step(d.Answer(stands))
		if data, awaited := m.Due(); string(data) != "job" || !awaited {
			t.Errorf("the task is %q, and work is awaited: %v", data, awaited)
		}
		d.Step(share.Begin{})
		if _, awaited := m.Due(); awaited {
			t.Error("work is awaited that has begun")
		}
		d.Step(share.Finish{}, claim.OpMulti)
		return d, m
	}
	d, m := begin()
	d.Step(d.Answer(claimtest.Refused))
	if d.Ends(claim.Failed); m.Err() != wire.ErrNoAuth {
		t.Error(m.Err())
	}
	d, m = finished()
	d.Step(d.Answer(claimtest.Refused))
	if d.Ends(claim.Failed); m.Err() != wire.ErrNoAuth {
		t.Error(m.Err())
	}
	for _, answer := range [][]claim.Result{{claimtest.Refused, stands}, {{}, claimtest.Refused}} {
		d, m = finished()
		d.Step(d.Lost())
		d.Step(claim.Attached{Session: 1}, claim.OpSync, claim.OpGet)
		d.Step(d.Answer(answer...))
		if d.Ends(claim.Failed); m.Err() != wire.ErrNoAuth {
			t.Error(m.Err())
		}
	}
}

// TestTakeMayNotTake checks how a consumer goes on when the transaction that takes an item is refused or comes too
// late.
func TestTakeMayNotTake(t *testing.T) {
	looks := []claim.OpKind{claim.OpSync, claim.OpList}
	for _, c := range []struct {
		name   string
		claims string
		answer claim.Result
		then   []claim.OpKind
	}{
		{"another consumer took it", "", claim.Result{Err: wire.ErrNoNode}, looks},
		{"the bid was deleted", "", claim.Result{Err: wire.ErrNoNode, Failed: 1}, []claim.OpKind{claim.OpCreate}},
		{"the item may not be deleted", "", claim.Result{Err: wire.ErrNoAuth}, []claim.OpKind{claim.OpDelete}},
		{"another consumer claimed it", modelClaims, claim.Result{Err: wire.ErrNodeExists, Failed: 1}, append(looks, claim.OpList)},
		{"another consumer gave it back", modelClaims, claim.Result{Err: wire.ErrBadVersion}, append(looks, claim.OpList)},
		{"it may not be written", modelClaims, claim.Result{Err: wire.ErrNoAuth}, []claim.OpKind{claim.OpMulti}},
		{"it may not be claimed", modelClaims, claim.Result{Err: wire.ErrNoAuth, Failed: 1}, []claim.OpKind{claim.OpDelete}},
	} {
		d := aboutToTake(t, c.claims)
		d.Step(d.Answer(c.answer), c.then...)
		if c.then[0] != claim.OpMulti {
			continue
		}
		if first := d.Ops[0].Ops[0]; first.Kind != claim.OpCheck {
			t.Errorf("%s: it asks for %v first, want a check", c.name, first.Kind)
		}
		d.Step(d.Answer(claim.Result{}))
		d.Ends(claim.Succeeded)
		if n := d.M.(*queues.Take).Deliveries(); n != 0 {
			t.Errorf("%s: %d deliveries, want 0, which means unknown", c.name, n)
		}
	}
	for claims, want := range map[string]int{"": 0, modelClaims: 1} {
		d := aboutToTake(t, claims)
		d.Step(d.Answer(claim.Result{}))
		d.Ends(claim.Succeeded)
		if n := d.M.(*queues.Take).Deliveries(); n != want {
			t.Errorf("%d deliveries, want %d", n, want)
		}
	}
}

// TestTakePassesOverAPersistentZnode checks a consumer that finds a persistent znode ahead, which is no bid and will not
// disappear: it removes its watch and looks again, without that znode.
func TestTakePassesOverAPersistentZnode(t *testing.T) {
	d := &claimtest.Dialogue{T: t, M: queues.NewTake(queues.TakeConfig{Items: modelQueue, Line: modelQLine})}
	own := claim.Nonce{}.String() + "-n_0000000002"
	ahead := []string{claim.Nonce{1}.String() + "-n_0000000000", claim.Nonce{2}.String() + "-n_0000000001"}
	line := claim.Result{Names: append(ahead, own)}
	d.Step(claim.Attached{Session: 1}, claim.OpCreate)
	d.Step(d.Answer(claim.Result{Path: claim.Join(modelQLine, own)}), claim.OpList)
	d.Step(d.Answer(line), claim.OpWatch)
	d.Step(d.Answer(claimtest.Of(0, 5, 0)), claim.OpUnwatch)
	if at := d.Ops[0].Path; at != claim.Join(modelQLine, ahead[1]) {
		t.Errorf("it removes the watch of %s", at)
	}
	d.Step(d.Answer(claim.Result{}), claim.OpList)
	d.Step(d.Answer(line), claim.OpWatch)
	if at := d.Ops[0].Path; at != claim.Join(modelQLine, ahead[0]) {
		t.Errorf("it watches %s", at)
	}
	d.Step(d.Answer(claimtest.Of(3, 4, 0)))
}
