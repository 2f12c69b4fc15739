package value

import (
	"cmp"
	"errors"
	"testing"

	"bellwether/internal/claim"
	"bellwether/internal/claim/claimtest"
	"bellwether/wire"
)

// changing is a dialogue with a Change.
type changing struct{ claimtest.Dialogue }

func change(t *testing.T, m Mark, repeatable bool) *changing {
	cfg := ChangeConfig{Path: "/app/n", Initial: []byte("0"), Mark: "/app/mark", Repeatable: repeatable}
	return &changing{claimtest.Dialogue{T: t, M: NewChange(cfg, m)}}
}

func (d *changing) change() *Change { return d.M.(*Change) }

// proposes lets the change read this version in session 1 and propose the value "1".
func (d *changing) proposes(version int32) {
	d.T.Helper()
	d.Step(claim.Attached{Session: 1}, claim.OpGet)
	d.Step(d.Answer(valued("0", version)))
	if old, awaited := d.change().Old(); string(old) != "0" || !awaited {
		d.T.Fatalf("the old value is %q, and a proposal is awaited: %v", old, awaited)
	}
	d.Step(Propose{Data: []byte("1")}, claim.OpMulti)
}

// valued is the result of a read of a znode.
func valued(data string, version int32) claim.Result {
	return claim.Result{Data: []byte(data), Stat: wire.Stat{Version: version}}
}

// ops fails the test unless the last request is a transaction of these operations.
func (d *changing) ops(want ...claim.Op) {
	d.T.Helper()
	got := d.Ops[0].Ops
	for i, op := range want {
		if len(got) != len(want) || got[i].Kind != op.Kind || got[i].Path != op.Path || got[i].Version != op.Version || string(got[i].Data) != string(op.Data) {
			d.T.Fatalf("the transaction is %+v, want %+v", got, want)
		}
	}
}

func set(path, data string, version int32) claim.Op {
	return claim.Op{Kind: claim.OpSet, Path: path, Data: []byte(data), Version: version}
}

// TestChangeKeepsMark checks that the first change creates the mark and the next one sets it, with the
// number of the change.
func TestChangeKeepsMark(t *testing.T) {
	d := change(t, Mark{}, false)
	d.proposes(4)
	d.ops(set("/app/n", "1", 4), claim.Op{Kind: claim.OpCreate, Path: "/app/mark", Data: []byte("1")})
	d.Step(d.Answer(claim.Result{}))
	d.Ends(claim.Succeeded)
	if got := d.change().Mark(); got != (Mark{Session: 1, N: 1}) {
		t.Errorf("the mark is %+v", got)
	}
	d = change(t, d.change().Mark(), false)
	d.proposes(5)
	d.ops(set("/app/n", "1", 5), set("/app/mark", "2", claim.AnyVersion))
}

// TestChangeVersions checks the two versions that a condition cannot express: from -2 the data is set twice,
// which leads past -1, and a znode of version -1 is not changed.
func TestChangeVersions(t *testing.T) {
	d := change(t, Mark{}, false)
	d.proposes(-2)
	d.ops(set("/app/n", "1", -2), set("/app/n", "1", claim.AnyVersion), claim.Op{Kind: claim.OpCreate, Path: "/app/mark", Data: []byte("1")})

	d = change(t, Mark{}, false)
	d.Step(claim.Attached{Session: 1}, claim.OpGet)
	d.Step(d.Answer(valued("0", -1)))
	d.Ends(claim.Failed)
	if !errors.Is(d.change().Err(), ErrVersion) {
		t.Errorf("it ends with %v", d.change().Err())
	}
}

// TestChangeCreatesZnode checks that a missing znode is created with its parents and the initial data, also
// if another client is faster, and that a refusal ends the change.
func TestChangeCreatesZnode(t *testing.T) {
	for _, c := range []struct {
		parents, create error
		want            claim.Outcome
	}{
		{nil, nil, claim.Underway},
		{nil, wire.ErrNodeExists, claim.Underway},
		{wire.ErrNoAuth, wire.ErrNoNode, claim.Failed},
		{nil, wire.ErrNoAuth, claim.Failed},
	} {
		d := change(t, Mark{}, false)
		d.Step(claim.Attached{Session: 1}, claim.OpGet)
		d.Step(d.Answer(claimtest.None), claim.OpParents, claim.OpCreate)
		if op := d.Ops[1]; d.Ops[0].Path != "/app" || op.Path != "/app/n" || string(op.Data) != "0" || !op.Persistent {
			t.Errorf("it asks for %+v", d.Ops)
		}
		answer := d.Answer(claim.Result{Err: c.parents}, claim.Result{Err: c.create})
		if c.want == claim.Underway {
			d.Step(answer, claim.OpGet)
		} else if d.Step(answer); d.change().Err() != cmp.Or(c.parents, c.create) {
			t.Errorf("it ends with %v", d.change().Err())
		}
		if got := d.change().Outcome(); got != c.want {
			t.Errorf("%+v: %v, want %v", c, got, c.want)
		}
	}
	d := change(t, Mark{}, false)
	d.Step(claim.Attached{Session: 1}, claim.OpGet)
	d.Step(d.Answer(claimtest.Refused))
	d.Ends(claim.Failed)
}

