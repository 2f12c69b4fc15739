package server

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"

	"bellwether/internal/store"
	"bellwether/wire"
)

// TestClaimsAreGrantedInOrder: Claims are granted in order as memory becomes free. A
// claim that is withdrawn does not count and does not delay those after it.
func TestClaimsAreGrantedInOrder(t *testing.T) {
	var b budget
	b.limit.Store(1000 * limitParts / useParts)
	if !b.claim(900) || !b.claim(200) || b.claim(1) {
		t.Fatalf("%d bytes of %d are claimed", b.bytes.Load(), b.total())
	}
	first, relieve := b.wait(500)
	second, again := b.wait(500)
	third, _ := b.wait(500)
	if !relieve || again {
		t.Errorf("only the first waiter must call relieve: %v, %v", relieve, again)
	}
	granted := func(w *claim) bool { return len(w.granted) == 1 }
	b.add(-50)
	if granted(first) {
		t.Error("memory is granted while the budget is full")
	}
	b.add(-100)
	if !granted(first) || granted(second) {
		t.Errorf("granted: %v, %v", granted(first), granted(second))
	}
	if b.claim(1) {
		t.Error("a claim overtakes those that wait")
	}
	if b.forget(second) || !b.forget(first) {
		t.Error("memory must be counted for granted claims only")
	}
	if b.add(-500); !granted(third) || b.waiting.Load() || b.wanted != 0 || b.bytes.Load() != 950+500 {
		t.Errorf("granted: %v; %d bytes are counted, %d wanted", granted(third), b.bytes.Load(), b.wanted)
	}
}

// TestWaitingInputsAreClosed: a connection that waits for memory while its own requests
// use more than its share is closed, because such connections could wait for each other
// for ever. Other connections wait until there is memory, and then get their replies.
func TestWaitingInputsAreClosed(t *testing.T) {
	s := start(t, Options{Config: testConfig(), FS: store.NewMem(1)})
	c := s.connect()
	c.create("/a", string(make([]byte, replyFree)))
	much, little := s.connect(), s.connect()
	limit := s.budget.limit.Swap(100 * limitShare) // 100 bytes may be in use
	s.budget.add(1 << 20)
	read := &wire.PathWatchRequest{Path: "/a"}
	// The first requests fill the buffer that every connection has, and need little
	// memory.
	much.write(append(pipeline(inputIdle/15, wire.OpExists, read), pipeline(200, wire.OpGetData, read)...))
	little.write(pipeline(2, wire.OpGetData, read))
	much.nc.SetReadDeadline(time.Now().Add(30 * time.Second))
	if n, err := io.Copy(io.Discard, much.nc); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the connection is not closed; %d bytes came, %v", n, err)
	}
	eventually(t, "one client waits", func() bool {
		s.budget.mu.Lock()
		defer s.budget.mu.Unlock()
		return s.budget.queue.Len() == 1
	})
	s.budget.add(-1 << 20)
	for range 2 {
		if h := little.reply(nil); h.Err != wire.OK {
			t.Errorf("%+v", h)
		}
	}
	s.budget.limit.Store(limit)
	eventually(t, "nothing is counted, and nobody waits", func() bool { return s.budget.bytes.Load() == 0 && !s.budget.waiting.Load() })
}

// TestPiecesAreWrittenWhole: gather returns all bytes of the pieces in order, however
// much of them a socket takes at a time.
func TestPiecesAreWrittenWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lens := rapid.SliceOfN(rapid.SampledFrom([]int{0, 1, 20, 5000, bufferKept - 1, bufferKept, 3 * bufferKept}), 0, 8).Draw(t, "lengths")
		var pieces [][]byte
		var want, got []byte
		for i, n := range lens {
			pieces = append(pieces, bytes.Repeat([]byte{byte(i + 1)}, n))
			want = append(want, pieces[i]...)
		}
		room := make([]byte, 0, bufferKept)
		for pieces = behind(pieces, 0); len(pieces) > 0; {
			part := gather(pieces, room)
			if len(part) == 0 || len(part) > bufferKept {
				t.Fatalf("a part of %d bytes", len(part))
			}
			n := rapid.IntRange(1, len(part)).Draw(t, "taken")
			got = append(got, part[:n]...)
			pieces = behind(pieces, n)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("%d bytes, want %d", len(got), len(want))
		}
	})
}
