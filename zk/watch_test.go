package zk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/wire"
)

// watching is an ensemble whose znodes below /none do not exist. It records the watches
// that are set again after a reconnect.
type watching struct {
	*ensemble
	set   []wire.SetWatches2Request
	flags []bool // the watch flags of the reads
}

func newWatching(t *testing.T) *watching {
	e := &watching{ensemble: newEnsemble(t)}
	e.serve = func(p *peer, h wire.RequestHeader, body []byte) bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		switch h.Op {
		case wire.OpGetData, wire.OpExists, wire.OpGetChildren2:
			e.flags = append(e.flags, body[len(body)-1] == 1)
		case wire.OpSetWatches2, wire.OpSetWatches:
			var r wire.SetWatches2Request
			if h.Op == wire.OpSetWatches {
				body = append(append([]byte(nil), body...), make([]byte, 8)...) // two empty lists
			}
			if err := wire.Decode(body, &r); err != nil {
				t.Errorf("%s: %v", h.Op, err)
			}
			e.set = append(e.set, r)
		}
		if strings.HasPrefix(pathOf(h.Op, body), "/none") && h.Op != wire.OpAddWatch {
			p.conn.Write(wire.AppendFrame(nil, &wire.ReplyHeader{Xid: h.Xid, Zxid: e.zxid, Err: wire.ErrNoNode}))
			return true
		}
		return false
	}
	return e
}

func (e *watching) setAgain() []wire.SetWatches2Request {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.set)
}

func (e *watching) watchFlags() []bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.flags)
}

// TestWatchKinds: each kind of watch ends with the events that its table lists, with no other event, and
// only at its own path.
func TestWatchKinds(t *testing.T) {
	types := []wire.EventType{wire.EventNodeCreated, wire.EventNodeDeleted, wire.EventNodeDataChanged, wire.EventNodeChildrenChanged}
	kinds := map[string]struct {
		set  func(*testing.T, *Client) *Watch
		path string
		ends []bool
	}{
		"data": {func(t *testing.T, c *Client) *Watch {
			_, _, w, err := c.GetW(t.Context(), "/a")
			return fine(t, w, err)
		}, "/a", []bool{true, true, true, false}},
		"exists": {func(t *testing.T, c *Client) *Watch {
			_, ok, w, err := c.ExistsW(t.Context(), "/a")
			if !ok {
				t.Error("the znode should exist")
			}
			return fine(t, w, err)
		}, "/a", []bool{true, true, true, false}},
		"missing": {func(t *testing.T, c *Client) *Watch {
			_, ok, w, err := c.ExistsW(t.Context(), "/none")
			if ok {
				t.Error("the znode should not exist")
			}
			return fine(t, w, err)
		}, "/none", []bool{true, true, true, false}},
		"children": {func(t *testing.T, c *Client) *Watch {
			_, _, w, err := c.ChildrenW(t.Context(), "/a")
			return fine(t, w, err)
		}, "/a", []bool{false, true, false, true}},
	}
	for name, k := range kinds {
		for i, typ := range types {
			t.Run(fmt.Sprint(name, "/", typ), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					e := newWatching(t)
					c := e.connect(Options{})
					w := k.set(t, c)
					e.peer().event(7, typ, k.path+"x")
					e.peer().event(8, typ, k.path)
					synctest.Wait()
					select {
					case <-w.Done():
						got, err := w.Wait(t.Context())
						if !k.ends[i] || got != (Event{typ, k.path, 8}) || err != nil {
							t.Errorf("got %v, %v", got, err)
						}
					default:
						if k.ends[i] {
							t.Error("the event did not end the watch")
						}
					}
				})
			})
		}
	}
}

func fine(t *testing.T, w *Watch, err error) *Watch {
	t.Helper()
	if err != nil || w == nil {
		t.Fatalf("watch is %v, error %v", w, err)
	}
	return w
}