// TestChangeFindsOut checks what a change concludes when its answer was lost.
func TestChangeFindsOut(t *testing.T) {
	for _, c := range []struct {
		name       string
		before     Mark
		repeatable bool
		sync, mark claim.Result
		then       []claim.OpKind
		want       claim.Outcome
	}{
		{name: "the mark has the number of this change", mark: valued("1", 0), want: claim.Succeeded},
		{name: "the mark has another number", mark: valued("0", 0), then: []claim.OpKind{claim.OpGet}},
		{name: "the mark was not created", mark: claimtest.None, then: []claim.OpKind{claim.OpGet}},
		{name: "the mark was deleted", before: Mark{Session: 1}, mark: claimtest.None, then: []claim.OpKind{claim.OpSync, claim.OpGet}},
		{name: "the mark may not be read", mark: claimtest.Refused, want: claim.Unclear},
		{name: "the sync is refused", sync: claimtest.Refused, mark: valued("1", 0), want: claim.Unclear},
		{name: "the mark may not be read, and the change may be repeated", repeatable: true, mark: claimtest.Refused, then: []claim.OpKind{claim.OpGet}},
	} {
		d := change(t, c.before, c.repeatable)
		d.proposes(4)
		d.Step(d.Lost())
		d.At = d.Wake
		d.Step(claim.Tick{}, claim.OpSync, claim.OpGet)
		if d.Ops[0].Path != "/app/n" || d.Ops[1].Path != "/app/mark" {
			t.Errorf("%s: it asks for %+v", c.name, d.Ops)
		}
		d.Step(d.Answer(c.sync, c.mark), c.then...)
		if got := d.change().Outcome(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if err := d.change().WhyUnclear(); (err != nil) != (c.want == claim.Unclear) {
			t.Errorf("%s: the outcome is unclear because of %v", c.name, err)
		}
	}
}

// TestChangeFindsOldMark checks that a change sets the mark, and does not create it, after it has found one of an
// earlier change of its session.
func TestChangeFindsOldMark(t *testing.T) {
	d := change(t, Mark{}, false)
	d.proposes(4)
	d.Step(d.Lost())
	d.At = d.Wake
	d.Step(claim.Tick{}, claim.OpSync, claim.OpGet)
	d.Step(d.Answer(claim.Result{}, valued("0", 0)), claim.OpGet)
	d.Step(d.Answer(valued("0", 4)))
	d.Step(Propose{Data: []byte("1")}, claim.OpMulti)
	d.ops(set("/app/n", "1", 4), set("/app/mark", "2", claim.AnyVersion))
}

// TestChangeMayNotInfer checks that the outcome is unclear if the mark is gone with its session and the server refuses to
// show the value, or to bring it up to date.
func TestChangeMayNotInfer(t *testing.T) {
	for _, answer := range [][]claim.Result{{{}, claimtest.Refused}, {claimtest.Refused, valued("0", 4)}} {
		d := change(t, Mark{}, false)
		d.proposes(4)
		d.Step(d.Lost())
		d.At = d.Wake
		d.Step(claim.Attached{Session: 2}, claim.OpSync, claim.OpGet)
		d.Step(d.Answer(answer...))
		d.Ends(claim.Unclear)
		if err := d.change().WhyUnclear(); err != wire.ErrNoAuth {
			t.Errorf("the outcome is unclear because of %v", err)
		}
	}
}

// TestChangeTriesAgain checks what a change does when the transaction fails.
func TestChangeTriesAgain(t *testing.T) {
	d := change(t, Mark{}, false)
	d.proposes(4)
	d.Step(d.Answer(claim.Result{Err: wire.ErrBadVersion}), claim.OpGet)
	if _, awaited := d.change().Old(); awaited {
		t.Error("a proposal is awaited before the value is read again")
	}
	d.Step(d.Answer(valued("5", 6)))
	d.Step(Propose{Data: []byte("6")}, claim.OpMulti)
	d.ops(set("/app/n", "6", 6), claim.Op{Kind: claim.OpCreate, Path: "/app/mark", Data: []byte("2")})
	d.Step(d.Answer(claim.Result{Err: wire.ErrNodeExists}), claim.OpDelete) // a mark of an earlier session
	d.Step(d.Answer(claimtest.None), claim.OpGet)
	d.Step(d.Answer(valued("5", 6)))
	d.Step(Propose{Data: []byte("6")}, claim.OpMulti)
	d.Step(d.Answer(claim.Result{Err: wire.ErrNoAuth}))
	d.Ends(claim.Failed)

	d = change(t, Mark{}, false)
	d.proposes(4)
	d.Step(d.Answer(claim.Result{Err: wire.ErrNodeExists}), claim.OpDelete)
	d.Step(d.Answer(claimtest.Refused))
	d.Ends(claim.Failed)
}

// TestChangeResigns checks that a change that is given up ends only when its outcome is known.
func TestChangeResigns(t *testing.T) {
	d := change(t, Mark{}, true)
	d.Step(claim.Attached{Session: 1}, claim.OpGet)
	d.Step(claim.Resign{})
	d.Step(d.Answer(valued("0", 4)))
	d.Ends(claim.Withdrawn)

	d = change(t, Mark{}, true)
	d.proposes(4)
	d.Step(claim.Resign{})
	d.Step(d.Lost())
	d.At = d.Wake
	d.Step(claim.Tick{}, claim.OpSync, claim.OpGet)
	d.Step(d.Answer(claim.Result{}, claimtest.Refused))
	d.Ends(claim.Unclear)
}
