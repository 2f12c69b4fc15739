package interop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/zk"
)

// TestEnsurePathAtServers creates paths, twice and by many clients at once, below a chroot that
// does not exist yet, and where the parent is read-only.
func TestEnsurePathAtServers(t *testing.T) {
	eachShared(t, func(t *testing.T, s *target.Server) {
		ctx, cancel := context.WithTimeout(t.Context(), behaviourTimeout)
		defer cancel()
		root := fresh("ensure")
		inside := connectTo(t, s.Addr+root+"/chroot")
		if err := inside.EnsurePath(ctx, "/a/b"); !errors.Is(err, zk.ErrNoChroot) || !strings.Contains(err.Error(), "missing chroot "+root+"/chroot") {
			t.Errorf("EnsurePath below a missing chroot: %v", err)
		}
		if err := inside.EnsurePath(ctx, "/"); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 20 {
			c := connectTo(t, s.Addr+root+"/chroot")
			all.Go(func() {
				if err := c.EnsurePath(ctx, "/a/b/c/d"); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		outside := connectTo(t, s.Addr)
		if _, found, err := outside.Exists(ctx, root+"/chroot/a/b/c/d"); err != nil || !found {
			t.Errorf("the created path exists: %v, %v", found, err)
		}
		if _, _, err := outside.Create(ctx, root+"/closed", nil, zk.ReadACL()); err != nil {
			t.Fatal(err)
		}
		if err := outside.EnsurePath(ctx, root+"/closed"); err != nil {
			t.Errorf("EnsurePath of an existing path: %v", err)
		}
		if err := outside.EnsurePath(ctx, root+"/closed/x/y"); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("EnsurePath below a parent that allows no create: %v", err)
		}
	})
}

// TestDeleteRecursiveAtServers deletes 100,000 znodes below a chroot while others create more,
// and checks the error about znodes that it may not delete.
func TestDeleteRecursiveAtServers(t *testing.T) {
	const znodes = 100_000
	eachTarget(t, func(t *testing.T, kind target.Kind) {
		s := target.StartFor(t, kind, target.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 2*behaviourTimeout)
		defer cancel()
		outside := connectTo(t, s.Addr)
		mustCreate(t, outside, "/chroot")
		c, other := connectTo(t, s.Addr+"/chroot"), connectTo(t, s.Addr+"/chroot")
		mustCreate(t, c, "/big")
		for i := 0; i < znodes; {
			var ops []zk.Op
			parent := fmt.Sprintf("/big/%d", i)
			ops = append(ops, zk.CreateOp(parent, nil))
			for i++; i%500 != 0; i++ {
				ops = append(ops, zk.CreateOp(fmt.Sprintf("%s/%d", parent, i), nil))
			}
			if _, err := c.Multi(ctx, ops...); err != nil {
				t.Fatal(err)
			}
		}
		mustCreate(t, c, "/bigger")
		creating, stop := context.WithCancel(ctx)
		made, ended := 0, make(chan struct{})
		go func() {
			defer close(ended)
			for i := range 50 {
				if _, _, err := other.Create(creating, fmt.Sprintf("/big/0/late-%d", i), nil); err == nil {
					made++
				}
			}
		}()
		began := time.Now()
		err := c.DeleteRecursive(ctx, "/big")
		took := time.Since(began)
		stop()
		<-ended
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d znodes, and %d that others created meanwhile, in %v", znodes, made, took)
		if names, _, err := outside.Children(ctx, "/chroot"); err != nil || len(names) != 1 || names[0] != "bigger" {
			t.Errorf("left: %q, %v", names, err)
		}
		if err := c.DeleteRecursive(ctx, "/big"); err != nil {
			t.Errorf("DeleteRecursive of a missing path: %v", err)
		}
		for _, path := range []string{"/part", "/part/open", "/part/open/x", "/part/closed"} {
			mustCreate(t, c, path)
		}
		mustCreate(t, c, "/part/closed/x")
		if _, err := c.SetACL(ctx, "/part/closed", zk.ReadACL(), zk.AnyVersion); err != nil {
			t.Fatal(err)
		}
		if err := c.DeleteRecursive(ctx, "/part"); !errors.Is(err, zk.ErrNoAuth) || !strings.Contains(err.Error(), "/part/closed/x") {
			t.Errorf("DeleteRecursive with a znode that may not be deleted: %v", err)
		}
		if _, found, err := c.Exists(ctx, "/part/closed/x"); err != nil || !found {
			t.Errorf("the znode that may not be deleted exists: %v, %v", found, err)
		}
	})
}

// TestDetachAtServers shows that the session and its ephemeral znodes survive Detach, and that
// another client can then take them over.
func TestDetachAtServers(t *testing.T) {
	eachShared(t, func(t *testing.T, s *target.Server) {
		path := fresh("detach")
		c := connectTo(t, s.Addr)
		if _, _, err := c.Create(t.Context(), path, nil, zk.Ephemeral); err != nil {
			t.Fatal(err)
		}
		session := c.Detach()
		if err := c.Close(t.Context()); err != nil || c.State().State != zk.Closed {
			t.Errorf("%v, %v", err, c.State().State)
		}
		again, err := zk.Connect(t.Context(), s.Addr, &zk.Options{Resume: session, OneSession: true})
		if err != nil {
			t.Fatal(err)
		}
		if st, found, err := again.Exists(t.Context(), path); err != nil || !found || st.EphemeralOwner != session.ID || again.Session().ID != session.ID {
			t.Errorf("found %v, %v, of %v, want %v", found, err, st.EphemeralOwner, session.ID)
		}
		if err := again.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if _, found, err := connectTo(t, s.Addr).Exists(t.Context(), path); err != nil || found {
			t.Errorf("after Close: %v, %v", found, err)
		}
	})
}

// connectTo opens a client that is closed at the end of the test.
func connectTo(t *testing.T, servers string) *zk.Client {
	t.Helper()
	c, err := zk.Connect(t.Context(), servers, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}