// TestNoWatchWithoutTheZnode: a failed read sets no watch.
func TestNoWatchWithoutTheZnode(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newWatching(t)
		c := e.connect(Options{})
		if _, _, w, err := c.GetW(t.Context(), "/none"); w != nil || !errors.Is(err, ErrNoNode) {
			t.Errorf("watch is %v, error %v", w, err)
		}
		if _, _, w, err := c.ChildrenW(t.Context(), "/none"); w != nil || !errors.Is(err, ErrNoNode) {
			t.Errorf("watch is %v, error %v", w, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for kind, m := range c.watches.once {
			if len(m) > 0 {
				t.Errorf("kind %d has %v", kind, m)
			}
		}
	})
}

// TestWatchesShareAnEvent: one event answers every watch of the client at that path.
func TestWatchesShareAnEvent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newWatching(t)
		c := e.connect(Options{})
		_, _, a, _ := c.GetW(t.Context(), "/a")
		_, _, b, _ := c.GetW(t.Context(), "/a")
		s, _ := c.AddWatch(t.Context(), "/", wire.WatchPersistentRecursive)
		e.peer().event(7, wire.EventNodeDeleted, "/a")
		for _, w := range []*Watch{a, b} {
			if got, err := w.Wait(t.Context()); got.Type != wire.EventNodeDeleted || err != nil {
				t.Errorf("got %v, %v", got, err)
			}
		}
		if got, err := s.Next(t.Context()); got.Path != "/a" || err != nil {
			t.Errorf("stream got %v, %v", got, err)
		}
	})
}

// TestWatchesAreSetAgain: after a reconnect every watch is set again in the list for its kind, with the
// zxid of the last answer. Watches that have fired are not set again.
func TestWatchesAreSetAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newWatching(t)
		c := e.connect(Options{})
		c.GetW(t.Context(), "/data")
		c.ExistsW(t.Context(), "/data2")
		c.ExistsW(t.Context(), "/none")
		c.ChildrenW(t.Context(), "/children")
		_, _, fired, _ := c.GetW(t.Context(), "/fired")
		_, _, removed, _ := c.GetW(t.Context(), "/removed")
		c.AddWatch(t.Context(), "/p", wire.WatchPersistent)
		c.AddWatch(t.Context(), "/r", wire.WatchPersistentRecursive)
		e.peer().event(150, wire.EventNodeDataChanged, "/fired")
		fired.Wait(t.Context())
		if err := removed.Remove(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := removed.Wait(t.Context()); err != wire.ErrNoWatcher {
			t.Errorf("a removed watch ends with %v", err)
		}
		e.cut()
		synctest.Wait()
		waitFor(t, c, Connected)
		time.Sleep(time.Second)
		if len(e.setAgain()) != 1 {
			t.Fatalf("%d setWatches, want 1", len(e.setAgain()))
		}
		r := e.setAgain()[0]
		slices.Sort(r.Data)
		got := fmt.Sprint(r.RelativeZxid, r.Data, r.Exist, r.Child, r.Persistent, r.PersistentRecursive)
		if want := "0x64 [/data /data2] [/none] [/children] [/p] [/r]"; got != want {
			t.Errorf("set again: %s, want %s", got, want)
		}
		if got := e.connectRequest(1).LastZxidSeen; got != 150 {
			t.Errorf("the server may be at %s, want at least the event's zxid", got)
		}
	})
}

// TestSetWatchesInBatches: many watches are set again in batches of about 128 KiB, all with the same
// zxid.
func TestSetWatchesInBatches(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newWatching(t)
		c := e.connect(Options{})
		want := map[string]bool{}
		for i := range 700 {
			path := fmt.Sprintf("/%s%d", strings.Repeat("x", 900), i)
			want[path] = true
			if _, _, _, err := c.ChildrenW(t.Context(), path); err != nil {
				t.Fatal(err)
			}
		}
		e.cut()
		synctest.Wait()
		waitFor(t, c, Connected)
		time.Sleep(time.Second)
		if len(e.setAgain()) != 5 {
			t.Errorf("%d batches for 620 KiB of paths, want 5", len(e.setAgain()))
		}
		for _, r := range e.setAgain() {
			size := 0
			for _, path := range r.Child {
				delete(want, path)
				size += 4 + len(path)
			}
			if size > setWatchesMax || r.RelativeZxid != 100 {
				t.Errorf("a batch has %d bytes of paths and zxid %s", size, r.RelativeZxid)
			}
		}
		if len(want) > 0 {
			t.Errorf("%d watches were not set again", len(want))
		}
	})
}

