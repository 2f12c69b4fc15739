package interop

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/wire"
	"bellwether/zk"
)

// TestAuditLines compares the audit log of a client's changes with ZooKeeper's, byte for
// byte but for the session id. Ephemeral znodes of one session may end in any order.
// ZooKeeper 3.8.0 does not record znodes with a TTL, unlike 3.9.5; these are checked against
// the code of 3.9.5.
func TestAuditLines(t *testing.T) {
	want := auditLines(t, target.Apache)
	if len(want) < 25 {
		t.Fatalf("ZooKeeper has written %d lines: %q", len(want), want)
	}
	got := auditLines(t, target.Bellwether)
	for i := range max(len(got), len(want)) {
		var g, w string
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Errorf("line %d:\ngot  %q\nwant %q", i, g, w)
		}
	}
}

// auditLines starts a server, changes its tree in every way, stops the server, and returns
// the lines of the audit log without their time.
func auditLines(t *testing.T, kind target.Kind) []string {
	s := target.StartFor(t, kind, target.Options{Extra: map[string]string{"audit.enable": "true", "extendedTypesEnabled": "true"}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := zk.Connect(ctx, s.Addr, &zk.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %s: %v", kind, what, err)
		}
	}
	fails := func(what string, err error) {
		t.Helper()
		if err == nil {
			t.Fatalf("%s: %s has not failed", kind, what)
		}
	}
	create := func(path string, opts ...zk.CreateOption) error {
		_, _, err := c.Create(ctx, path, []byte("x"), opts...)
		return err
	}
	must("create", create("/a"))
	must("create a child", create("/a/Grüße 日本"))
	must("create a sequential znode", create("/a/s-", zk.Sequential))
	must("create an ephemeral", create("/a/e", zk.Ephemeral))
	must("create a sequential ephemeral", create("/a/es-", zk.Ephemeral, zk.Sequential))
	must("create a container", create("/a/c", zk.Container))
	must("create a znode with a TTL", create("/a/t", zk.TTL(time.Hour)))
	must("create a sequential znode with a TTL", create("/a/ts-", zk.TTL(time.Hour), zk.Sequential))
	fails("create what exists", create("/a"))
	fails("create without a parent", create("/missing/x", zk.Sequential))
	_, err = c.Set(ctx, "/a", []byte("y"), -1)
	must("set", err)
	_, err = c.Set(ctx, "/a", []byte("y"), 17)
	fails("set another version", err)
	_, _, err = c.Get(ctx, "/a")
	must("get", err)
	acls := zk.ACLs{wire.OpenACL()[0], {Perms: wire.PermRead | wire.PermAdmin, ID: wire.ID{Scheme: "digest", ID: wire.DigestID("alice:secret")}}}
	_, err = c.SetACL(ctx, "/a", acls, -1)
	must("set an ACL", err)
	_, err = c.SetACL(ctx, "/missing", acls, -1)
	fails("set the ACL of a missing znode", err)
	fails("delete a znode with children", c.Delete(ctx, "/a", -1))
	must("delete", c.Delete(ctx, "/a/t", -1))
	_, err = c.Multi(ctx, zk.CreateOp("/m", nil), zk.CreateOp("/m/s-", nil, zk.Sequential), zk.CreateOp("/m/e", nil, zk.Ephemeral), zk.CheckOp("/m", 0),
		zk.SetOp("/m", []byte("z"), 0), zk.CreateOp("/m/t", nil, zk.TTL(time.Hour)), zk.DeleteOp("/m/t", -1))
	must("multi", err)
	_, err = c.Multi(ctx, zk.CreateOp("/m2", nil), zk.DeleteOp("/missing", -1))
	fails("a multi that must fail", err)
	must("authenticate", c.AddAuth(ctx, zk.Auth{Scheme: "digest", Data: []byte("alice:secret")}))
	must("create as alice", create("/alice"))
	must("close", c.Close(ctx))
	must("stop", s.Stop())

	text := s.Log()
	if kind == target.Bellwether {
		b, err := os.ReadFile(filepath.Join(s.Data, "zookeeper_audit.log"))
		must("read the audit log", err)
		text = string(b)
	}
	var lines []string
	session := regexp.MustCompile(`session=0x[0-9a-f]+`)
	for line := range strings.Lines(text) {
		if i := strings.Index(line, "Slf4jAuditLogger"); i >= 0 {
			_, record, _ := strings.Cut(line[i:], " ")
			record = strings.TrimPrefix(record, "- ") // slf4j-simple
			lines = append(lines, strings.TrimSuffix(session.ReplaceAllString(record, "session=ID"), "\n"))
		}
	}
	withTTL := func(line string) bool { return strings.Contains(line, "_with_ttl") }
	if kind == target.Bellwether {
		const begin = "session=ID\tuser=127.0.0.1\tip=127.0.0.1\toperation=create\tznode="
		for _, want := range []string{begin + "/a/t\tznode_type=persistent_with_ttl\tresult=success", begin + "/a/ts-0000000006\tznode_type=persistent_sequential_with_ttl\tresult=success"} {
			if !slices.Contains(lines, want) {
				t.Errorf("no line %q", want)
			}
		}
	}
	lines = slices.DeleteFunc(lines, withTTL)
	if first := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, "ephemeralZNode") }); first >= 0 {
		slices.Sort(lines[first : len(lines)-1]) // all lines except the last, which reports the server's stop
	}
	return lines
}
