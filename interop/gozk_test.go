package interop

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"bellwether/interop/target"
)

const (
	sessionTimeout = 10 * time.Second // requested session timeout, which both servers allow
	eventTimeout   = 3 * time.Minute  // timeout for a watch event or a session state
	statesMax      = 10_000           // session events that are kept
)

var world = zk.WorldACL(zk.PermAll)

// quiet keeps go-zookeeper from logging to the test's output.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

// client is a go-zookeeper session on whose state tests can wait. It keeps all events:
// go-zookeeper's own channel drops events when it is full.
type client struct {
	*zk.Conn
	states <-chan zk.Event
}

// dial opens a session that ends with the test.
func dial(t *testing.T, addr string) client {
	t.Helper()
	return dialFor(t, addr, sessionTimeout)
}

// dialFor is like dial, but with a requested session timeout.
func dialFor(t *testing.T, addr string, timeout time.Duration) client {
	t.Helper()
	states := make(chan zk.Event, statesMax)
	conn, _, err := zk.Connect([]string{addr}, timeout, zk.WithLogger(quiet{}),
		zk.WithEventCallback(func(e zk.Event) { states <- e }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	c := client{conn, states}
	c.await(t, zk.StateHasSession)
	return c
}

// dialSuper is dialFor with all permissions.
func dialSuper(t *testing.T, addr string, timeout time.Duration) client {
	t.Helper()
	c := dialFor(t, addr, timeout)
	if err := c.AddAuth("digest", []byte("super:"+target.Password)); err != nil {
		t.Fatalf("addauth as super: %v", err)
	}
	return c
}

// await reads session events until the session is in the given state.
func (c client) await(t *testing.T, state zk.State) {
	t.Helper()
	deadline := time.After(eventTimeout)
	for {
		select {
		case e := <-c.states:
			if e.State == state {
				return
			}
		case <-deadline:
			t.Fatalf("no %v within %v", state, eventTimeout)
		}
	}
}

// root creates the znode below which a test works and returns its path.
func (c client) root(t *testing.T, name string) string {
	t.Helper()
	return c.create(t, fresh(name), "", zk.FlagPersistent)
}

// create creates a znode open to all and returns its path.
func (c client) create(t *testing.T, path, data string, flag int32) string {
	t.Helper()
	made, err := c.Create(path, []byte(data), flag, world)
	if err != nil {
		t.Fatalf("create %s with flag %d: %v", path, flag, err)
	}
	return made
}

// set changes a znode's data, whatever its version.
func (c client) set(t *testing.T, path, data string) *zk.Stat {
	t.Helper()
	stat, err := c.Set(path, []byte(data), -1)
	if err != nil {
		t.Fatalf("set %s: %v", path, err)
	}
	return stat
}

// remove deletes a znode, whatever its version.
func (c client) remove(t *testing.T, path string) {
	t.Helper()
	if err := c.Delete(path, -1); err != nil {
		t.Fatalf("delete %s: %v", path, err)
	}
}

// exists reports whether a znode exists.
func (c client) exists(t *testing.T, path string) bool {
	t.Helper()
	found, _, err := c.Exists(path)
	if err != nil {
		t.Fatalf("exists %s: %v", path, err)
	}
	return found
}

// awaitGone waits until a znode is deleted.
func (c client) awaitGone(t *testing.T, path string) {
	t.Helper()
	found, _, gone, err := c.ExistsW(path)
	if err != nil {
		t.Fatalf("exists %s: %v", path, err)
	}
	if found {
		wantEvent(t, gone, zk.EventNodeDeleted, path)
	}
}

// wantEvent waits for one event and checks it.
func wantEvent(t *testing.T, events <-chan zk.Event, kind zk.EventType, path string) {
	t.Helper()
	select {
	case e := <-events:
		if e.Type != kind || e.Path != path {
			t.Fatalf("event %v on %q (%v), want %v on %q", e.Type, e.Path, e.Err, kind, path)
		}
	case <-time.After(eventTimeout):
		t.Fatalf("no %v on %s within %v", kind, path, eventTimeout)
	}
}

// wantNoEvent checks that no event has been delivered so far. A read of the same session
// before the call makes this exact, because events precede later replies.
func wantNoEvent(t *testing.T, events <-chan zk.Event) {
	t.Helper()
	select {
	case e := <-events:
		t.Fatalf("unexpected %v on %q", e.Type, e.Path)
	default:
	}
}

// wantErr checks an operation's error.
func wantErr(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Fatalf("%s: error %v, want %v", what, got, want)
	}
}

// numbered returns the name of a sequential znode.
func numbered(prefix string, n int) string { return fmt.Sprintf("%s%010d", prefix, n) }
