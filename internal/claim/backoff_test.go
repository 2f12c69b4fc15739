package claim

import (
	"testing"
	"time"

	"bellwether/wire"
)

// TestBackoffGrows from 50 ms to 2 s, each pause shortened by up to a half, and begins
// anew after a calm.
func TestBackoffGrows(t *testing.T) {
	var b Backoff
	now, shortened := Moment{Mono: time.Hour}, map[bool]int{}
	pass := func(d time.Duration) { now.Mono, now.Wall = now.Mono+d, now.Wall+d }
	for i, want := 0, BackoffMin; i < 40; i, want = i+1, min(2*want, BackoffMax) {
		b.Fail(now)
		left := b.Left(now)
		if left > want || left <= want/2-1 {
			t.Fatalf("pause %d is %v, of %v", i, left, want)
		}
		shortened[left < want*3/4]++
		pass(left)
		if b.Left(now) != 0 {
			t.Fatalf("%v left after the pause", b.Left(now))
		}
		pass(time.Millisecond + time.Duration(i))
	}
	if shortened[true] < 5 || shortened[false] < 5 {
		t.Errorf("pauses are shortened by more than a quarter, or not: %v", shortened)
	}
	pass(backoffCalm + time.Second)
	if b.Fail(now); b.Left(now) > BackoffMin {
		t.Errorf("%v after a calm", b.Left(now))
	}
}

// TestBackoffAfterAReconnect: a request lost once, twice or three times in a row is sent
// again at once, one that is lost each time is not.
func TestBackoffAfterAReconnect(t *testing.T) {
	var b Backoff
	for i := range 5 {
		b.Fail(Moment{Mono: time.Duration(i)})
		b.Reconnected()
		if left := b.Left(Moment{Mono: time.Duration(i)}); (left == 0) != (i < 3) {
			t.Errorf("%v left after loss %d", left, i+1)
		}
	}
}

// TestBackoffAfterAnEvent: a change of the tree forgives answers with an error, and ends no
// pause; the removal of a watch is no change.
func TestBackoffAfterAnEvent(t *testing.T) {
	for typ, forgiven := range map[wire.EventType]bool{
		wire.EventNodeDeleted: true, wire.EventNodeChildrenChanged: true, wire.EventDataWatchRemoved: false, 0: false,
	} {
		var b Backoff
		for range freeFailures {
			b.Stumble(Moment{})
		}
		b.Fired(Fired{Type: typ})
		if b.Stumble(Moment{}); (b.Left(Moment{}) == 0) != forgiven {
			t.Errorf("after an event of type %v: %v left", typ, b.Left(Moment{}))
		}
		b.Fail(Moment{})
		if b.Fired(Fired{Type: typ}); b.Left(Moment{}) == 0 {
			t.Errorf("an event of type %v ends the pause", typ)
		}
	}
}

// TestBackoffForgivesAFew answers with an error, not many.
func TestBackoffForgivesAFew(t *testing.T) {
	var b Backoff
	now := Moment{}
	for i := range 3 * freeFailures {
		b.Stumbles(now, []Result{{}})
		b.Stumbles(now, []Result{{}, {Err: wire.ErrNoNode}})
		if paused := b.Left(now) > 0; paused != (i >= freeFailures) {
			t.Fatalf("error %d: paused %v", i, paused)
		}
		now.Mono += BackoffMax
		if i < freeFailures {
			now.Mono -= BackoffMax
		}
	}
}
