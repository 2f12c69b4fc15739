package tree

import (
	"fmt"
	"strings"
	"testing"

	"bellwether/wire"
)

// setQuota makes a quota as clients do.
func (w *world) setQuota(path, limits string) {
	w.Helper()
	at := quotaPath
	for _, name := range strings.Split(path[1:], "/") {
		if at += "/" + name; !w.exists(at) {
			w.ok(create(at, 0))
		}
	}
	w.ok(request(wire.OpCreate, &wire.CreateRequest{Path: at + "/" + limitsName, Data: []byte(limits), ACL: wire.OpenACL()}))
	w.ok(request(wire.OpCreate, &wire.CreateRequest{Path: at + "/" + statsName, Data: []byte("?"), ACL: wire.OpenACL()}))
}

func (w *world) usage(path string) string {
	w.Helper()
	var out wire.DataResponse
	if code := w.tree.GetData(&conn{}, quotaPath+path+"/"+statsName, false, &out); code != wire.OK {
		w.Fatalf("usage of %s: %v", path, code)
	}
	if out.Stat.DataLength != int32(len(out.Data)) || out.Stat.Version != 0 || out.Stat.Mzxid != out.Stat.Czxid {
		w.Errorf("stat of the usage %+v", out.Stat)
	}
	return string(out.Data)
}

func TestParseQuota(t *testing.T) {
	none := quota{-1, -1, -1, -1}
	for text, want := range map[string]quota{
		"count=1,bytes=2": {1, 2, -1, -1},
		"count=10,bytes=1000=;byteHardLimit=2000;countHardLimit=-1": {10, 1000, -1, 2000},
		"count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=5":      {-1, -1, 5, -1},
		"bytes=7;count=8,other=9":                                   {8, 7, -1, -1},
		"":                                                          none, ",;": none, "other=1": none, "=5": none, "count==5": none,
		"count=+3,;bytes=4=;;count=05,": {5, 4, -1, -1},
		"countHardLimit=1=x":            {-1, -1, 1, -1},
	} {
		if got, ok := parseQuota(text); got != want || !ok {
			t.Errorf("%q: %+v %v", text, got, ok)
		}
	}
	for _, text := range []string{
		"nonsense", "count", "count=", "=", "count=1,bytes", "count=x,bytes=2", "count=1,bytes=x", ",count=1", "count= 1", "count=1.5",
		"count=9223372036854775808", "count=0x1", "count=1_0", "\xff",
	} {
		if got, ok := parseQuota(text); ok {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

// TestQuotaUsage: the usage follows creates, deletes and changes of data
// below the longest prefix, without a transaction, a stat or an event.
func TestQuotaUsage(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(create("/a", 0))
	w.ok(create("/a/b", 0))
	w.setQuota("/a", "count=3,bytes=20")
	if got := w.usage("/a"); got != "count=2,bytes=6" {
		t.Fatalf("usage %s", got)
	}
	c := &conn{}
	w.tree.GetData(c, quotaPath+"/a/"+statsName, true, new(wire.DataResponse))
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
	w.ok(remove(quotaPath+"/a/b/"+limitsName, -1))
	w.ok(create("/a/b/f", 0))
	if a, b := w.usage("/a"), w.usage("/a/b"); a != "count=5,bytes=28" || b != "count=1,bytes=10" {
		t.Errorf("usage without the inner limits %s, %s", a, b)
	}
	if e := c.events(); len(e) != 0 {
		t.Errorf("events %v", e)
	}
	want := "[quota exceeded: /a has 4 znodes, soft limit 3 quota exceeded: /a has 22 bytes, soft limit 20]"
	if h := fmt.Sprint(w.tree.Happenings()); h != want {
		t.Errorf("happenings %s", h)
	}
	if h := w.tree.Happenings(); h != nil {
		t.Errorf("told twice: %v", h)
	}
}

// TestQuotaUsageOverwritten: what a client writes over the usage does not last.
func TestQuotaUsageOverwritten(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(create("/a", 0))
	w.setQuota("/a", "count=-1,bytes=-1")
	w.ok(setData(quotaPath+"/a/"+statsName, "garbage", -1))
	w.ok(create("/a/b", 0))
	if got := string(w.tree.find(quotaPath + "/a/" + statsName).data()); got != "count=2,bytes=6" {
		t.Errorf("usage %s", got)
	}
}

// TestQuotaEnforced: hard limits refuse, soft ones do not, and without the
// switch nothing does.
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
		told := len(w.tree.Happenings()) > 0
		if over := row.limits[:7] != "count=9"; told != over {
			t.Errorf("%s: told %v", row.limits, told)
		}
	}
}

// TestQuotaUnreadable: limits that are no quota refuse every write below, alone
// and in a multi, are reported, and can be set anew.
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
		all := w.tree.Happenings()
		for _, h := range all {
			if h.String() != text {
				t.Errorf("reported %q", h)
			}
		}
		if len(all) != told || w.exists("/m") {
			t.Errorf("enforced %v: %d reports, want %d; /m exists: %v", enforce, len(all), told, w.exists("/m"))
		}
		w.ok(setData(quotaPath+"/a/"+limitsName, "countHardLimit=9", -1))
		w.expect("create after", create("/a/c", 0), wire.OK)
	}
}

// TestNoQuotaOfRoot: limits right below /zookeeper/quota mean nothing.
func TestNoQuotaOfRoot(t *testing.T) {
	w := newWorld(t, Options{EnforceQuota: true})
	w.ok(request(wire.OpCreate, &wire.CreateRequest{Path: quotaPath + "/" + limitsName, ACL: wire.OpenACL(),
		Data: []byte("count=-1,bytes=-1=;byteHardLimit=0;countHardLimit=0")}))
	w.ok(request(wire.OpCreate, &wire.CreateRequest{Path: quotaPath + "/" + statsName, Data: []byte("mine"), ACL: wire.OpenACL()}))
	w.ok(create("/a", 0))
	if got := string(w.tree.find(quotaPath + "/" + statsName).data()); got != "mine" {
		t.Errorf("usage of the root %q", got)
	}
}

// TestQuotaRecount: loading counts the usage anew where there are limits.
func TestQuotaRecount(t *testing.T) {
	w := newWorld(t, Options{})
	w.ok(create("/a", 0))
	w.ok(create("/b", 0))
	w.setQuota("/a", "count=9,bytes=9")
	w.setQuota("/b", "count=9,bytes=9")
	w.ok(setData(quotaPath+"/a/"+statsName, "count=7,bytes=7", -1))
	w.ok(remove(quotaPath+"/b/"+limitsName, -1))
	w.ok(create("/b/kid", 0))
	copied := New(Options{})
	load(t, w.tree.Snapshot(), copied, func() {}).Finish()
	for path, want := range map[string]string{"/a": "count=1,bytes=2", "/b": "count=1,bytes=2"} {
		if got := string(copied.find(quotaPath + path + "/" + statsName).data()); got != want {
			t.Errorf("usage of %s is %s, want %s", path, got, want)
		}
	}
}
