package server

import (
	"testing"

	"go.uber.org/goleak"

	"bellwether/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestBasicOperations: one client uses the basic operations: create, get, set, list,
// delete.
func TestBasicOperations(t *testing.T) {
	c := start(t, Options{}).connect()
	c.create("/a", "one")
	if got := c.data("/a"); got != "one" {
		t.Errorf("data %q", got)
	}
	var st wire.StatResponse
	c.must(wire.OpSetData, &wire.SetDataRequest{Path: "/a", Data: []byte("two"), Version: 0}, &st)
	if st.Stat.Version != 1 || c.data("/a") != "two" {
		t.Errorf("after set: %+v, %q", st.Stat, c.data("/a"))
	}
	var kids wire.ChildrenResponse
	c.must(wire.OpGetChildren, &wire.PathWatchRequest{Path: "/"}, &kids)
	if len(kids.Children) != 2 {
		t.Errorf("children %v", kids.Children)
	}
	if h := c.call(wire.OpSetData, &wire.SetDataRequest{Path: "/a", Version: 7}, nil); h.Err != wire.ErrBadVersion {
		t.Errorf("set with a wrong version: %v", h.Err)
	}
	c.must(wire.OpDelete, &wire.PathVersionRequest{Path: "/a", Version: -1}, nil)
	if h := c.call(wire.OpExists, &wire.PathWatchRequest{Path: "/a"}, nil); h.Err != wire.ErrNoNode {
		t.Errorf("exists after delete: %v", h.Err)
	}
	if h := c.call(wire.OpPing, nil, nil); h.Xid != wire.XidPing {
		t.Errorf("ping answered with xid %d", h.Xid)
	}
	c.must(wire.OpCloseSession, nil, nil)
	c.closed()
}
