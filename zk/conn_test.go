package zk

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/wire"
)

// These tests show what the faults of a connection do to a client, and what its calls then return.

// TestLostReplyLeavesTheOutcomeUnknown: a write whose answer is lost returns an UnknownOutcomeError. The
// session stays.
func TestLostReplyLeavesTheOutcomeUnknown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.serve = func(p *peer, h wire.RequestHeader, _ []byte) bool {
			if h.Op == wire.OpSetData && p.n == 0 {
				p.conn.Close()
				return true
			}
			return false
		}
		c := e.connect(Options{})
		_, err := c.Set(t.Context(), "/a", nil, 3)
		var lost *UnknownOutcomeError
		if !errors.As(err, &lost) || lost.Session != 1 || !errors.Is(err, ErrConnectionLoss) || !errors.Is(err, io.EOF) {
			t.Errorf("error is %v, want an UnknownOutcomeError of session 1", err)
		}
		if _, err = c.Set(t.Context(), "/a", nil, 3); err != nil {
			t.Errorf("next write: %v", err)
		}
		if got := count(e.log(), "setData /a"); got != 2 {
			t.Errorf("the server saw %d writes, want 2: a write is never sent twice", got)
		}
		if got := c.Session().ID; got != 1 {
			t.Errorf("session is %s, want the same", got)
		}
	})
}

// TestReadsAreSentAgain: reads and syncs are sent again on the next connection, in their order, but not
// for ever.
func TestReadsAreSentAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		var cuts atomic.Int64
		cuts.Store(1)
		e.serve = func(p *peer, h wire.RequestHeader, _ []byte) bool {
			if h.Op == wire.OpGetData && int64(p.n) < cuts.Load() {
				p.conn.Close()
				return true
			}
			return false
		}
		c := e.connect(Options{})
		if data, _, err := c.Get(t.Context(), "/a"); err != nil || string(data) != "/a" {
			t.Errorf("got %q, %v, want the second connection's answer", data, err)
		}
		cuts.Store(1 << 30)
		_, _, err := c.Get(t.Context(), "/b")
		if !errors.Is(err, ErrConnectionLoss) || isLost(err) {
			t.Errorf("error is %v, want a loss that leaves nothing unknown", err)
		}
		if got := count(e.log(), "getData /b"); got != readTriesMax {
			t.Errorf("the read was sent %d times, want %d", got, readTriesMax)
		}
	})
}

// TestUnsentWriteIsNoLostWrite: a write that was never sent had no effect, and its error says so.
func TestUnsentWriteIsNoLostWrite(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.away.Store(true)
		c := e.open(Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, _, err := c.Create(ctx, "/a", nil)
		if !errors.Is(err, context.DeadlineExceeded) || isLost(err) {
			t.Errorf("error is %v, want the deadline's alone", err)
		}
		e.away.Store(false)
		waitFor(t, c, Connected)
		synctest.Wait()
		if len(e.log()) != 0 {
			t.Errorf("the server saw %q, want nothing", e.log())
		}
	})
}

// TestQueuedCallsKeepTheirOrder: a write that waits for a connection is sent on it, in its order among
// the other calls.
func TestQueuedCallsKeepTheirOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.away.Store(true)
		c := e.open(Options{})
		var want []string
		for i := range 5 {
			path := fmt.Sprint("/n", i)
			want = append(want, "setData "+path)
			go c.Set(t.Context(), path, nil, 0)
			synctest.Wait()
		}
		e.away.Store(false)
		waitFor(t, c, Connected)
		synctest.Wait()
		if got := e.log(); !slices.Equal(got, want) {
			t.Errorf("the server saw %q, want %q", got, want)
		}
	})
}

