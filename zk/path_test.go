package zk

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"bellwether/wire"
)

// TestValidPath: a path is valid for a sequential create if it would be valid with digits appended.
func TestValidPath(t *testing.T) {
	cases := []struct {
		path              string
		valid, sequential bool
	}{
		{"/", true, true}, {"/a", true, true}, {"/a/b", true, true},
		{"/a/", false, true}, {"/a/.", false, true}, {"/a/..", false, true},
		{"", false, false}, {"a", false, false}, {"//", false, false}, {"/a//b", false, false},
		{"/./a", false, false}, {"/a/../b", false, false}, {"/\x00", false, false}, {"/\xff", false, false},
	}
	for _, x := range cases {
		if got := validPath(x.path, false); got != x.valid {
			t.Errorf("%q is valid: %v, want %v", x.path, got, x.valid)
		}
		if got := validPath(x.path, true); got != x.sequential {
			t.Errorf("%q with a number behind it is valid: %v, want %v", x.path, got, x.sequential)
		}
	}
}

// TestPathsOfCalls: every path of a call is checked before it is sent, and the chroot is put before it.
func TestPathsOfCalls(t *testing.T) {
	calls := map[string]func(c *Client, t *testing.T, path string) error{
		"create":   func(c *Client, t *testing.T, p string) error { _, _, err := c.Create(t.Context(), p, nil); return err },
		"delete":   func(c *Client, t *testing.T, p string) error { return c.Delete(t.Context(), p, 0) },
		"get":      func(c *Client, t *testing.T, p string) error { _, _, err := c.Get(t.Context(), p); return err },
		"set":      func(c *Client, t *testing.T, p string) error { _, err := c.Set(t.Context(), p, nil, 0); return err },
		"exists":   func(c *Client, t *testing.T, p string) error { _, _, err := c.Exists(t.Context(), p); return err },
		"children": func(c *Client, t *testing.T, p string) error { _, _, err := c.Children(t.Context(), p); return err },
		"getACL":   func(c *Client, t *testing.T, p string) error { _, _, err := c.GetACL(t.Context(), p); return err },
		"setACL":   func(c *Client, t *testing.T, p string) error { _, err := c.SetACL(t.Context(), p, nil, 0); return err },
		"sync":     func(c *Client, t *testing.T, p string) error { return c.Sync(t.Context(), p) },
		"count": func(c *Client, t *testing.T, p string) error {
			_, err := c.CountDescendants(t.Context(), p)
			return err
		},
		"list": func(c *Client, t *testing.T, p string) error { _, err := c.Ephemerals(t.Context(), p); return err },
		"addWatch": func(c *Client, t *testing.T, p string) error {
			_, err := c.AddWatch(t.Context(), p, wire.WatchPersistent)
			return err
		},
		"multi": func(c *Client, t *testing.T, p string) error {
			_, err := c.Multi(t.Context(), CheckOp(p, 0))
			return err
		},
		"multiRead": func(c *Client, t *testing.T, p string) error {
			_, err := c.MultiRead(t.Context(), GetOp(p))
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				e := newEnsemble(t)
				var paths []string
				e.serve = func(p *peer, h wire.RequestHeader, body []byte) bool {
					switch h.Op {
					case wire.OpPing:
						return false
					case wire.OpMulti, wire.OpMultiRead:
						paths = append(paths, pathOf(wire.OpExists, body[9:]))
					default:
						paths = append(paths, pathOf(h.Op, body))
					}
					p.reply(h.Xid, wire.ErrNoAuth, nil)
					return true
				}
				c := e.connect(Options{}, "10.0.0.1/app/x")
				for _, path := range []string{"", "a", "/a/", "/a//b", "/\x00"} {
					var op *OpError
					if err := call(c, t, path); !errors.Is(err, ErrBadArguments) || !errors.As(err, &op) || op.Path != path {
						t.Errorf("%q: %v", path, err)
					}
				}
				call(c, t, "/")
				call(c, t, "/b")
				synctest.Wait()
				if want := []string{"/app/x", "/app/x/b"}; !slices.Equal(paths, want) {
					t.Errorf("the server saw %q, want %q", paths, want)
				}
			})
		})
	}
}

