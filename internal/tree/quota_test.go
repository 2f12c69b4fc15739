package tree

import (
	"fmt"
	"strings"
	"testing"

	"bellwether/internal/quota"
	"bellwether/wire"
)

// setQuota sets a quota in the same way as clients do.
func (w *world) setQuota(path, limits string) {
	w.Helper()
	at := quota.Root
	for _, name := range strings.Split(path[1:], "/") {
		if at += "/" + name; !w.exists(at) {
			w.ok(create(at, 0))
		}
	}
	w.ok(request(wire.OpCreate, &wire.CreateRequest{Path: at + "/" + quota.LimitsName, Data: []byte(limits), ACL: wire.OpenACL()}))
	w.ok(request(wire.OpCreate, &wire.CreateRequest{Path: at + "/" + quota.StatsName, Data: []byte("?"), ACL: wire.OpenACL()}))
}

func (w *world) usage(path string) string {
	w.Helper()
	var out wire.DataResponse
	if code := w.tree.GetData(&conn{}, quota.Root+path+"/"+quota.StatsName, false, &out); code != wire.OK {
		w.Fatalf("usage of %s: %v", path, code)
	}
	if out.Stat.DataLength != int32(len(out.Data)) || out.Stat.Version != 0 || out.Stat.Mzxid != out.Stat.Czxid {
		w.Errorf("stat of the usage %+v", out.Stat)
	}
	return string(out.Data)
}

// TestQuotaUsage: creates, deletes and changes of data update the usage of the longest
// path with a quota, without a transaction, a change of a stat or an event.
func TestQuotaUsage(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(create("/a", 0))
	w.ok(create("/a/b", 0))
	w.setQuota("/a", "count=3,bytes=20")
	if got := w.usage("/a"); got != "count=2,bytes=6" {
		t.Fatalf("usage %s", got)
	}
	c := &conn{}
	w.tree.GetData(c, quota.Root+"/a/"+quota.StatsName, true, new(wire.DataResponse))
	c.take()
	w.ok(create("/a/b/c", 0))
	w.ok(setData("/a/b", "0123456789", -1))
	w.ok(create("/ab", 0))
	if got := w.usage("/a"); got != "count=3,bytes=18" {
		t.Errorf("usage %s", got)
	}
	w.setQuota("/a/b", "count=-1,bytes=-1")
	w.ok(create("/a/b/d", wire.FlagEphemeral))
	w.ok(create("/a/e", 0))
	if a, b := w.usage("/a"), w.usage("/a/b"); a != "count=4,bytes=22" || b != "count=3,bytes=22" {
		t.Errorf("usage %s, %s", a, b)
	}
	w.do(closeSession(alice))
	w.open(alice)
	w.ok(remove("/a/b/c", -1))
	if b := w.usage("/a/b"); b != "count=1,bytes=10" {
		t.Errorf("usage %s", b)
	}
	w.ok(remove(quota.Root+"/a/b/"+quota.LimitsName, -1))
	w.ok(create("/a/b/f", 0))
	if a, b := w.usage("/a"), w.usage("/a/b"); a != "count=5,bytes=28" || b != "count=1,bytes=10" {
		t.Errorf("usage without the inner limits %s, %s", a, b)
	}
	if e := c.events(); len(e) != 0 {
		t.Errorf("events %v", e)
	}
	want := "[quota exceeded: /a has 4 znodes, soft limit 3 quota exceeded: /a has 22 bytes, soft limit 20]"
	if h := fmt.Sprint(w.tree.Observations()); h != want {
		t.Errorf("observations %s", h)
	}
	if h := w.tree.Observations(); h != nil {
		t.Errorf("reported twice: %v", h)
	}
}

// TestHardLimitOfZero: 0 is a hard limit, which counts in place of the soft one.
func TestHardLimitOfZero(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(create("/a", 0))
	w.ok(setData("/a", "", -1))
	w.setQuota("/a", "count=-1,bytes=100=;byteHardLimit=0;countHardLimit=-1")
	w.ok(setData("/a", "x", -1))
	if h := fmt.Sprint(w.tree.Observations()); h != "[quota exceeded: /a has 1 bytes, hard limit 0]" {
		t.Errorf("observations %s", h)
	}
}

// TestQuotaUsageOverwritten: the server replaces a usage that a client has written.
func TestQuotaUsageOverwritten(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(create("/a", 0))
	w.setQuota("/a", "count=-1,bytes=-1")
	w.ok(setData(quota.Root+"/a/"+quota.StatsName, "garbage", -1))
	w.ok(create("/a/b", 0))
	if got := string(w.tree.find(quota.Root + "/a/" + quota.StatsName).data()); got != "count=2,bytes=6" {
		t.Errorf("usage %s", got)
	}
}