// TestMissedEventComesAfterReconnect: an event that was missed may come before the answer to setWatches,
// and must end its watch.
func TestMissedEventComesAfterReconnect(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.serve = func(p *peer, h wire.RequestHeader, _ []byte) bool {
			if h.Op == wire.OpSetWatches {
				p.event(-1, wire.EventNodeDeleted, "/a")
			}
			return false
		}
		c := e.connect(Options{})
		_, _, w, _ := c.GetW(t.Context(), "/a")
		e.cut()
		if got, err := w.Wait(t.Context()); err != nil || got != (Event{wire.EventNodeDeleted, "/a", -1}) {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

// TestStreamOverflows: a stream that nobody reads ends with a typed error, after the events that it
// holds.
func TestStreamOverflows(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newWatching(t)
		c := e.connect(Options{StreamMax: 3})
		s, err := c.AddWatch(t.Context(), "/a", wire.WatchPersistent)
		if err != nil {
			t.Fatal(err)
		}
		other, _ := c.AddWatch(t.Context(), "/a", wire.WatchPersistent)
		for i := range 5 {
			e.peer().event(wire.Zxid(i), wire.EventNodeDataChanged, "/a")
			if got, err := other.Next(t.Context()); err != nil || got.Type != wire.EventNodeDataChanged {
				t.Errorf("the stream that is read: %v, %v", got, err)
			}
		}
		for range 3 {
			<-s.Ready()
			if _, err := s.Next(t.Context()); err != nil {
				t.Error(err)
			}
		}
		var overflow *OverflowError
		if _, err := s.Next(t.Context()); !errors.As(err, &overflow) || overflow.Max != 3 {
			t.Errorf("error is %v", err)
		}
	})
}

// TestStreamModes: a stream delivers only the events that its mode and path cover, although the connection
// also receives events for other watches.
func TestStreamModes(t *testing.T) {
	events := []wire.WatcherEvent{
		{Type: wire.EventNodeDataChanged, Path: "/a"},
		{Type: wire.EventNodeChildrenChanged, Path: "/a"},
		{Type: wire.EventNodeCreated, Path: "/a/b"},
		{Type: wire.EventNodeChildrenChanged, Path: "/a/b"},
		{Type: wire.EventNodeDeleted, Path: "/a/b/c"},
		{Type: wire.EventNodeDeleted, Path: "/ab"},
	}
	want := map[wire.AddWatchMode]string{
		wire.WatchPersistent:          "[NodeDataChanged /a NodeChildrenChanged /a]",
		wire.WatchPersistentRecursive: "[NodeDataChanged /a NodeCreated /a/b NodeDeleted /a/b/c]",
	}
	for mode, want := range want {
		bubble(t, func(t *testing.T) {
			e := newWatching(t)
			c := e.connect(Options{})
			s, _ := c.AddWatch(t.Context(), "/a", mode)
			for _, ev := range events {
				e.peer().event(1, ev.Type, ev.Path)
			}
			synctest.Wait()
			s.Close(t.Context())
			var got []string
			for {
				ev, err := s.Next(t.Context())
				if err != nil {
					if err != ErrClosed {
						t.Errorf("a closed stream ends with %v", err)
					}
					break
				}
				got = append(got, fmt.Sprint(ev.Type, " ", ev.Path))
			}
			if fmt.Sprint(got) != want {
				t.Errorf("mode %d heard %v, want %v", mode, got, want)
			}
		})
	}
}

