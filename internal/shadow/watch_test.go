package shadow_test

import (
	"slices"
	"testing"

	"bellwether/internal/shadow"
	"bellwether/wire"
)

func event(t wire.EventType, path string) wire.WatcherEvent {
	return wire.WatcherEvent{Type: t, State: wire.StateSyncConnected, Path: path}
}

func observed(t wire.EventType, path string, z wire.Zxid) shadow.Observed {
	return shadow.Observed{WatcherEvent: event(t, path), Zxid: z}
}

// window returns the pair of a reply at zxid 60 that follows one at zxid 50, with events before it.
func window(events ...wire.WatcherEvent) *shadow.Pair {
	return &shadow.Pair{Op: wire.OpPing, Header: wire.ReplyHeader{Zxid: 60}, After: 50, Events: events}
}

// outcomes returns the outcome of each result: equal, a reason, or the two texts of a difference.
func outcomes(results []shadow.EventResult) (all []string) {
	for _, r := range results {
		switch {
		case r.Difference != nil:
			all = append(all, r.Difference.Field+" "+r.Path+": "+r.Difference.Old+"/"+r.Difference.Observer)
		case r.Why != "":
			all = append(all, string(r.Why))
		default:
			all = append(all, "equal")
		}
	}
	return all
}

// watchCase is a watch, and an event that it causes.
type watchCase struct {
	op      wire.OpCode
	request wire.Record
	event   wire.EventType
	path    string // of the event
}

func watchCases() []watchCase {
	list := []string{"/n"}
	return []watchCase{
		{wire.OpExists, read("/n"), wire.EventNodeCreated, "/n"},
		{wire.OpGetData, read("/n"), wire.EventNodeDataChanged, "/n"},
		{wire.OpGetData, read("/n"), wire.EventNodeDeleted, "/n"},
		{wire.OpGetChildren, read("/n"), wire.EventNodeChildrenChanged, "/n"},
		{wire.OpGetChildren2, read("/n"), wire.EventNodeDeleted, "/n"},
		{wire.OpAddWatch, &wire.AddWatchRequest{Path: "/n"}, wire.EventNodeChildrenChanged, "/n"},
		{wire.OpAddWatch, &wire.AddWatchRequest{Path: "/", Mode: wire.WatchPersistentRecursive}, wire.EventNodeCreated, "/n/a/b"},
		{wire.OpSetWatches, &wire.SetWatchesRequest{Data: list}, wire.EventNodeDataChanged, "/n"},
		{wire.OpSetWatches2, &wire.SetWatches2Request{SetWatchesRequest: wire.SetWatchesRequest{Exist: list, Child: list}}, wire.EventNodeCreated, "/n"},
		{wire.OpSetWatches2, &wire.SetWatches2Request{PersistentRecursive: list}, wire.EventNodeDeleted, "/n/a"},
	}
}

// TestWrongEventsAreFound sets each kind of watch at both servers at the same zxid. The observer then sends each kind of wrong
// events.
func TestWrongEventsAreFound(t *testing.T) {
	other := func(typ wire.EventType) wire.EventType { return typ%4 + 1 }
	for _, c := range watchCases() {
		one := "event " + c.path + ": "
		right := observed(c.event, c.path, 55)
		second := event(wire.EventNodeDataChanged, "/second")
		for name, s := range map[string]struct {
			old      []wire.WatcherEvent
			observer []shadow.Observed
			want     []string
		}{
			"right":             {[]wire.WatcherEvent{event(c.event, c.path)}, []shadow.Observed{right}, []string{"equal"}},
			"none":              {nil, nil, nil},
			"missing":           {[]wire.WatcherEvent{event(c.event, c.path)}, nil, []string{one + c.event.String() + "/none"}},
			"only the observer": {nil, []shadow.Observed{right}, []string{one + "none/" + c.event.String()}},
			"twice":             {[]wire.WatcherEvent{event(c.event, c.path)}, []shadow.Observed{right, right}, []string{"equal", one + "none/" + c.event.String()}},
			"later than the reply": {[]wire.WatcherEvent{event(c.event, c.path)}, []shadow.Observed{observed(c.event, c.path, 61)},
				[]string{one + c.event.String() + "/none"}},
			"another type": {[]wire.WatcherEvent{event(c.event, c.path)}, []shadow.Observed{observed(other(c.event), c.path, 55)},
				[]string{one + c.event.String() + "/none", one + "none/" + other(c.event).String()}},
			"another path": {[]wire.WatcherEvent{event(c.event, c.path)}, []shadow.Observed{observed(c.event, "/x", 55)},
				[]string{one + c.event.String() + "/none", "event /x: none/" + c.event.String()}},
			"another order": {[]wire.WatcherEvent{event(c.event, c.path), second}, []shadow.Observed{{WatcherEvent: second, Zxid: 54}, right},
				[]string{"equal", "order of events /second: NodeDataChanged/earlier"}},
		} {
			w := shadow.NewWatches()
			w.Follow(c.op, c.request, 50, true)
			if got := outcomes(w.Compare(window(s.old...), s.observer)); !slices.Equal(got, s.want) {
				t.Errorf("%v, %s: %q, want %q", c.op, name, got, s.want)
			}
		}
	}
}

