package recipe

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"bellwether/zk"
)

func (s *fakeServer) readWrite(o *LockOptions) *ReadWriteLock {
	s.t.Helper()
	l, err := NewReadWriteLock(s.connect(zk.Options{}), parent, o)
	if err != nil {
		s.t.Fatal(err)
	}
	return l
}

// TestReadersShareWritersExclude checks that readers and writers hold in the order of arrival.
func TestReadersShareWritersExclude(t *testing.T) {
	for _, naming := range []Naming{OwnNames, CuratorLockNames, KazooNames} {
		bubble(t, func(t *testing.T, s *fakeServer) {
			o := &LockOptions{Naming: naming}
			r1, r2 := acquire(t, s.readWrite(o).RLock), acquire(t, s.readWrite(o).RLock)
			w := acquireLater(t.Context(), s.readWrite(o).Lock)
			late := acquireLater(t.Context(), s.readWrite(o).RLock) // behind the writer
			waits(t, w)
			release(t, r2)
			waits(t, w)
			release(t, r1)
			hw := got(t, w)
			waits(t, late)
			if hw.Token() <= r1.Token() || hw.Token() <= r2.Token() {
				t.Errorf("writer's token %v after %v and %v", hw.Token(), r1.Token(), r2.Token())
			}
			release(t, hw)
			h := got(t, late)
			if h.Token() <= hw.Token() {
				t.Errorf("reader's token %v after %v", h.Token(), hw.Token())
			}
			release(t, h)
			s.empty(parent)
		})
	}
}

// TestReadersWatchTheWriterAlone checks that the departure of a reader wakes no reader, and that of a
// writer wakes the readers that waited for it.
func TestReadersWatchTheWriterAlone(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		r1, r2 := acquire(t, s.readWrite(nil).RLock), acquire(t, s.readWrite(nil).RLock)
		w := acquireLater(t.Context(), s.readWrite(nil).Lock)
		var readers []<-chan held
		cancels := []context.CancelFunc{}
		for range 5 {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			cancels = append(cancels, cancel)
			readers = append(readers, acquireLater(ctx, s.readWrite(nil).RLock))
		}
		costs := func(want int, what string, f func()) {
			t.Helper()
			before := s.eventCount()
			f()
			waits(t, readers[1])
			if n := s.eventCount() - before; n != want {
				t.Errorf("%s: %d events, want %d", what, n, want)
			}
		}
		costs(0, "a waiting reader leaves", func() {
			cancels[0]()
			if l := <-readers[0]; !errors.Is(l.err, context.Canceled) {
				t.Error(l.err)
			}
		})
		costs(0, "a reader that the writer does not watch leaves", func() { release(t, r1) })
		costs(1, "the reader before the writer leaves", func() { release(t, r2) })
		hw := got(t, w)
		before := s.eventCount()
		release(t, hw)
		for _, r := range readers[1:] {
			got(t, r)
		}
		if n := s.eventCount() - before; n != 4 {
			t.Errorf("the writer leaves: %d events for four readers", n)
		}
	})
}

// TestWaitingWriterThatLeaves checks that the readers behind a waiting writer get the lock when the writer gives up.
func TestWaitingWriterThatLeaves(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		acquire(t, s.readWrite(nil).RLock)
		ctx, cancel := context.WithCancel(t.Context())
		w := acquireLater(ctx, s.readWrite(nil).Lock)
		late := acquireLater(t.Context(), s.readWrite(nil).RLock)
		waits(t, late)
		cancel()
		<-w
		got(t, late)
	})
}

// TestTryReadAndWrite checks that TryRLock succeeds while others read, that TryLock fails then, and that
// TryRLock fails while another client writes.
func TestTryReadAndWrite(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		a, b := s.readWrite(nil), s.readWrite(nil)
		r1, r2 := acquire(t, a.TryRLock), acquire(t, b.TryRLock)
		if _, err := b.TryLock(t.Context()); !errors.Is(err, ErrHeld) {
			t.Errorf("writer beside readers: %v", err)
		}
		release(t, r1)
		release(t, r2)
		w := acquire(t, a.TryLock)
		if _, err := b.TryRLock(t.Context()); !errors.Is(err, ErrHeld) {
			t.Errorf("reader beside a writer: %v", err)
		}
		release(t, w)
		s.empty(parent)
	})
}

// TestLockIsAWriterToReaders checks that a Lock with the parent of a ReadWriteLock acts as one more writer.
func TestLockIsAWriterToReaders(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		r := acquire(t, s.readWrite(nil).RLock)
		w := acquireLater(t.Context(), s.lock(nil).Lock)
		waits(t, w)
		release(t, r)
		h := got(t, w)
		late := acquireLater(t.Context(), s.readWrite(nil).RLock)
		waits(t, late)
		release(t, h)
		got(t, late)
	})
}

// TestReaderOfAnExpiredSession checks that a waiting writer gets the lock when the session of the reader expires.
func TestReaderOfAnExpiredSession(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		l := s.readWrite(nil)
		r := acquire(t, l.RLock)
		w := acquireLater(t.Context(), s.readWrite(nil).Lock)
		s.expire(l.read.c.Session().ID)
		got(t, w)
		<-r.Context().Done()
		endedBy(t, r, SessionExpired)
		if !strings.HasPrefix(r.Lost().Error(), "read lock ") {
			t.Errorf("lost by %v", r.Lost())
		}
	})
}

// TestReadersUnderFaults breaks connections again and again; no client hangs.
func TestReadersUnderFaults(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		w := acquire(t, s.readWrite(nil).Lock)
		l := s.readWrite(nil)
		r := acquireLater(t.Context(), l.RLock)
		for range 4 {
			s.cut(l.read.c)
			time.Sleep(time.Second)
		}
		s.cut(l.read.c)
		release(t, w)
		if h := <-r; h.err != nil {
			t.Error(h.err)
		}
	})
}