// TestOneShotBesideAStream: servers before 3.9 keep only the last mode that was set on a path. So a read
// at the path of a stream does not set a watch there, and the watch of a stream is removed only when
// nothing else needs it.
func TestOneShotBesideAStream(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newWatching(t)
		c := e.connect(Options{})
		s, _ := c.AddWatch(t.Context(), "/a", wire.WatchPersistent)
		_, _, w, _ := c.GetW(t.Context(), "/a")
		c.GetW(t.Context(), "/other")
		if want := []bool{false, true}; !slices.Equal(e.watchFlags(), want) {
			t.Errorf("watch flags are %v, want %v", e.watchFlags(), want)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if slices.Contains(e.log(), "removeWatches /a") {
			t.Error("the server's watch was removed while another needs it")
		}
		e.peer().event(1, wire.EventNodeDeleted, "/a")
		if got, err := w.Wait(t.Context()); got.Type != wire.EventNodeDeleted || err != nil {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

func TestRemoveTellsTheServerOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newWatching(t)
		c := e.connect(Options{})
		_, _, a, _ := c.GetW(t.Context(), "/a")
		_, _, b, _ := c.GetW(t.Context(), "/a")
		_, _, d, _ := c.ChildrenW(t.Context(), "/a")
		s, _ := c.AddWatch(t.Context(), "/s", wire.WatchPersistentRecursive)
		for i, remove := range []func() error{
			func() error { return a.Remove(t.Context()) },
			func() error { return b.Remove(t.Context()) },
			func() error { return b.Remove(t.Context()) },
			func() error { return d.Remove(t.Context()) },
			func() error { return s.Close(t.Context()) },
			func() error { return s.Close(t.Context()) },
		} {
			if err := remove(); err != nil {
				t.Errorf("remove %d: %v", i, err)
			}
		}
		if got := count(e.log(), "removeWatches /a"); got != 2 {
			t.Errorf("%d removals at /a, want one for data and one for children", got)
		}
		if got := count(e.log(), "removeWatches /s"); got != 1 {
			t.Errorf("%d removals at /s, want 1", got)
		}
	})
}

// TestRemoveBesideAWatchUnderWay: a watch is not removed on the server while a request that relies on it
// is under way. Otherwise the answer to that request would have no watch.
func TestRemoveBesideAWatchUnderWay(t *testing.T) {
	type next func(context.Context) (Event, error)
	for name, again := range map[string]func(context.Context, *Client) (next, error){
		"watch": func(ctx context.Context, c *Client) (next, error) {
			_, _, w, err := c.GetW(ctx, "/a")
			return w.Wait, err
		},
		"stream": func(ctx context.Context, c *Client) (next, error) {
			s, err := c.AddWatch(ctx, "/a", wire.WatchPersistent)
			return s.Next, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				e := newEnsemble(t)
				asked, answer := 0, func() {} // the second request is answered late
				e.serve = func(p *peer, h wire.RequestHeader, body []byte) bool {
					if h.Op == wire.OpPing {
						return false
					}
					if asked++; asked != 2 {
						return false
					}
					answer = func() { p.standard(h, body) }
					return true
				}
				c := e.connect(Options{})
				_, _, w, err := c.GetW(t.Context(), "/a")
				fine(t, w, err)
				got := make(chan error, 1)
				go func() {
					wait, err := again(t.Context(), c)
					if err == nil {
						_, err = wait(t.Context())
					}
					got <- err
				}()
				synctest.Wait()
				if err := w.Remove(t.Context()); err != nil {
					t.Error(err)
				}
				answer()
				synctest.Wait()
				if got := e.log(); slices.Contains(got, "removeWatches /a") {
					t.Errorf("requests are %q: the watch on the server was removed", got)
				}
				e.peer().event(101, wire.EventNodeDataChanged, "/a")
				if err := <-got; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestOneShotBehindAStreamUnderWay: servers before 3.9 forget a stream when a read sets a watch at its
// path. So a read after an addWatch waits for the answer to the addWatch.
func TestOneShotBehindAStreamUnderWay(t *testing.T) {
	for _, code := range []wire.Code{wire.OK, wire.ErrThrottledOp} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				e := newWatching(t)
				serve, slow := e.serve, make(chan struct{})
				e.serve = func(p *peer, h wire.RequestHeader, body []byte) bool {
					if h.Op == wire.OpAddWatch {
						<-slow
						p.reply(h.Xid, code, nil)
						return true
					}
					return serve(p, h, body)
				}
				c := e.connect(Options{})
				go c.AddWatch(t.Context(), "/a", wire.WatchPersistent)
				synctest.Wait()
				go c.GetW(t.Context(), "/a")
				synctest.Wait()
				close(slow)
				synctest.Wait()
				if want := []bool{code != wire.OK}; !slices.Equal(e.watchFlags(), want) {
					t.Errorf("watch flags are %v, want %v", e.watchFlags(), want)
				}
			})
		})
	}
}

