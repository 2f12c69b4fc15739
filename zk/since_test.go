package zk

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/wire"
)

// newChanging returns an ensemble that answers a setWatches with the events of what has
// changed: /a/set, /a/made below /a, and /a/gone.
func newChanging(t *testing.T) (e *ensemble, asked *[]wire.SetWatchesRequest) {
	e, asked = newEnsemble(t), new([]wire.SetWatchesRequest)
	e.serve = func(p *peer, h wire.RequestHeader, body []byte) bool {
		if h.Op != wire.OpSetWatches {
			return false
		}
		var r wire.SetWatchesRequest
		if err := wire.Decode(body, &r); err != nil {
			t.Error(err)
		}
		e.mu.Lock()
		*asked = append(*asked, r)
		e.mu.Unlock()
		for _, path := range r.Data {
			switch path {
			case "/a/set":
				p.event(-1, wire.EventNodeDataChanged, path)
			case "/a/gone":
				p.event(-1, wire.EventNodeDeleted, path)
			}
		}
		if slices.Contains(r.Child, "/a/parent") {
			p.event(-1, wire.EventNodeChildrenChanged, "/a/parent")
		}
		return false
	}
	return e, asked
}

// TestSinceSaysWhatHasChanged: Since returns the changes, and the stream delivers only
// the other events.
func TestSinceSaysWhatHasChanged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, asked := newChanging(t)
		c := e.connect(Options{})
		s, err := c.AddWatch(t.Context(), "/a", wire.WatchPersistentRecursive)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Since(t.Context(), 77, []string{"/a", "/a/set", "/a/gone", "/a/same"}, []string{"/a/parent", "/a/set"})
		want := []Event{{wire.EventNodeDataChanged, "/a", -1}, {wire.EventNodeDataChanged, "/a/set", -1},
			{wire.EventNodeDeleted, "/a/gone", -1}, {wire.EventNodeChildrenChanged, "/a/parent", -1}}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("changed: %v, %v; want %v", got, err, want)
		}
		if r := (*asked)[0]; r.RelativeZxid != 77 || slices.Contains(r.Data, "/a") {
			t.Errorf("asked %+v: of zxid 77, and not about the persistent watch's own path", r)
		}
		e.peer().event(101, wire.EventNodeDataChanged, "/a/set")
		if ev, err := s.Next(t.Context()); err != nil || ev.Zxid != 101 {
			t.Errorf("next event %v, %v; want the one after Since", ev, err)
		}
	})
}

// TestSinceInBatches: no request is larger than setWatchesMax.
func TestSinceInBatches(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, asked := newChanging(t)
		c := e.connect(Options{})
		s, err := c.AddWatch(t.Context(), "/a", wire.WatchPersistentRecursive)
		if err != nil {
			t.Fatal(err)
		}
		paths := make([]string, 1000)
		for i := range paths {
			paths[i] = fmt.Sprintf("/a/%0300d", i)
		}
		if _, err := s.Since(t.Context(), 1, paths, nil); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, r := range *asked {
			n += len(r.Data)
		}
		if n != len(paths) || len(*asked) != 3 {
			t.Errorf("%d paths in %d requests, want %d in 3", n, len(*asked), len(paths))
		}
	})
}

// TestListenHearsOneShotWatches: a stream of Listen sets no watch of its own, and delivers the events of
// one-shot watches. It survives a reconnect to a server without persistent watches. The watches that
// Since left on the server are set again.
func TestListenHearsOneShotWatches(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, asked := newChanging(t)
		c := e.connect(Options{})
		s, err := c.Listen("/a")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Since(t.Context(), 1, []string{"/a/same"}, nil); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := c.GetW(t.Context(), "/a/b"); err != nil {
			t.Fatal(err)
		}
		e.cut()
		synctest.Wait()
		waitFor(t, c, Connected)
		time.Sleep(time.Second)
		e.mu.Lock()
		again := (*asked)[len(*asked)-1]
		e.mu.Unlock()
		if slices.Sort(again.Data); !slices.Equal(again.Data, []string{"/a/b", "/a/same"}) {
			t.Errorf("set again: %v", again.Data)
		}
		e.peer().event(101, wire.EventNodeDataChanged, "/a/b")
		e.peer().event(102, wire.EventNodeChildrenChanged, "/a")
		for _, w := range []Event{{wire.EventNone, "/a", 100}, {wire.EventNodeDataChanged, "/a/b", 101}, {wire.EventNodeChildrenChanged, "/a", 102}} {
			if got, err := s.Next(t.Context()); got != w || err != nil {
				t.Errorf("event is %v, %v; want %v", got, err, w)
			}
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if slices.ContainsFunc(e.log(), func(r string) bool { return r == "removeWatches /a" || r == "addWatch /a" }) {
			t.Errorf("requests are %q, want none about a watch that no server has", e.log())
		}
		if _, err := s.Next(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// TestListenOnANewLink: a stream that begins on a new link has missed nothing, and is not told
// that it may have. Once the link prepared its watches only after the client was called
// connected, so this failed about once in 30 runs.
func TestListenOnANewLink(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		for range 300 {
			c := e.connect(Options{})
			s, err := c.Listen("/a")
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			s.Close(t.Context())
			if got, err := s.Next(t.Context()); !errors.Is(err, ErrClosed) {
				t.Fatalf("event is %v, %v; want none", got, err)
			}
			c.Close(t.Context())
		}
	})
}

// TestStreamSaysWhereItEnded: everything up to the Zxid of an ended stream was delivered before its end.
func TestStreamSaysWhereItEnded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		c := e.connect(Options{StreamMax: 2})
		s, err := c.AddWatch(t.Context(), "/a", wire.WatchPersistentRecursive)
		if err != nil {
			t.Fatal(err)
		}
		for z := range wire.Zxid(3) {
			e.peer().event(101+z, wire.EventNodeDataChanged, "/a/b")
		}
		synctest.Wait()
		for err = nil; err == nil; {
			_, err = s.Next(t.Context())
		}
		var full *OverflowError
		if !errors.As(err, &full) || s.Zxid() != 100 {
			t.Errorf("ended by %v at %v, want an overflow at 0x64", err, s.Zxid())
		}
		if _, err := s.Since(t.Context(), 1, []string{"/a/b"}, nil); !errors.As(err, &full) {
			t.Errorf("Since of a stream that is over: %v", err)
		}
	})
}

// TestSinceKeepsOneWatch: Since keeps one watch for each path and stream, however often
// it is called, and none for a stream that is over.
func TestSinceKeepsOneWatch(t *testing.T) {
	var w watches
	w.init()
	var c Client
	streams := []*Stream{{c: &c, path: "/", local: true}, {c: &c, path: "/", local: true}, {c: &c, path: "/", local: true}}
	for _, s := range streams[:2] {
		w.addStream(s)
	}
	for range 3 {
		for _, s := range streams {
			w.assume(&assumption{&wire.SetWatchesRequest{Data: []string{"/a"}, Child: []string{"/a"}}, s})
		}
	}
	for i, want := range []int{2, 2, 0} {
		if n := len(w.assumed(streams[i])); n != want {
			t.Errorf("stream %d has %d watches, want %d", i, n, want)
		}
	}
	if d, k := len(w.once[dataWatch]["/a"]), len(w.once[childWatch]["/a"]); d != 2 || k != 2 {
		t.Errorf("%d and %d watches at one path", d, k)
	}
}