func TestChroot(t *testing.T) {
	c := &Client{chroot: "/app"}
	for server, want := range map[string]string{
		"/app": "/", "/app/a": "/a", "/apple": "/apple", "/zookeeper/config": "/zookeeper/config", "/other": "/other",
	} {
		if got := c.rel(server); got != want {
			t.Errorf("%s shows as %s, want %s", server, got, want)
		}
	}
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		e.serve = func(p *peer, h wire.RequestHeader, body []byte) bool {
			switch h.Op {
			case wire.OpGetEphemerals:
				p.reply(h.Xid, 0, &wire.EphemeralsResponse{Paths: []string{"/app/a", "/application", "/app"}})
			case wire.OpGetData:
				p.reply(h.Xid, 0, &wire.DataResponse{Data: []byte(pathOf(h.Op, body))})
			default:
				return false
			}
			return true
		}
		c := e.connect(Options{}, "10.0.0.1/app")
		if path, _, err := c.Create(t.Context(), "/a", nil); path != "/a" || err != nil {
			t.Errorf("created %q, %v", path, err)
		}
		if got, err := c.Ephemerals(t.Context(), "/"); fmt.Sprint(got) != "[/a /]" || err != nil {
			t.Errorf("ephemerals are %q, %v", got, err)
		}
		if data, _, err := c.Config(t.Context()); string(data) != "/zookeeper/config" || err != nil {
			t.Errorf("the configuration was read at %q, %v", data, err)
		}
	})
}

func TestParseServers(t *testing.T) {
	good := map[string]string{
		"zk":                       "[zk:2181] ",
		"zk:99":                    "[zk:99] ",
		"a,b:1, c":                 "[a:2181 b:1 c:2181] ",
		"a,b/app/x":                "[a:2181 b:2181] /app/x",
		"a/":                       "[a:2181] ",
		"10.0.0.1:2182":            "[10.0.0.1:2182] ",
		"[::1]":                    "[[::1]:2181] ",
		"::1":                      "[[::1]:2181] ",
		"[fd00::1]:2183,a":         "[[fd00::1]:2183 a:2181] ",
		"[fe80::1%eth0]:2183":      "[[fe80::1%eth0]:2183] ",
		"_zookeeper._tcp.zk,b/x":   "[_zookeeper._tcp.zk b:2181] /x",
		"_name_with_port:2181,,/y": "[_name_with_port:2181] /y",
	}
	for text, want := range good {
		list, chroot, err := parseServers(text)
		if got := fmt.Sprint(list, " ", chroot); got != want || err != nil {
			t.Errorf("%q is %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", ",", "/app", "a:0", "a:65536", "a:x", "a:-1", ":2181", "a:1:2", "[::1", "a//b", "a/b/", "[]", "a:"} {
		if list, chroot, err := parseServers(text); err == nil {
			t.Errorf("%q is accepted as %v %q", text, list, chroot)
		}
		if _, err := Open(text, nil); err == nil {
			t.Errorf("a client opens for %q", text)
		}
	}
}

// FuzzParseServers: a list that is accepted prints as a list with the same meaning.
func FuzzParseServers(f *testing.F) {
	for _, s := range []string{"a:1,[::1]:2/x", "_srv.x", "::1", "a,b,c", "[::1]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, chroot, err := parseServers(text)
		if err != nil {
			return
		}
		var out []string
		for _, s := range list {
			out = append(out, s.String())
		}
		again, root, err := parseServers(strings.Join(out, ",") + chroot)
		if err != nil || !slices.Equal(list, again) || root != chroot {
			t.Errorf("%q gives %q, that gives %v %q, %v", text, out, again, root, err)
		}
	})
}