// TestOverflowTellsTheServer: a server is told to stop sending events for a path that no stream reads any
// more.
func TestOverflowTellsTheServer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newWatching(t)
		c := e.connect(Options{StreamMax: 1})
		s, _ := c.AddWatch(t.Context(), "/a", wire.WatchPersistent)
		for i := range 3 {
			e.peer().event(wire.Zxid(i), wire.EventNodeDataChanged, "/a")
		}
		synctest.Wait()
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if got := count(e.log(), "removeWatches /a"); got != 1 {
			t.Errorf("%d removals at /a, want 1", got)
		}
	})
}

// TestAbandonedAddWatchIsRemoved: a caller that stops waiting for a stream leaves no watch on the server
// that nobody could remove, unless another caller relies on it.
func TestAbandonedAddWatchIsRemoved(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		answer := make(chan struct{})
		e.serve = func(_ *peer, h wire.RequestHeader, _ []byte) bool {
			if h.Op == wire.OpAddWatch {
				<-answer
			}
			return false
		}
		c := e.connect(Options{})
		abandon := func(path string) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := c.AddWatch(ctx, path, wire.WatchPersistentRecursive); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error is %v", err)
			}
			answer <- struct{}{}
			synctest.Wait()
		}
		abandon("/a")
		if got := count(e.log(), "removeWatches /a"); got != 1 {
			t.Errorf("%d removals at /a, want 1", got)
		}
		go func() { answer <- struct{}{} }()
		if _, err := c.AddWatch(t.Context(), "/b", wire.WatchPersistentRecursive); err != nil {
			t.Fatal(err)
		}
		abandon("/b")
		if got := count(e.log(), "removeWatches /b"); got != 0 {
			t.Errorf("%d removals at /b, where a stream is open", got)
		}
	})
}

// TestNoWatchWithoutItsAnswer: an answer whose caller has gone registers no watch.
func TestNoWatchWithoutItsAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		c := e.connect(Options{ReplyMax: 100})
		var large *TooLargeError
		if _, _, w, err := c.GetW(t.Context(), "/"+strings.Repeat("x", 100)); w != nil || !errors.As(err, &large) {
			t.Errorf("watch is %v, error %v", w, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if got := c.watches.once[dataWatch]; len(got) > 0 {
			t.Errorf("watches are %v", got)
		}
	})
}

