package relay_test

import (
	"fmt"
	"slices"
	"testing"

	"bellwether/internal/shadow"
	"bellwether/internal/shadow/relay"
	"bellwether/wire"
)

func changed(t wire.EventType, path string, z wire.Zxid) []shadow.Observed {
	return []shadow.Observed{{WatcherEvent: wire.WatcherEvent{Type: t, State: wire.StateSyncConnected, Path: path}, Zxid: z}}
}

// watched answers like holds with zxid 9, and from the setData on with zxid 10. The observer notices that at its third getData.
func watched(f *fake) handler {
	return func(op wire.OpCode, body []byte) (wire.ReplyHeader, wire.Record) {
		z := wire.Zxid(9)
		if seen := f.requests(); slices.Contains(seen, wire.OpSetData) || count(seen, wire.OpGetData) > 2 {
			z = 10
		}
		h, r := holds(z, "data")(op, body)
		if s, ok := r.(*wire.StatResponse); ok {
			s.Stat.Mzxid = 9
		}
		return h, r
	}
}

func count(ops []wire.OpCode, op wire.OpCode) (n int) {
	for _, o := range ops {
		if o == op {
			n++
		}
	}
	return n
}

// TestEventsAreCompared has a client that watches a znode and changes it. The observer sends the same event, or a wrong one.
func TestEventsAreCompared(t *testing.T) {
	right := changed(wire.EventNodeDataChanged, "/n", 10)
	for name, c := range map[string]struct {
		old, observer []shadow.Observed
		want          []string
	}{
		"right":   {right, right, nil},
		"missing": {right, nil, []string{"/n NodeDataChanged none"}},
		"extra":   {nil, right, []string{"/n none NodeDataChanged"}},
		"type":    {right, changed(wire.EventNodeDeleted, "/n", 10), []string{"/n NodeDataChanged none", "/n none NodeDeleted"}},
		"path":    {right, changed(wire.EventNodeDataChanged, "/m", 10), []string{"/n NodeDataChanged none", "/m none NodeDataChanged"}},
	} {
		t.Run(name, func(t *testing.T) {
			old, observer := &fake{Listener: listen(t)}, &fake{Listener: listen(t)}
			old.answer, observer.answer = watched(old), watched(observer)
			old.before = func(seen []wire.OpCode) []shadow.Observed {
				if seen[len(seen)-1] != wire.OpSetData {
					return nil
				}
				return c.old
			}
			observer.before = func(seen []wire.OpCode) []shadow.Observed {
				if last := seen[len(seen)-1]; last != wire.OpGetData || count(seen, last) != 3 {
					return nil
				}
				return c.observer
			}
			r := run(t, start(old).Addr().String(), start(observer).Addr().String())
			client := dial(t, r.addr)
			client.call(wire.OpGetData, &wire.PathWatchRequest{Path: "/n", Watch: true})
			client.call(wire.OpSetData, &wire.SetDataRequest{Path: "/n", Data: []byte("data"), Version: -1})
			r.await(t, "comparison", replies(wire.OpSetData, 1))
			report := r.end()
			var got []string
			for _, d := range report.Differences {
				if d.Op == "notification" {
					got = append(got, fmt.Sprint(d.Path, " ", d.Old, " ", d.Difference.Observer))
				}
			}
			if !slices.Equal(got, c.want) || !observer.watch {
				t.Errorf("%q, want %q; %+v", got, c.want, report.Differences)
			}
			if events := report.Operations["notification"]; len(c.want) == 0 && (events == nil || events.Equal != 1) {
				t.Errorf("%+v", events)
			}
		})
	}
}

// TestWrongCodesOfWatches: the observer refuses to set a persistent watch.
func TestWrongCodesOfWatches(t *testing.T) {
	refuses := func(op wire.OpCode, body []byte) (wire.ReplyHeader, wire.Record) {
		if op == wire.OpAddWatch {
			return wire.ReplyHeader{Zxid: 9, Err: wire.ErrUnimplemented}, nil
		}
		return holds(9, "data")(op, body)
	}
	r := run(t, serve(t, holds(9, "data")).Addr().String(), serve(t, refuses).Addr().String())
	c := dial(t, r.addr)
	c.call(wire.OpAddWatch, &wire.AddWatchRequest{Path: "/n"})
	c.call(wire.OpSetWatches2, &wire.SetWatches2Request{Persistent: []string{"/n"}})
	r.await(t, "comparison", replies(wire.OpSetWatches2, 1))
	report := r.end()
	if len(report.Differences) != 1 || report.Differences[0].Op != "addWatch" || report.Operations["setWatches2"].Equal != 1 {
		t.Errorf("%+v", report)
	}
}

