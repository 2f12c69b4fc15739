package interop

import (
	"context"
	"fmt"
	"strings"

	"bellwether/wire"
	"bellwether/zk"
)

// sayEvent records an expected event.
func (s *seen) sayEvent(what string, w *zk.Watch) {
	s.t.Helper()
	e, err := w.Wait(s.ctx)
	s.say("%s: %s %v %s zxid %v", what, result(err), e.Type, strings.TrimPrefix(e.Path, s.root), s.eventZxid(e))
}

// eventZxid returns an event's zxid as text.
func (s *seen) eventZxid(e zk.Event) string {
	if e.Zxid == -1 {
		return "unknown"
	}
	return s.z(e.Zxid)
}

// sayPending records whether a watch has not fired yet. A sync on the same connection makes
// this exact: its reply follows all earlier events.
func (s *seen) sayPending(what string, w *zk.Watch) {
	s.t.Helper()
	if err := s.zc.Sync(s.ctx, "/"); err != nil {
		s.t.Fatal(err)
	}
	select {
	case <-w.Done():
		e, err := w.Wait(s.ctx)
		s.say("%s: %s %v", what, result(err), e.Type)
	default:
		s.say("%s: pending", what)
	}
}

func seeWatch(s *seen) {
	s.create("/a", "")
	exists := func(p string) *zk.Watch { _, _, w, _ := s.zc.ExistsW(s.ctx, s.at(p)); return w }
	data := func(p string) *zk.Watch { _, _, w, _ := s.zc.GetW(s.ctx, s.at(p)); return w }
	kids := func(p string) *zk.Watch { _, _, w, _ := s.zc.ChildrenW(s.ctx, s.at(p)); return w }

	w1, w2, w3 := exists("/new"), kids(""), data("/a")
	s.create("/new", "")
	s.sayEvent("exists sees create", w1)
	s.sayEvent("children see create", w2)
	s.sayPending("data of a sibling", w3)
	w4 := kids("/a")
	s.zc.Set(s.ctx, s.at("/a"), []byte("x"), -1)
	s.sayEvent("data sees set", w3)
	s.sayPending("children see no set", w4)
	w5, w6 := data("/a"), exists("/a")
	s.zc.SetACL(s.ctx, s.at("/a"), wire.OpenACL(), -1)
	s.sayPending("data sees no setACL", w5)
	s.create("/a/b", "")
	s.sayEvent("children of a see create", w4)
	s.sayPending("data sees no child", w5)
	w7, w8 := kids("/a"), kids("/a/b")
	s.zc.Delete(s.ctx, s.at("/a/b"), -1)
	s.sayEvent("parent's children see delete", w7)
	s.sayEvent("own children see delete", w8)
	s.zc.Delete(s.ctx, s.at("/a"), -1)
	s.sayEvent("data sees delete", w5)
	s.sayEvent("exists sees delete", w6)
	_, _, w, err := s.zc.GetW(s.ctx, s.at("/none"))
	s.say("watch on nothing by get: %s %v", result(err), w == nil)
	_, _, w, err = s.zc.ChildrenW(s.ctx, s.at("/none"))
	s.say("watch on nothing by children: %s %v", result(err), w == nil)
	w9 := exists("/multi")
	s.zc.Multi(s.ctx, zk.CreateOp(s.at("/multi"), nil), zk.SetOp(s.at("/multi"), nil, -1), zk.DeleteOp(s.at("/multi"), -1))
	s.sayEvent("first of a multi", w9)
}

// seeWatchOrder records, frame by frame, what a connection receives because of its own
// writes: events first, then replies.
func seeWatchOrder(s *seen) {
	r := dialRaw(s, nil)
	for i, p := range []string{"/a", "/a/b"} {
		r.send(int32(i+1), wire.OpCreate, &wire.CreateRequest{Path: s.at(p), ACL: wire.OpenACL()})
		r.sayFrame("create " + p)
	}
	r.send(3, wire.OpGetData, &wire.PathWatchRequest{Path: s.at("/a/b"), Watch: true})
	r.sayFrame("getData")
	r.send(4, wire.OpGetChildren, &wire.PathWatchRequest{Path: s.at("/a/b"), Watch: true})
	r.sayFrame("getChildren")
	r.send(5, wire.OpGetChildren, &wire.PathWatchRequest{Path: s.at("/a"), Watch: true})
	r.sayFrame("getChildren of the parent")
	r.send(6, wire.OpDelete, &wire.PathVersionRequest{Path: s.at("/a/b"), Version: -1})
	r.send(7, wire.OpExists, &wire.PathWatchRequest{Path: s.at("/a/b")})
	for range 4 {
		r.sayFrame("after the delete")
	}
	r.send(8, wire.OpExists, &wire.PathWatchRequest{Path: s.at("/m"), Watch: true})
	r.sayFrame("exists")
	r.send(9, wire.OpGetChildren, &wire.PathWatchRequest{Path: s.at("/a"), Watch: true})
	r.sayFrame("getChildren of the parent")
	r.send(10, wire.OpMulti, &wire.MultiRequest{Ops: []wire.Op{
		{Type: wire.OpCreate, Request: &wire.CreateRequest{Path: s.at("/a/x"), ACL: wire.OpenACL()}},
		{Type: wire.OpCreate, Request: &wire.CreateRequest{Path: s.at("/m"), ACL: wire.OpenACL()}},
	}})
	for range 3 {
		r.sayFrame("after the multi")
	}
}

