package claim

import (
	"testing"
	"time"

	"bellwether/wire"
)

// TestBackoffGrows checks that pauses grow from 50 ms to 2 s, that each is shortened by up to a half, and
// that they start again after a time without failures.
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

// TestBackoffAfterAReconnect checks that after one, two or three losses in a row a new connection ends the
// pause, and that after more losses it does not.
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

// TestBackoffAfterAnEvent checks that an event of a change resets the count of errors but ends no pause.
// The removal of a watch is not such an event.
func TestBackoffAfterAnEvent(t *testing.T) {
	for typ, forgiven := range map[wire.EventType]bool{
		wire.EventNodeDeleted: true, wire.EventNodeChildrenChanged: true, wire.EventType(5): false, 0: false,
	} {
		var b Backoff
		for range freeFailures {
			b.CountError(Moment{})
		}
		b.Fired(Fired{Type: typ})
		if b.CountError(Moment{}); (b.Left(Moment{}) == 0) != forgiven {
			t.Errorf("after an event of type %v: %v left", typ, b.Left(Moment{}))
		}
		b.Fail(Moment{})
		if b.Fired(Fired{Type: typ}); b.Left(Moment{}) == 0 {
			t.Errorf("an event of type %v ends the pause", typ)
		}
	}
}

// TestBackoffForgivesAFew checks that a few answers with errors cause no pause, but many do.
func TestBackoffForgivesAFew(t *testing.T) {
	var b Backoff
	now := Moment{}
	for i := range 3 * freeFailures {
		b.CountErrors(now, []Result{{}})
		b.CountErrors(now, []Result{{}, {Err: wire.ErrNoNode}})
		if paused := b.Left(now) > 0; paused != (i >= freeFailures) {
			t.Fatalf("error %d: paused %v", i, paused)
		}
		now.Mono += BackoffMax
		if i < freeFailures {
			now.Mono -= BackoffMax
		}
	}
}