// TestObserverWithoutWatches: the events of a client are counted when there is no observer, and when its session ends.
func TestObserverWithoutWatches(t *testing.T) {
	old, gone := &fake{Listener: listen(t)}, listen(t)
	gone.Close()
	old.answer = holds(9, "data")
	old.before = func([]wire.OpCode) []shadow.Observed { return changed(wire.EventNodeCreated, "/n", -1) }
	r := run(t, start(old).Addr().String(), gone.Addr().String())
	c := dial(t, r.addr)
	c.call(wire.OpExists, &wire.PathWatchRequest{Path: "/n", Watch: true})
	r.await(t, "event", replies(0, 1))
	c.Close()
	if tally := r.end().Operations["notification"]; tally.NotCompared[shadow.UnsureNoObserver] != 1 {
		t.Errorf("%+v", tally)
	}
}

// TestSuperDecides has a client whose znode the observer does not show to it, after a login by SASL. The super user reads it.
func TestSuperDecides(t *testing.T) {
	for data, differing := range map[string]int64{"data": 0, "datb": 1} {
		observer := &fake{Listener: listen(t)}
		observer.answer = func(op wire.OpCode, body []byte) (wire.ReplyHeader, wire.Record) {
			if op == wire.OpGetData && observer.supers() == 0 {
				return wire.ReplyHeader{Zxid: 9, Err: wire.ErrNoAuth}, nil
			}
			return holds(9, data)(op, body)
		}
		super := &shadow.Credential{Scheme: "digest", Auth: []byte("super:secret")}
		r := runWith(t, relay.Options{Old: []string{serve(t, holds(9, "data")).Addr().String()}, Observer: start(observer).Addr().String(), Super: super})
		c := dial(t, r.addr)
		c.call(wire.OpSASL, &wire.SASLRequest{Token: []byte("x")})
		c.get()
		r.await(t, "comparison", replies(wire.OpGetData, 1))
		if tally := r.end().Operations["getData"]; tally.Differing != differing || tally.Equal != 1-differing {
			t.Errorf("%s: %+v", data, tally)
		}
	}
}

func (f *fake) supers() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.auths
}

// TestDroppedRepliesLoseTheWatches: when replies to a client that watches were dropped, its later events are not compared.
func TestDroppedRepliesLoseTheWatches(t *testing.T) {
	const many = 6000
	free := make(chan struct{})
	old := &fake{Listener: listen(t), answer: holds(9, "data")}
	old.before = func(seen []wire.OpCode) []shadow.Observed {
		if seen[len(seen)-1] != wire.OpGetACL {
			return nil
		}
		return changed(wire.EventNodeDataChanged, "/n", -1)
	}
	slow := serve(t, func(op wire.OpCode, body []byte) (wire.ReplyHeader, wire.Record) {
		<-free
		return holds(9, "data")(op, body)
	})
	r := run(t, start(old).Addr().String(), slow.Addr().String())
	c := dial(t, r.addr)
	c.call(wire.OpGetData, &wire.PathWatchRequest{Path: "/n", Watch: true})
	go func() {
		for xid := range int32(many) {
			c.Write(wire.AppendFrame(nil, &wire.RequestHeader{Xid: xid, Op: wire.OpGetData}, &wire.PathWatchRequest{Path: "/n"}))
		}
	}()
	for range many {
		c.receive()
	}
	r.await(t, "dropped replies", func(r *shadow.Report) bool {
		t := r.Operations["getData"]
		return t != nil && t.NotCompared[shadow.UnsureDropped] > 0
	})
	close(free)
	r.await(t, "comparisons", replies(wire.OpGetData, many+1))
	c.call(wire.OpGetACL, &wire.PathRequest{Path: "/n"})
	r.await(t, "event", replies(0, 1))
	if tally := r.end().Operations["notification"]; tally.NotCompared[shadow.UnsureLost] != 1 {
		t.Errorf("%+v", tally)
	}
}