// TestQuotaEnforced: a write above a hard limit is refused if enforceQuota is set. A soft
// limit never refuses.
func TestQuotaEnforced(t *testing.T) {
	for _, row := range []struct {
		enforce bool
		limits  string
		create  wire.Code
		grow    wire.Code
	}{
		{false, "count=-1,bytes=-1=;byteHardLimit=3;countHardLimit=1", wire.OK, wire.OK},
		{true, "count=1,bytes=3", wire.OK, wire.OK},
		{true, "count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=1", wire.ErrQuotaExceeded, wire.OK},
		{true, "count=-1,bytes=-1=;byteHardLimit=3;countHardLimit=-1", wire.ErrQuotaExceeded, wire.ErrQuotaExceeded},
		{true, "count=9,bytes=9=;byteHardLimit=99;countHardLimit=99", wire.OK, wire.OK},
	} {
		w := newWorld(t, Options{EnforceQuota: row.enforce})
		w.ok(create("/a", 0))
		w.setQuota("/a", row.limits)
		w.expect(row.limits+" create", create("/a/b", 0), row.create)
		w.expect(row.limits+" grow", setData("/a", "0123", -1), row.grow)
		w.expect(row.limits+" shrink", setData("/a", "0", -1), wire.OK)
		w.expect(row.limits+" elsewhere", create("/ab", 0), wire.OK)
		told := len(w.tree.Observations()) > 0
		if over := row.limits[:7] != "count=9"; told != over {
			t.Errorf("%s: reported %v", row.limits, told)
		}
	}
}

// TestQuotaUnreadable: if the text of a quota's limits cannot be parsed, every write
// below its path is refused, by itself and in a multi. The bad limits are reported, and a
// client can set them again.
func TestQuotaUnreadable(t *testing.T) {
	for _, enforce := range []bool{false, true} {
		w := newWorld(t, Options{EnforceQuota: enforce})
		code, wrong, told := wire.OK, wire.ErrBadVersion, 0
		if enforce {
			code, wrong, told = wire.ErrMarshalling, wire.ErrMarshalling, 3
		}
		w.ok(create("/a", 0))
		w.setQuota("/a", "countHardLimit=x")
		w.expect("create", create("/a/b", 0), code)
		w.expect("set", setData("/a", "", 77), wrong)
		w.expect("multi", multi(opCreate("/m", 0), opCreate("/a/m", 0), opDelete("/a/m"), opDelete("/m")), code)
		w.expect("elsewhere", create("/ab", 0), wire.OK)
		const text = `quota of /a cannot be read: /zookeeper/quota/a/zookeeper_limits holds "countHardLimit=x"; ` +
			`writes below /a are refused until it is set anew or deleted`
		all := w.tree.Observations()
		for _, h := range all {
			if h.String() != text {
				t.Errorf("reported %q", h)
			}
		}
		if len(all) != told || w.exists("/m") {
			t.Errorf("enforced %v: %d reports, want %d; /m exists: %v", enforce, len(all), told, w.exists("/m"))
		}
		w.ok(setData(quota.Root+"/a/"+quota.LimitsName, "countHardLimit=9", -1))
		w.expect("create after", create("/a/c", 0), wire.OK)
	}
}

// TestNoQuotaOfRoot: limits directly below /zookeeper/quota have no effect.
func TestNoQuotaOfRoot(t *testing.T) {
	w := newWorld(t, Options{EnforceQuota: true})
	w.ok(request(wire.OpCreate, &wire.CreateRequest{Path: quota.Root + "/" + quota.LimitsName, ACL: wire.OpenACL(),
		Data: []byte("count=-1,bytes=-1=;byteHardLimit=0;countHardLimit=0")}))
	w.ok(request(wire.OpCreate, &wire.CreateRequest{Path: quota.Root + "/" + quota.StatsName, Data: []byte("mine"), ACL: wire.OpenACL()}))
	w.ok(create("/a", 0))
	if got := string(w.tree.find(quota.Root + "/" + quota.StatsName).data()); got != "mine" {
		t.Errorf("usage of the root %q", got)
	}
}

// TestQuotaRecount: loading a snapshot counts the usage again for each quota.
func TestQuotaRecount(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(create("/a", 0))
	w.ok(create("/b", 0))
	w.setQuota("/a", "count=9,bytes=9")
	w.setQuota("/b", "count=9,bytes=9")
	w.ok(setData(quota.Root+"/a/"+quota.StatsName, "count=7,bytes=7", -1))
	w.ok(remove(quota.Root+"/b/"+quota.LimitsName, -1))
	w.ok(create("/b/kid", 0))
	copied := New(Options{})
	load(t, w.tree.Snapshot(), copied, func() {}).Finish()
	for path, want := range map[string]string{"/a": "count=1,bytes=2", "/b": "count=1,bytes=2"} {
		if got := string(copied.find(quota.Root + path + "/" + quota.StatsName).data()); got != want {
			t.Errorf("usage of %s is %s, want %s", path, got, want)
		}
	}
}
