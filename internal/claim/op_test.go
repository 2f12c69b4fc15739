package claim

import (
	"errors"
	"fmt"
	"testing"

	"bellwether/wire"
)

// TestBatch checks which operations the driver sends without waiting for an answer: a sync and the reads behind
// it, or one other operation.
func TestBatch(t *testing.T) {
	get, list, sync, alone := Get("/a"), List("/a"), Sync("/a"), Op{Kind: OpGet, Path: "/a", Alone: true}
	for _, c := range []struct {
		ops  []Op
		want int
	}{
		{[]Op{get}, 1},
		{[]Op{get, list, get, Delete("/a"), get}, 3},
		{[]Op{sync, get, list, sync, get}, 3},
		{[]Op{sync}, 1},
		{[]Op{sync, Delete("/a")}, 1},
		{[]Op{Delete("/a"), get}, 1},
		{[]Op{get, alone, get}, 1},
		{[]Op{alone, get}, 1},
		{[]Op{sync, {Kind: OpStat, Path: "/a"}}, 1},
	} {
		if got := Batch(c.ops); got != c.want {
			t.Errorf("of %+v, %d are sent, want %d", c.ops, got, c.want)
		}
	}
}

// TestClassify checks the classes of errors, and which of them pass.
func TestClassify(t *testing.T) {
	for _, c := range []struct {
		err    error
		class  Class
		passes bool
	}{
		{nil, Fine, false},
		{wire.ErrConnectionLoss, Retry, true},
		{wire.ErrOperationTimeout, Retry, true},
		{wire.ErrSessionMoved, Retry, true},
		{wire.ErrNotReadOnly, Retry, true},
		{wire.ErrThrottledOp, Retry, true},
		{fmt.Errorf("reading: %w", wire.ErrConnectionLoss), Retry, true},
		{wire.ErrSessionExpired, SessionOver, true},
		{wire.ErrClosing, ClientOver, false},
		{wire.ErrNoNode, Denied, false},
		{wire.ErrNoAuth, Denied, false},
		{errors.New("not of the protocol"), Denied, false},
	} {
		if got := Classify(c.err); got != c.class {
			t.Errorf("%v: class %d, want %d", c.err, got, c.class)
		}
		if got := Passes(c.err); got != c.passes {
			t.Errorf("%v passes: %v, want %v", c.err, got, c.passes)
		}
	}
}
