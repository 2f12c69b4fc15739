package server

import (
	"sync"
	"testing"
	"time"

	"bellwether/wire"
)

// TestEventsComeBeforeTheirChanges: a client gets the event for a change before it can
// read the change: a reader with a persistent watch has counted at least as many events
// as the version that it reads.
func TestEventsComeBeforeTheirChanges(t *testing.T) {
	s := start(t, Options{})
	setup := s.connect()
	setup.create("/a", "")
	const writers, rounds = 2, 300
	var wg sync.WaitGroup
	for range 3 {
		c := s.connect()
		c.must(wire.OpAddWatch, &wire.AddWatchRequest{Path: "/a", Mode: wire.WatchPersistent}, nil)
		wg.Go(func() { readAndCount(t, c, writers*rounds) })
	}
	for range writers {
		c := s.connect()
		wg.Go(func() {
			for range rounds {
				c.send(wire.OpSetData, &wire.SetDataRequest{Path: "/a", Version: -1})
				if _, err := wire.ReadFrame(c.nc, nil, 1<<20); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// readAndCount pipelines reads until it has seen the last version.
func readAndCount(t *testing.T, c *client, last int32) {
	events, zxid, waiting := int32(0), wire.Zxid(0), 0
	for seen := int32(0); seen < last; {
		for ; waiting < 3; waiting++ {
			c.send(wire.OpExists, &wire.PathWatchRequest{Path: "/a"})
		}
		b, err := wire.ReadFrame(c.nc, nil, 1<<20)
		if err != nil {
			t.Error(err)
			return
		}
		in := wire.Decoder(b)
		var h wire.ReplyHeader
		h.Code(&in)
		if h.Zxid < zxid {
			t.Errorf("zxid %v after %v", h.Zxid, zxid)
		}
		zxid = h.Zxid
		if h.Xid == wire.XidEvent {
			events++
			continue
		}
		waiting--
		var r wire.StatResponse
		r.Code(&in)
		if seen = r.Stat.Version; events < seen {
			t.Errorf("version %d was read after %d events", seen, events)
			return
		}
	}
}

// TestWatchesAreSetAgain: after a reconnect the watches are set again. An event that is
// due is sent at once, before the reply (etcd 18089). A zxid later than the server's does
// no harm (etcd 20221).
func TestWatchesAreSetAgain(t *testing.T) {
	s := start(t, Options{})
	c := s.connect()
	for _, p := range []string{"/gone", "/changed", "/same", "/parent", "/parent/x"} {
		c.create(p, "")
	}
	z := c.must(wire.OpPing, nil, nil).Zxid
	c.must(wire.OpDelete, &wire.PathVersionRequest{Path: "/gone", Version: -1}, nil)
	c.must(wire.OpSetData, &wire.SetDataRequest{Path: "/changed", Version: -1}, nil)
	c.create("/parent/y", "")
	c.create("/new", "")
	again := s.connect()
	again.send(wire.OpSetWatches, &wire.SetWatchesRequest{RelativeZxid: z,
		Data: []string{"/gone", "/changed", "/same"}, Exist: []string{"/new", "/missing"}, Child: []string{"/parent"}})
	for _, want := range []struct {
		kind wire.EventType
		path string
	}{{wire.EventNodeDeleted, "/gone"}, {wire.EventNodeDataChanged, "/changed"}, {wire.EventNodeCreated, "/new"}, {wire.EventNodeChildrenChanged, "/parent"}} {
		var e wire.WatcherEvent
		if h := again.reply(&e); h.Xid != wire.XidEvent || h.Zxid != -1 || e.Type != want.kind || e.Path != want.path {
			t.Fatalf("%+v %+v, want %+v", h, e, want)
		}
	}
	if h := again.reply(nil); h.Xid != again.xid || h.Err != wire.OK {
		t.Fatalf("%+v", h)
	}
	future := s.connect()
	future.must(wire.OpSetWatches, &wire.SetWatchesRequest{RelativeZxid: 1 << 40, Data: []string{"/same"}}, nil)
	c.must(wire.OpSetData, &wire.SetDataRequest{Path: "/same", Version: -1}, nil)
	for _, w := range []*client{again, future} {
		var e wire.WatcherEvent
		if h := w.reply(&e); h.Xid != wire.XidEvent || e.Path != "/same" {
			t.Errorf("%+v %+v", h, e)
		}
	}
}

// TestMultiOnOnePath: a multi that creates and deletes the same path causes one event
// each, in order, before its own reply (etcd 17247).
func TestMultiOnOnePath(t *testing.T) {
	c := start(t, Options{}).connect()
	c.must(wire.OpAddWatch, &wire.AddWatchRequest{Path: "/a", Mode: wire.WatchPersistentRecursive}, nil)
	c.send(wire.OpMulti, &wire.MultiRequest{Ops: []wire.Op{
		{Type: wire.OpCreate, Request: create("/a", "")},
		{Type: wire.OpSetData, Request: &wire.SetDataRequest{Path: "/a", Version: 0}},
		{Type: wire.OpDelete, Request: &wire.PathVersionRequest{Path: "/a", Version: 1}},
	}})
	for _, want := range []wire.EventType{wire.EventNodeCreated, wire.EventNodeDataChanged, wire.EventNodeDeleted} {
		var e wire.WatcherEvent
		if h := c.reply(&e); h.Xid != wire.XidEvent || e.Type != want {
			t.Fatalf("%+v %+v, want %v", h, e, want)
		}
	}
	if h := c.reply(&wire.MultiResponse{}); h.Xid != c.xid || h.Err != wire.OK {
		t.Errorf("%+v", h)
	}
}

// TestReadsKeepASession: reads keep a session alive (ClickHouse/ClickHouse#121361).
func TestReadsKeepASession(t *testing.T) {
	s := start(t, quick())
	withTimeouts(t, 500*time.Millisecond, func(timeout time.Duration) error {
		c := s.connectFor(timeout)
		for end := time.Now().Add(timeout * 5 / 2); time.Now().Before(end); {
			if err := c.try(wire.OpGetData, &wire.PathWatchRequest{Path: "/"}, &wire.DataResponse{}); err != nil {
				return err
			}
		}
		return c.try(wire.OpCreate, create("/a", ""), nil)
	})
}