// TestBadAnswersCostTheConnection: an answer that cannot be valid ends the connection, but neither the
// session nor other calls.
func TestBadAnswersCostTheConnection(t *testing.T) {
	frame := func(b ...byte) []byte { return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...) }
	cases := map[string]func(p *peer, xid int32) []byte{
		"cut in the length":     func(*peer, int32) []byte { return []byte{0, 0} },
		"cut in the header":     func(*peer, int32) []byte { return []byte{0, 0, 0, 100, 0, 0, 0} },
		"cut in the body":       func(_ *peer, xid int32) []byte { return cutBody(xid) },
		"negative length":       func(*peer, int32) []byte { return []byte{0xff, 0xff, 0xff, 0xff} },
		"huge length":           func(*peer, int32) []byte { return []byte{0x7f, 0xff, 0xff, 0xff} },
		"shorter than a header": func(*peer, int32) []byte { return frame(1, 2, 3, 4) },
		"empty":                 func(*peer, int32) []byte { return frame() },
		"xid of no call": func(_ *peer, xid int32) []byte {
			return wire.AppendFrame(nil, &wire.ReplyHeader{Xid: xid + 1})
		},
		"old xid": func(_ *peer, xid int32) []byte {
			return wire.AppendFrame(nil, &wire.ReplyHeader{Xid: xid - 1})
		},
		"acknowledgement of nothing": func(*peer, int32) []byte {
			return wire.AppendFrame(nil, &wire.ReplyHeader{Xid: wire.XidAuth})
		},
		"event without a record": func(*peer, int32) []byte {
			return wire.AppendFrame(nil, &wire.ReplyHeader{Xid: wire.XidEvent})
		},
		"HTTP": func(*peer, int32) []byte { return []byte("HTTP/1.1 400 Bad Request\r\n\r\n") },
	}
	for name, bytes := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				e := newEnsemble(t)
				e.serve = func(p *peer, h wire.RequestHeader, _ []byte) bool {
					if h.Op != wire.OpSetData || p.n > 0 {
						return false
					}
					p.conn.Write(bytes(p, h.Xid))
					if name[:3] == "cut" {
						p.conn.Close()
					}
					return true
				}
				c := e.connect(Options{})
				if _, err := c.Set(t.Context(), "/a", nil, 0); !isLost(err) {
					t.Errorf("error is %v, want a lost write", err)
				}
				if _, _, err := c.Get(t.Context(), "/b"); err != nil {
					t.Errorf("next call: %v", err)
				}
				if e.connections() != 2 || c.Session().ID != 1 {
					t.Errorf("%d connections, session %s; want the same session on a second one", e.connections(), c.Session().ID)
				}
			})
		})
	}
}

func cutBody(xid int32) []byte {
	b := wire.AppendFrame(nil, &wire.ReplyHeader{Xid: xid}, &wire.StatResponse{})
	return b[:len(b)-3]
}

// TestUndecodableBody: a record that cannot be decoded fails only its own call.
func TestUndecodableBody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.serve = func(p *peer, h wire.RequestHeader, _ []byte) bool {
			if h.Op == wire.OpPing {
				return false
			}
			p.reply(h.Xid, 0, nil) // the record is missing
			return true
		}
		c := e.connect(Options{})
		if _, _, err := c.Get(t.Context(), "/a"); !errors.Is(err, wire.ErrShort) || isLost(err) {
			t.Errorf("read: %v, want ErrShort", err)
		}
		if _, err := c.Set(t.Context(), "/a", nil, 0); !errors.Is(err, wire.ErrShort) || !isLost(err) {
			t.Errorf("write: %v, want an unknown outcome: the server said that it succeeded", err)
		}
		if e.connections() != 1 {
			t.Errorf("%d connections", e.connections())
		}
	})
}

// TestTrailingBytesAreIgnored: bytes after a record are ignored.
func TestTrailingBytesAreIgnored(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.serve = func(p *peer, h wire.RequestHeader, _ []byte) bool {
			if h.Op == wire.OpGetData {
				p.reply(h.Xid, 0, &pair{&wire.DataResponse{Data: []byte("x")}, &wire.CountResponse{Count: 7}})
			}
			return h.Op == wire.OpGetData
		}
		c := e.connect(Options{})
		if data, _, err := c.Get(t.Context(), "/a"); string(data) != "x" || err != nil {
			t.Errorf("got %q, %v", data, err)
		}
	})
}

type pair struct{ a, b wire.Record }

func (p *pair) Code(c *wire.Coder) {
	p.a.Code(c)
	p.b.Code(c)
}