// sayStream records n events of a stream.
func (s *seen) sayStream(what string, st *zk.Stream, n int) {
	s.t.Helper()
	for range n {
		e, err := st.Next(s.ctx)
		s.say("%s: %s %v %s zxid %s", what, result(err), e.Type, strings.TrimPrefix(e.Path, s.root), s.eventZxid(e))
	}
}

// sayNoMore checks that a stream has no further event.
func (s *seen) sayNoMore(what string, st *zk.Stream) {
	s.t.Helper()
	if err := s.zc.Sync(s.ctx, "/"); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	e, err := st.Next(ctx)
	s.say("%s: no more: %v %s", what, err != nil, fmt.Sprint(e.Type))
}

func seePersistentWatch(s *seen) {
	p, err := s.zc.AddWatch(s.ctx, s.at("/w"), wire.WatchPersistent)
	s.say("persistent: %s", result(err))
	r, err := s.zc.AddWatch(s.ctx, s.at("/w2"), wire.WatchPersistentRecursive)
	s.say("recursive: %s", result(err))
	for _, w := range []string{"/w", "/w2"} {
		s.create(w, "")
		s.create(w+"/a", "")
		s.create(w+"/a/b", "")
		s.zc.Set(s.ctx, s.at(w), []byte("x"), -1)
		s.zc.Set(s.ctx, s.at(w+"/a/b"), []byte("x"), -1)
		s.zc.Delete(s.ctx, s.at(w+"/a/b"), -1)
		s.zc.Delete(s.ctx, s.at(w+"/a"), -1)
		s.zc.Delete(s.ctx, s.at(w), -1)
		s.create(w, "")
	}
	s.sayStream("persistent", p, 6)
	s.sayNoMore("persistent", p)
	s.sayStream("recursive", r, 9)
	s.sayNoMore("recursive", r)
	other := s.client(nil)
	if _, _, err := other.Create(s.ctx, s.at("/w2/e"), nil, zk.Ephemeral); err != nil {
		s.t.Fatal(err)
	}
	s.say("close: %s", result(other.Close(s.ctx)))
	s.sayStream("session end", r, 2)
}

func seeWatchRemoval(s *seen) {
	s.create("/a", "")
	r := dialRaw(s, nil)
	xid := int32(0)
	do := func(what string, op wire.OpCode, req wire.Record) {
		xid++
		r.send(xid, op, req)
		r.sayFrame(what)
	}
	check := func(t wire.WatcherType) {
		do(fmt.Sprint("check ", t), wire.OpCheckWatches, &wire.WatchesRequest{Path: s.at("/a"), Type: t})
	}
	remove := func(t wire.WatcherType) {
		do(fmt.Sprint("remove ", t), wire.OpRemoveWatches, &wire.WatchesRequest{Path: s.at("/a"), Type: t})
	}
	all := []wire.WatcherType{1, 2, 3}
	for _, t := range all {
		check(t)
	}
	do("getData", wire.OpGetData, &wire.PathWatchRequest{Path: s.at("/a"), Watch: true})
	for _, t := range all {
		check(t)
	}
	remove(1)
	remove(2)
	check(3)
	do("getChildren", wire.OpGetChildren, &wire.PathWatchRequest{Path: s.at("/a"), Watch: true})
	remove(3)
	check(3)
	remove(3)
	do("setData", wire.OpSetData, &wire.SetDataRequest{Path: s.at("/a"), Version: -1})
	do("create", wire.OpCreate, &wire.CreateRequest{Path: s.at("/a/b"), ACL: wire.OpenACL()})
}