// TestEventBeforeTheAnswerIsNotTheWatchs: events and answers keep their order. So an event before the
// answer of the read that sets a watch does not belong to that watch.
func TestEventBeforeTheAnswerIsNotTheWatchs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.serve = func(p *peer, h wire.RequestHeader, _ []byte) bool {
			if h.Op == wire.OpGetData {
				p.event(99, wire.EventNodeDataChanged, "/a")
			}
			return false
		}
		c := e.connect(Options{})
		_, _, w, _ := c.GetW(t.Context(), "/a")
		synctest.Wait()
		select {
		case <-w.Done():
			t.Error("an older event ended the watch")
		default:
		}
		e.peer().event(101, wire.EventNodeDataChanged, "/a")
		if got, err := w.Wait(t.Context()); got.Zxid != 101 || err != nil {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

// TestRemoveWatchesAsksOnce: many watches are removed at once. A server that does not know the operation
// is asked only once.
func TestRemoveWatchesAsksOnce(t *testing.T) {
	for _, known := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			e := newWatching(t)
			c := e.connect(Options{})
			var all []*Watch
			for i := range 100 {
				_, _, w, err := c.ChildrenW(t.Context(), fmt.Sprint("/a", i))
				all = append(all, fine(t, w, err))
			}
			serve := e.serve
			e.serve = func(p *peer, h wire.RequestHeader, body []byte) bool {
				if h.Op != wire.OpRemoveWatches || known {
					return serve(p, h, body)
				}
				p.conn.Write(wire.AppendFrame(nil, &wire.ReplyHeader{Xid: h.Xid, Zxid: -1, Err: wire.ErrUnimplemented}))
				return true
			}
			if err := RemoveWatches(t.Context(), all...); err != nil {
				t.Error(err)
			}
			for _, w := range all {
				if _, err := w.Wait(t.Context()); err != wire.ErrNoWatcher {
					t.Errorf("a removed watch ends with %v", err)
				}
			}
			asked := 0
			for _, line := range e.log() {
				if strings.HasPrefix(line, "removeWatches") {
					asked++
				}
			}
			if want := map[bool]int{true: 100, false: 1}[known]; asked != want {
				t.Errorf("known %v: asked %d times, want %d", known, asked, want)
			}
		})
	}
}

// TestRemoveWatchesWithoutAnAnswer: many watches are removed from the client at once, even if the server
// cannot be told. Otherwise they would be set again on each connection.
func TestRemoveWatchesWithoutAnAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newWatching(t)
		c := e.connect(Options{})
		var all []*Watch
		for i := range 100 {
			_, _, w, err := c.ChildrenW(t.Context(), fmt.Sprint("/a", i))
			all = append(all, fine(t, w, err))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := RemoveWatches(ctx, all...); !errors.Is(err, context.Canceled) {
			t.Errorf("error is %v", err)
		}
		for i, w := range all {
			if _, err := w.Wait(ctx); err != wire.ErrNoWatcher {
				t.Fatalf("watch %d ends with %v", i, err)
			}
		}
	})
}

// TestListenLeavesNoWatch: a Listen that overflows, or is closed during a request, leaves no watch that
// would be set again for ever.
func TestListenLeavesNoWatch(t *testing.T) {
	for _, overflows := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			e := newEnsemble(t)
			answer := make(chan struct{}, 1)
			e.serve = func(_ *peer, h wire.RequestHeader, _ []byte) bool {
				if h.Op == wire.OpSetWatches {
					<-answer
				}
				return false
			}
			c := e.connect(Options{StreamMax: 1})
			s, err := c.Listen("/a")
			if err != nil {
				t.Fatal(err)
			}
			if overflows {
				answer <- struct{}{}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := s.Since(ctx, 1, []string{"/a/b"}, []string{"/a"}); overflows != (err == nil) {
				t.Errorf("overflows %v: Since says %v", overflows, err)
			}
			if overflows {
				e.peer().event(101, wire.EventNodeDataChanged, "/a/c")
				e.peer().event(102, wire.EventNodeDataChanged, "/a/c")
			} else {
				s.Close(t.Context())
				answer <- struct{}{}
			}
			synctest.Wait()
			c.mu.Lock()
			defer c.mu.Unlock()
			for kind, paths := range c.watches.once {
				if len(paths) > 0 {
					t.Errorf("overflows %v: %d: %v", overflows, kind, paths)
				}
			}
		})
	}
}