// TestSilentServerIsLeft: the client leaves a silent server after two thirds of the timeout, and sends
// its pings in time.
func TestSilentServerIsLeft(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		var pings []time.Duration
		began := time.Now()
		e.serve = func(p *peer, h wire.RequestHeader, _ []byte) bool {
			if h.Op == wire.OpPing && p.n == 0 {
				pings = append(pings, time.Since(began))
			}
			return p.n == 0 && time.Since(began) > 30*time.Second
		}
		c := e.connect(Options{SessionTimeout: 9 * time.Second})
		s := c.State()
		s, err := s.Next(t.Context())
		if err != nil || s.State != Connecting || s.Err != errSilent {
			t.Fatalf("status is %+v, %v", s, err)
		}
		if at := time.Since(began); at < 35*time.Second || at > 37*time.Second {
			t.Errorf("left after %v, want 6 s after the last answer at 30 s", at)
		}
		synctest.Wait()
		for i, at := range pings {
			if want := time.Duration(i) * 3 * time.Second; at < want || at > want+100*time.Millisecond {
				t.Errorf("ping %d came at %v, want every third of the timeout", i, at)
			}
		}
		waitFor(t, c, Connected)
	})
}

// TestServerThatStopsReading: a server that reads nothing blocks the writer no longer than the timeout.
// Calls that wait can be cancelled at any time.
func TestServerThatStopsReading(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		stuck := make(chan struct{})
		e.serve = func(p *peer, h wire.RequestHeader, _ []byte) bool {
			if p.n == 0 && h.Op == wire.OpSetData {
				<-stuck
			}
			return false
		}
		c := e.connect(Options{SessionTimeout: 9 * time.Second})
		go c.Set(t.Context(), "/a", nil, 0)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, err := c.Set(ctx, "/b", make([]byte, 1<<19), 0); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("error is %v after %v, want the deadline's after 1 s", err, time.Since(began))
		}
		s, err := c.State().Next(t.Context())
		if err != nil || s.State != Connecting || time.Since(began) > 10*time.Second {
			t.Errorf("status is %+v after %v", s, time.Since(began))
		}
		close(stuck)
		waitFor(t, c, Connected)
	})
}

// TestGarbageWhileTheServerReadsNothing: a reader that ends the connection does not wait for a writer
// that the server blocks.
func TestGarbageWhileTheServerReadsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		stuck := make(chan struct{})
		e.serve = func(p *peer, h wire.RequestHeader, _ []byte) bool {
			if p.n == 0 && h.Op == wire.OpSetData {
				time.Sleep(time.Second)
				p.conn.Write([]byte{0xff, 0xff, 0xff, 0xff})
				<-stuck
			}
			return false
		}
		c := e.connect(Options{SessionTimeout: 9 * time.Second})
		began := time.Now()
		go c.Set(t.Context(), "/a", nil, 0)
		synctest.Wait()
		go c.Set(t.Context(), "/b", make([]byte, 1<<19), 0)
		if s, err := c.State().Next(t.Context()); err != nil || s.State != Connecting || time.Since(began) != time.Second {
			t.Errorf("status is %+v after %v, want connecting at once", s, time.Since(began))
		}
		close(stuck)
		waitFor(t, c, Connected)
	})
}

// TestSlowAnswerIsNoSilence: a server that sends a long answer over a slow connection is not silent,
// however long the answer takes.
func TestSlowAnswerIsNoSilence(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		var slow atomic.Bool
		e.serve = func(p *peer, h wire.RequestHeader, _ []byte) bool {
			if h.Op != wire.OpGetData {
				return slow.Load()
			}
			slow.Store(true)
			frame := wire.AppendFrame(nil, &wire.ReplyHeader{Xid: h.Xid}, &wire.DataResponse{Data: make([]byte, 10_000)})
			go func() {
				for part := range slices.Chunk(frame, 1000) {
					time.Sleep(3 * time.Second)
					p.conn.Write(part)
				}
				slow.Store(false)
			}()
			return true
		}
		c := e.connect(Options{SessionTimeout: 9 * time.Second})
		if data, _, err := c.Get(t.Context(), "/a"); len(data) != 10_000 || err != nil || e.connections() != 1 {
			t.Errorf("got %d bytes, %v on %d connections", len(data), err, e.connections())
		}
	})
}

