package zk

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"bellwether/wire"
)

// missingBelow answers ErrNoNode to every request about this path or a path below it.
func missingBelow(chroot string) func(p *peer, h wire.RequestHeader, body []byte) bool {
	return func(p *peer, h wire.RequestHeader, body []byte) bool {
		if h.Op == wire.OpMulti {
			r := wire.OpResult{Type: wire.OpError, Err: wire.ErrNoNode}
			p.reply(h.Xid, 0, &wire.MultiResponse{Results: []wire.OpResult{r}})
			return true
		}
		missing := strings.HasPrefix(pathOf(h.Op, body), chroot)
		if missing {
			p.reply(h.Xid, wire.ErrNoNode, nil)
		}
		return missing
	}
}

// TestMissingChroot: a create below a chroot that does not exist reports the missing
// chroot, whatever kind of create it is and however deep its path is. The client asks the
// server only if it cannot tell from the path that the chroot is missing.
func TestMissingChroot(t *testing.T) {
	creates := map[string]func(ctx context.Context, c *Client, path string) error{
		"Create": func(ctx context.Context, c *Client, path string) error {
			_, _, err := c.Create(ctx, path, nil)
			return err
		},
		"Container": func(ctx context.Context, c *Client, path string) error {
			_, _, err := c.Create(ctx, path, nil, Container)
			return err
		},
		"CreateProtected": func(ctx context.Context, c *Client, path string) error {
			_, _, err := c.CreateProtected(ctx, path, nil, Ephemeral, Sequential)
			return err
		},
		"Multi": func(ctx context.Context, c *Client, path string) error {
			_, err := c.Multi(ctx, CreateOp(path, nil))
			return err
		},
	}
	for name, create := range creates {
		for path, asks := range map[string]int{"/job": 0, "/job/1": 1} {
			t.Run(name+" "+path, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					e := newEnsemble(t)
					e.serve = missingBelow("/app")
					c := e.connect(Options{}, "10.0.0.1/app")
					err := create(t.Context(), c, path)
					if !errors.Is(err, ErrNoChroot) || !errors.Is(err, ErrNoNode) || !strings.HasSuffix(err.Error(), path+": missing chroot /app") {
						t.Errorf("error is %q, want the missing chroot", err)
					}
					if got := count(e.log(), "exists /app"); got != asks {
						t.Errorf("the chroot was looked for %d times, want %d: %q", got, asks, e.log())
					}
				})
			})
		}
	}
}

// TestMissingChrootOfTheRoot: the path "/" is the chroot itself. Exists reports as usual whether it
// exists.
func TestMissingChrootOfTheRoot(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.serve = missingBelow("/app")
		c := e.connect(Options{}, "10.0.0.1/app")
		if _, _, err := c.Children(t.Context(), "/"); !errors.Is(err, ErrNoChroot) {
			t.Errorf("children of the root: %v, want the missing chroot", err)
		}
		if _, err := c.Multi(t.Context(), CheckOp("/", AnyVersion)); !errors.Is(err, ErrNoChroot) {
			t.Errorf("check of the root: %v, want the missing chroot", err)
		}
		if _, found, err := c.Exists(t.Context(), "/"); found || err != nil {
			t.Errorf("exists of the root: %v, %v; want false and no error", found, err)
		}
		if _, _, err := c.Get(t.Context(), "/job"); !errors.Is(err, ErrNoNode) || errors.Is(err, ErrNoChroot) {
			t.Errorf("a read below: %v, want the server's own error", err)
		}
	})
}

// TestMissingParentIsNoMissingChroot: if the chroot exists, or there is no chroot, a missing parent is
// reported as a missing parent.
func TestMissingParentIsNoMissingChroot(t *testing.T) {
	for _, servers := range []string{"10.0.0.1", "10.0.0.1/app"} {
		bubble(t, func(t *testing.T) {
			e := newEnsemble(t)
			e.serve = func(p *peer, h wire.RequestHeader, body []byte) bool {
				missing := strings.HasSuffix(pathOf(h.Op, body), "/a/b")
				if missing {
					p.reply(h.Xid, wire.ErrNoNode, nil)
				}
				return missing
			}
			c := e.connect(Options{}, servers)
			_, _, err := c.Create(t.Context(), "/a/b", nil)
			if !errors.Is(err, ErrNoNode) || errors.Is(err, ErrNoChroot) {
				t.Errorf("%s: error is %v, want ErrNoNode alone", servers, err)
			}
			if servers == "10.0.0.1" && slices.ContainsFunc(e.log(), func(s string) bool { return strings.HasPrefix(s, "exists") }) {
				t.Errorf("the client looked for a chroot that it does not have: %q", e.log())
			}
		})
	}
}