// TestEventOfTheWatchBefore: an event of the watch that the observer had before it set this one does not settle the doubt about
// this one. The old server's watch has fired at 55; the observer has set its second one after that.
func TestEventOfTheWatchBefore(t *testing.T) {
	w := shadow.NewWatches()
	w.Follow(wire.OpExists, read("/n"), 52, false) // set at the old server at 50, fired at 51, and set again at 52
	w.Follow(wire.OpExists, read("/n"), 58, false)
	w.Compare(window(event(wire.EventNodeDeleted, "/n")), []shadow.Observed{observed(wire.EventNodeDeleted, "/n", 55)})
	if w.Certain("/n", 60) {
		t.Error("only the observer has the watch, and this is not known")
	}
	w.Compare(&shadow.Pair{Header: wire.ReplyHeader{Zxid: 70}, After: 60}, []shadow.Observed{observed(wire.EventNodeCreated, "/n", 65)})
	if !w.Certain("/n", 70) {
		t.Error("the observer's watch has fired, and the doubt remains")
	}
}

// TestEventsAhead: an event of a later transaction waits for its reply.
func TestEventsAhead(t *testing.T) {
	w := shadow.NewWatches()
	e := event(wire.EventNodeCreated, "/n")
	if got := w.Compare(window(), []shadow.Observed{{WatcherEvent: e, Zxid: 65}}); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	next := &shadow.Pair{Header: wire.ReplyHeader{Zxid: 70}, After: 60, Events: []wire.WatcherEvent{e}}
	if got := outcomes(w.Compare(next, nil)); !slices.Equal(got, []string{"equal"}) {
		t.Errorf("%q", got)
	}
}

// TestDoubtfulEvents sets each kind of watch at the observer at a later zxid, when the old server's may have fired. Whatever the
// observer sends, nothing differs. When there is no doubt any more, a missing event is found.
func TestDoubtfulEvents(t *testing.T) {
	for _, c := range watchCases() {
		e, o := event(c.event, c.path), observed(c.event, c.path, 58)
		for _, s := range []struct {
			old      []wire.WatcherEvent
			observer []shadow.Observed
		}{{[]wire.WatcherEvent{e}, nil}, {[]wire.WatcherEvent{e}, []shadow.Observed{o}}, {[]wire.WatcherEvent{e, e}, []shadow.Observed{o}}} {
			w := shadow.NewWatches()
			w.Follow(c.op, c.request, 57, false)
			for _, r := range w.Compare(window(s.old...), s.observer) {
				if r.Difference != nil {
					t.Errorf("%v: old %v, observer %v: %+v", c.op, s.old, s.observer, r.Difference)
				}
			}
		}
		w := shadow.NewWatches()
		w.Follow(c.op, c.request, 57, false)
		if w.Certain(c.path, 50) && c.op != wire.OpAddWatch {
			t.Errorf("%v: no doubt", c.op)
		}
		w.Follow(c.op, c.request, 60, true)
		got := outcomes(w.Compare(&shadow.Pair{Header: wire.ReplyHeader{Zxid: 70}, After: 60, Events: []wire.WatcherEvent{e}}, nil))
		if len(got) != 1 || got[0] == string(shadow.UnsureWatch) || got[0] == "equal" {
			t.Errorf("%v: without a doubt: %q", c.op, got)
		}
	}
}

