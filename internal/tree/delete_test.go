package tree

import (
	"fmt"
	"testing"

	"bellwether/wire"
)

func TestDeleteErrorOrder(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(createACL("/closed", acl(31&^8, "world:anyone")))
	w.ok(create("/closed/kid", 0))
	w.ok(create("/p", 0))
	w.ok(create("/p/kid", 0))
	const dead = wire.SessionID(99)
	for _, row := range []struct {
		name string
		req  *Request
		want wire.Code
	}{
		{"cut short", &Request{Session: dead, Op: wire.OpDelete, Body: []byte{0}}, wire.ErrMarshalling},
		{"session", remove("nope", 0).by(dead), wire.ErrSessionExpired},
		{"no slash", remove("nope", 0), wire.ErrBadArguments},
		{"empty", remove("", 0), wire.ErrBadArguments},
		{"nul", remove("/missing/\x00", 0), wire.ErrBadArguments},
		{"root", remove("/", 0), wire.ErrBadArguments},
		{"zookeeper", remove("/zookeeper", 7), wire.ErrBadArguments},
		{"quota", remove("/zookeeper/quota", 7), wire.ErrBadArguments},
		{"config", remove("/zookeeper/config", 7), wire.ErrBadArguments},
		{"parent", remove("/missing/x", 7), wire.ErrNoNode},
		{"permission before existence", remove("/closed/missing", 7), wire.ErrNoAuth},
		{"permission before version", remove("/closed/kid", 7), wire.ErrNoAuth},
		{"existence", remove("/p/missing", 7), wire.ErrNoNode},
		{"slash at the end", remove("/p/", 7), wire.ErrNoNode},
		{"version before children", remove("/p", 7), wire.ErrBadVersion},
		{"version -2", remove("/p", -2), wire.ErrBadVersion},
		{"children", remove("/p", 0), wire.ErrNotEmpty},
		{"fine", remove("/p/kid", 0), wire.OK},
		{"fine, any version", remove("/p", -1), wire.OK},
	} {
		w.expect(row.name, row.req, row.want)
	}
}

func deleteContainer(path string) *Request {
	return request(wire.OpDeleteContainer, &wire.PathRequest{Path: path}).by(0)
}

// TestDueContainers: a container is due for deletion when it has become empty, and a TTL
// znode when it has had no child and no write for its TTL. If a znode is no longer due
// when the deletion is prepared, it stays, and no zxid is used.
func TestDueContainers(t *testing.T) {
	w := newWorld(t, Options{ExtendedTypes: true, ContainerMaxNeverUsedMS: 1000})
	w.ok(container("/used"))
	w.ok(create("/used/kid", 0))
	w.ok(container("/fresh"))
	w.ok(createTTL("/ttl", 5, 500))
	w.ok(create("/plain", 0))
	w.ok(create("/eph", wire.FlagEphemeral))
	made := w.now
	due := func(now int64, want string) {
		t.Helper()
		if got := fmt.Sprint(w.tree.DueContainers(now)); got != want {
			t.Errorf("due: %s, want %s", got, want)
		}
	}
	due(made, "[]")
	w.ok(remove("/used/kid", -1))
	due(made, "[/used]")
	due(made+499, "[/ttl /used]")
	due(made+2000, "[/fresh /ttl /used]")
	w.now = made + 400
	w.ok(setData("/ttl", "again", -1))
	due(made+700, "[/used]")

	z := w.z
	for _, path := range []string{"/plain", "/eph", "/missing", "/ttl", "/fresh", "/zookeeper", "/"} {
		if txn, code := w.prepare(deleteContainer(path)); txn != nil || code == wire.OK {
			t.Errorf("%s: transaction %v, code %v", path, txn, code)
		}
	}
	w.ok(create("/used/again", 0))
	if txn, code := w.prepare(deleteContainer("/used")); txn != nil || code != wire.ErrNotEmpty {
		t.Errorf("container with a child: %v, %v", txn, code)
	}
	if w.z != z+1 {
		t.Errorf("zxids used: %d", w.z-z)
	}
	w.ok(remove("/used/again", -1))
	c := &conn{}
	w.tree.GetData(c, "/used", true, new(wire.DataResponse))
	c.take()
	w.ok(deleteContainer("/used"))
	if got := fmt.Sprint(c.events()); got != fmt.Sprintf("[NodeDeleted /used %d]", w.z) {
		t.Errorf("events %s", got)
	}
	w.now += 5000
	w.ok(deleteContainer("/ttl"))
	if c := w.tree.Counts(); c.TTLs != 0 || c.Containers != 1 {
		t.Errorf("counts %+v", c)
	}
	if txn, code := w.prepare(request(wire.OpDeleteContainer, &wire.PathRequest{Path: "/fresh"})); txn != nil || code != wire.ErrUnimplemented {
		t.Errorf("deleteContainer of a client: %v, %v", txn, code)
	}
}