// TestPipelining: many goroutines share the connection, and each one gets its own answers.
func TestPipelining(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		c := e.connect(Options{})
		errs := make(chan error)
		for g := range 50 {
			go func() {
				for i := range 40 {
					path := fmt.Sprintf("/g%d/%d", g, i)
					if data, _, err := c.Get(t.Context(), path); err != nil || string(data) != path {
						errs <- fmt.Errorf("%s: got %q, %v", path, data, err)
						return
					}
				}
				errs <- nil
			}()
		}
		for range 50 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	})
}

// TestAbandonedCallKeepsItsPlace: a call that is cancelled does not disturb the others: its answer is
// received in its place and dropped.
func TestAbandonedCallKeepsItsPlace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		release := make(chan struct{})
		e.serve = func(_ *peer, h wire.RequestHeader, body []byte) bool {
			if h.Op == wire.OpGetData && pathOf(h.Op, body) == "/slow" {
				<-release
			}
			return false
		}
		c := e.connect(Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, _, err := c.GetW(ctx, "/slow"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		close(release)
		if data, _, err := c.Get(t.Context(), "/next"); string(data) != "/next" || err != nil {
			t.Errorf("got %q, %v", data, err)
		}
		synctest.Wait()
		if got := count(e.log(), "removeWatches /slow"); got != 1 {
			t.Errorf("the watch of the abandoned read was removed %d times, want once", got)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.waiting != 0 || len(c.watches.once[dataWatch]) != 0 {
			t.Errorf("%d calls, %d watches are left over", c.waiting, len(c.watches.once[dataWatch]))
		}
	})
}

func TestQueueIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.away.Store(true)
		c := e.open(Options{QueueMax: 3})
		for range 3 {
			go c.Sync(t.Context(), "/")
		}
		synctest.Wait()
		if err := c.Sync(t.Context(), "/"); !errors.Is(err, ErrQueueFull) {
			t.Errorf("error is %v, want ErrQueueFull", err)
		}
	})
}

// TestServerDoesNotKnowTheOutcome: if an answer says that the outcome is unknown, the call does not count
// as failed (ClickHouse Keeper).
func TestServerDoesNotKnowTheOutcome(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.serve = func(p *peer, h wire.RequestHeader, _ []byte) bool {
			if h.Op == wire.OpPing {
				return false
			}
			p.reply(h.Xid, wire.ErrOperationTimeout, nil)
			return true
		}
		c := e.connect(Options{})
		if err := c.Delete(t.Context(), "/a", 0); !isLost(err) || !errors.Is(err, wire.ErrOperationTimeout) {
			t.Errorf("write: %v, want an unknown outcome", err)
		}
		if _, _, err := c.Get(t.Context(), "/a"); isLost(err) || !errors.Is(err, wire.ErrOperationTimeout) {
			t.Errorf("read: %v, want the code", err)
		}
	})
}

func TestUnknownCodeIsAnError(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.serve = func(p *peer, h wire.RequestHeader, _ []byte) bool {
			if h.Op == wire.OpDelete {
				p.reply(h.Xid, -999, nil)
			}
			return h.Op == wire.OpDelete
		}
		c := e.connect(Options{})
		if err := c.Delete(t.Context(), "/a", 0); !errors.Is(err, wire.Code(-999)) {
			t.Errorf("error is %v", err)
		}
	})
}

// TestOrderOnReconnect: a reconnect sends first the credentials, then the watches, then the calls.
func TestOrderOnReconnect(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		c := e.connect(Options{Auth: []Auth{{"digest", []byte("a:b")}}})
		if err := c.AddAuth(t.Context(), Auth{"digest", []byte("c:d")}); err != nil {
			t.Fatal(err)
		}
		c.GetW(t.Context(), "/a")
		before := len(e.log())
		e.cut()
		synctest.Wait()
		go c.Set(t.Context(), "/b", nil, 0)
		waitFor(t, c, Connected)
		time.Sleep(time.Second)
		want := []string{"auth ", "auth ", "setWatches ", "setData /b"}
		if got := e.log()[before:]; !slices.Equal(got, want) {
			t.Errorf("the server saw %q, want %q", got, want)
		}
	})
}

func count(list []string, s string) (n int) {
	for _, x := range list {
		if x == s {
			n++
		}
	}
	return n
}