// TestLateWatchFiresLater: the old server's watch has fired, and the observer's fires for a later change. That is no
// difference, and ends the doubt.
func TestLateWatchFiresLater(t *testing.T) {
	w := shadow.NewWatches()
	w.Follow(wire.OpGetData, read("/n"), 57, false)
	changed := event(wire.EventNodeDataChanged, "/n")
	if got := outcomes(w.Compare(window(changed), nil)); !slices.Equal(got, []string{string(shadow.UnsureWatch)}) {
		t.Errorf("%q", got)
	}
	later := &shadow.Pair{Header: wire.ReplyHeader{Zxid: 70}, After: 60}
	if got := w.Compare(later, []shadow.Observed{{WatcherEvent: changed, Zxid: 66}}); len(got) != 0 || !w.Certain("/n", 70) {
		t.Errorf("%+v, certain %v", got, w.Certain("/n", 70))
	}
	w.Follow(wire.OpGetData, read("/n"), 71, true)
	if got := outcomes(w.Compare(&shadow.Pair{Header: wire.ReplyHeader{Zxid: 80}, After: 70, Events: []wire.WatcherEvent{changed}}, nil)); !slices.Equal(got, []string{"event /n: NodeDataChanged/none"}) {
		t.Errorf("%q", got)
	}
}

// TestRemovedWatches: after removeWatches an event of the observer is a difference, if it is not of a transaction before.
func TestRemovedWatches(t *testing.T) {
	for _, typ := range []wire.WatcherType{wire.WatcherAny, wire.WatcherPersistent} {
		w := shadow.NewWatches()
		w.Follow(wire.OpAddWatch, &wire.AddWatchRequest{Path: "/n"}, 40, true)
		w.Follow(wire.OpRemoveWatches, &wire.WatchesRequest{Path: "/n", Type: typ}, 53, false)
		early, late := observed(wire.EventNodeDeleted, "/n", 52), observed(wire.EventNodeCreated, "/n", 56)
		if got := outcomes(w.Compare(window(), []shadow.Observed{early, late})); !slices.Equal(got, []string{"event /n: none/NodeCreated"}) {
			t.Errorf("type %d: %q", typ, got)
		}
	}
	w := shadow.NewWatches()
	w.Follow(wire.OpGetData, read("/n"), 57, false)
	w.Follow(wire.OpRemoveWatches, &wire.WatchesRequest{Path: "/n", Type: wire.WatcherChildren}, 53, false)
	if w.Certain("/n", 60) {
		t.Error("the data watch was not removed")
	}
	w.Follow(wire.OpCheckWatches, &wire.WatchesRequest{Path: "/n", Type: wire.WatcherAny}, 53, false)
	if w.Certain("/n", 60) {
		t.Error("checkWatches removes nothing")
	}
}

// TestObserverIsBehind: events that the observer has not sent in time are not compared, nor when they come late.
func TestObserverIsBehind(t *testing.T) {
	w := shadow.NewWatches()
	w.Follow(wire.OpGetData, read("/n"), 40, true)
	w.Follow(wire.OpAddWatch, &wire.AddWatchRequest{Path: "/p"}, 40, true)
	w.Skip(60)
	late := []shadow.Observed{observed(wire.EventNodeDataChanged, "/n", 55), observed(wire.EventNodeDataChanged, "/p", 56), observed(wire.EventNodeDataChanged, "/p", 66)}
	p := &shadow.Pair{Header: wire.ReplyHeader{Zxid: 70}, After: 60, Events: []wire.WatcherEvent{event(wire.EventNodeDeleted, "/p")}}
	if got, want := outcomes(w.Compare(p, late)), []string{"event /p: NodeDeleted/none", "event /p: none/NodeDataChanged"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestObserverRestarts: watches that fire once are in doubt in a new session, and persistent ones are set again.
func TestObserverRestarts(t *testing.T) {
	w := shadow.NewWatches()
	w.Follow(wire.OpGetChildren, read("/n"), 50, true)
	w.Follow(wire.OpAddWatch, &wire.AddWatchRequest{Path: "/p"}, 50, true)
	w.Follow(wire.OpAddWatch, &wire.AddWatchRequest{Path: "/r", Mode: wire.WatchPersistentRecursive}, 50, true)
	again := w.Restart()
	if len(again) != 2 || w.Certain("/n", 90) || w.Certain("/p", 90) || w.Certain("/r/a", 90) {
		t.Errorf("%+v", again)
	}
	for _, r := range again {
		w.Follow(wire.OpAddWatch, &r, 80, false)
	}
	if w.Certain("/n", 90) || !w.Certain("/p", 90) || !w.Certain("/r/a", 90) || w.Certain("/p", 70) {
		t.Error("wrong doubts")
	}
}

// TestLostWatches: after a reply that was not followed nothing is compared.
func TestLostWatches(t *testing.T) {
	w := shadow.NewWatches()
	w.Lose()
	w.Follow(wire.OpGetData, read("/n"), 50, true)
	w.Skip(1)
	got := outcomes(w.Compare(window(event(wire.EventNodeCreated, "/n")), []shadow.Observed{observed(wire.EventNodeDeleted, "/n", 55)}))
	if !slices.Equal(got, []string{string(shadow.UnsureLost)}) || len(w.Restart()) != 0 || w.Certain("/n", 50) {
		t.Errorf("%q", got)
	}
}

// TestCodesOfWatches compares the codes of requests about watches.
func TestCodesOfWatches(t *testing.T) {
	remove := &wire.WatchesRequest{Path: "/n", Type: wire.WatcherAny}
	for _, c := range []struct {
		request       wire.Record
		old, observer wire.Code
		at            wire.Zxid
		doubt         bool
		want          string
	}{
		{&wire.AddWatchRequest{}, wire.OK, wire.OK, 60, false, ""},
		{&wire.AddWatchRequest{}, wire.ErrUnimplemented, wire.OK, 70, false, "error"},
		{remove, wire.ErrNoWatcher, wire.ErrNoWatcher, 70, false, ""},
		{remove, wire.OK, wire.ErrNoWatcher, 60, false, "error"},
		{remove, wire.OK, wire.ErrNoWatcher, 70, false, string(shadow.UnsureWatch)},
		{remove, wire.OK, wire.ErrNoWatcher, 60, true, string(shadow.UnsureWatch)},
	} {
		w := shadow.NewWatches()
		if c.doubt {
			w.Follow(wire.OpGetData, read("/n"), 11, false)
		}
		why, d := w.CompareCode(&shadow.Pair{Header: wire.ReplyHeader{Zxid: 60, Err: c.old}}, c.request, c.observer, c.at)
		got := string(why)
		if d != nil {
			got = d.Field
		}
		if got != c.want {
			t.Errorf("%T, old %v, observer %v at %v: %q, want %q", c.request, c.old, c.observer, c.at, got, c.want)
		}
	}
}

// TestSettledWatches shows when a read sets the same watch at both servers.
func TestSettledWatches(t *testing.T) {
	later := func(change func(*wire.Stat)) wire.Stat {
		s := stat()
		change(&s)
		return s
	}
	at := replyZxid + 5
	for _, c := range []struct {
		name            string
		op              wire.OpCode
		old, code       wire.Code
		stat            wire.Stat
		at              wire.Zxid
		settled, parent bool
	}{
		{"unchanged", wire.OpGetData, wire.OK, wire.OK, stat(), at, true, false},
		{"children changed", wire.OpGetData, wire.OK, wire.OK, later(func(s *wire.Stat) { s.Pzxid = at }), at, true, false},
		{"data changed", wire.OpGetData, wire.OK, wire.OK, later(func(s *wire.Stat) { s.Mzxid = at }), at, false, false},
		{"created again", wire.OpGetData, wire.OK, wire.OK, later(func(s *wire.Stat) { s.Czxid = at }), at, false, false},
		{"deleted", wire.OpExists, wire.OK, wire.ErrNoNode, stat(), at, false, false},
		{"children unchanged", wire.OpGetChildren2, wire.OK, wire.OK, later(func(s *wire.Stat) { s.Mzxid = at }), at, true, false},
		{"children changed", wire.OpGetChildren2, wire.OK, wire.OK, later(func(s *wire.Stat) { s.Pzxid = at }), at, false, false},
		{"missing, same zxid", wire.OpExists, wire.ErrNoNode, wire.ErrNoNode, stat(), replyZxid, true, true},
		{"missing", wire.OpExists, wire.ErrNoNode, wire.ErrNoNode, stat(), at, false, true},
		{"created", wire.OpExists, wire.ErrNoNode, wire.OK, stat(), at, false, false},
	} {
		var answer wire.Record = &wire.StatResponse{Stat: c.stat}
		switch c.op {
		case wire.OpGetData:
			answer = &wire.DataResponse{Stat: c.stat}
		case wire.OpGetChildren2:
			answer = &wire.ChildrenStatResponse{Stat: c.stat}
		}
		check := only(t, pair(c.op, read("/p/n"), c.old, answer))
		settled, parent := check.Settled(wire.ReplyHeader{Zxid: c.at, Err: c.code}, wire.Append(nil, answer))
		if settled != c.settled || parent != c.parent {
			t.Errorf("%v %s: %v %v", c.op, c.name, settled, parent)
		}
	}
	check := only(t, pair(wire.OpExists, read("/p/n"), wire.ErrNoNode, nil))
	for pzxid, want := range map[wire.Zxid]bool{replyZxid: true, at: false} {
		s := stat()
		s.Pzxid = pzxid
		if got := check.ParentSettled(wire.ReplyHeader{Zxid: at}, wire.Append(nil, &wire.StatResponse{Stat: s})); got != want {
			t.Errorf("pzxid %v: %v", pzxid, got)
		}
	}
}

// TestTapEvents: each pair has the events since the last reply with a zxid, and pings are pairs as soon as there are watches.
func TestTapEvents(t *testing.T) {
	tap := shadow.NewTap("CN=alice")
	tap.FromClient(slices.Concat(hello, request(1, wire.OpExists, &wire.PathWatchRequest{Path: "/a"}), request(wire.XidPing, wire.OpPing),
		request(2, wire.OpExists, read("/a")), request(wire.XidAuth, wire.OpAuth, &wire.AuthRequest{}), request(wire.XidPing, wire.OpPing)))
	note := reply(wire.XidEvent, &wire.WatcherEvent{Type: wire.EventNodeCreated, State: 3, Path: "/a"})
	auth := frame(&wire.ReplyHeader{Xid: wire.XidAuth})
	var got []shadow.Pair
	tap.FromServer(slices.Concat(welcome, reply(1, &wire.StatResponse{}), reply(wire.XidPing), reply(2, &wire.StatResponse{}), note, auth, note, reply(wire.XidPing), note),
		func(p shadow.Pair) { got = append(got, p) })
	want := []struct {
		op     wire.OpCode
		events int
		after  wire.Zxid
	}{{wire.OpExists, 0, 0}, {wire.OpPing, 0, replyZxid}, {wire.OpExists, 0, replyZxid}, {wire.OpAuth, 0, replyZxid}, {wire.OpPing, 2, replyZxid}}
	if len(got) != len(want) || tap.Unread() != 1 {
		t.Fatalf("%d pairs, %d events unread: %+v", len(got), tap.Unread(), got)
	}
	for i, p := range got {
		if p.Op != want[i].op || len(p.Events) != want[i].events || p.After != want[i].after || p.Watched != int64(i+1) || p.Identity.Subject != "CN=alice" {
			t.Errorf("%d: %+v", i, p)
		}
	}
	none := shadow.NewTap("")
	none.FromClient(slices.Concat(hello, request(wire.XidPing, wire.OpPing), request(1, wire.OpExists, &wire.PathWatchRequest{Path: "/a"})))
	none.FromServer(slices.Concat(welcome, reply(wire.XidPing), reply(1, &wire.StatResponse{})), func(p shadow.Pair) {
		if p.Op == wire.OpPing || p.Watched != 0 {
			t.Errorf("without watches: %+v", p)
		}
	})
}

// TestSetWatchesAhead: the observer carries out setWatches later than the old server, and finds a change that the old server's
// watch then reports. The event is not missing.
func TestSetWatchesAhead(t *testing.T) {
	w := shadow.NewWatches()
	w.Follow(wire.OpSetWatches, &wire.SetWatchesRequest{Child: []string{"/n"}}, 57, false)
	set := &shadow.Pair{Header: wire.ReplyHeader{Zxid: 50}}
	if got := w.Compare(set, []shadow.Observed{observed(wire.EventNodeChildrenChanged, "/n", -1)}); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	if w.Certain("/n", 56) || !w.Certain("/n", 57) {
		t.Error("the doubt ends at another zxid")
	}
	if got := outcomes(w.Compare(window(event(wire.EventNodeChildrenChanged, "/n")), nil)); !slices.Equal(got, []string{string(shadow.UnsureWatch)}) {
		t.Errorf("%q", got)
	}
}

// TestDoubtsAreSeparate: a doubt about one kind of watch leaves events of another kind certain.
func TestDoubtsAreSeparate(t *testing.T) {
	for op, e := range map[wire.OpCode]wire.EventType{wire.OpGetData: wire.EventNodeChildrenChanged, wire.OpGetChildren: wire.EventNodeDataChanged} {
		w := shadow.NewWatches()
		w.Follow(op, read("/n"), 57, false)
		if got := outcomes(w.Compare(window(event(e, "/n")), nil)); len(got) != 1 || got[0] == string(shadow.UnsureWatch) {
			t.Errorf("%v: %q", op, got)
		}
	}
}
