package audit

import (
	"encoding/json"
	"testing"

	"bellwether/wire"
)

// TestRecordsAreZooKeepers compares the text of records with lines that ZooKeeper 3.8.0
// wrote, without their time.
func TestRecordsAreZooKeepers(t *testing.T) {
	acl := []wire.ACL{wire.OpenACL()[0], {Perms: wire.PermAll, ID: wire.ID{Scheme: "digest", ID: "alice:aYXl="}}}
	for _, c := range []struct {
		record Record
		want   string
	}{
		{Record{User: "root", Operation: OpStart, Result: Success}, "user=root\toperation=serverStart\tresult=success"},
		{Record{Session: 0x100000ed48f0000, User: "alice,127.0.0.1", IP: "127.0.0.1", Operation: OpCreate, Znode: "/app",
			ZnodeType: ZnodeType(wire.FlagPersistent), Result: Success},
			"session=0x100000ed48f0000\tuser=alice,127.0.0.1\tip=127.0.0.1\toperation=create\tznode=/app\tznode_type=persistent\tresult=success"},
		{Record{Session: 0x100000ed48f0000, User: "alice,127.0.0.1", IP: "127.0.0.1", Operation: OpSetACL, Znode: "/acl/changed", ACL: ACL(acl), Result: Success},
			"session=0x100000ed48f0000\tuser=alice,127.0.0.1\tip=127.0.0.1\toperation=setAcl\tznode=/acl/changed\tacl=world:anyone:cdrwadigest:alice:aYXl=:cdrwa\tresult=success"},
		{Record{Session: 0x100000ed48f0000, User: "127.0.0.1", IP: "127.0.0.1", Operation: OpMulti, Result: Failure},
			"session=0x100000ed48f0000\tuser=127.0.0.1\tip=127.0.0.1\toperation=multiOperation\tresult=failure"},
	} {
		if got := string(c.record.AppendText(nil)); got != c.want {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
}

// TestNamesBeginNoLine shows that a name with a line break or a tab stays within its field, and that all
// other characters are written unchanged.
func TestNamesBeginNoLine(t *testing.T) {
	r := Record{User: "eve\tresult=success", Znode: "/a\nuser=root", Operation: OpCreate, ACL: "\u0085\u2028\xff", Result: Failure}
	want := `user=eve\tresult=success` + "\t" + `operation=create` + "\t" + `znode=/a\nuser=root` + "\t" + `acl=\u0085\u2028\xff` + "\t" + `result=failure`
	if got := string(r.AppendText(nil)); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	r = Record{Znode: "/Grüße/日本", Operation: OpDelete, Result: Success}
	if got, want := string(r.AppendText(nil)), "operation=delete\tznode=/Grüße/日本\tresult=success"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// FuzzRecord checks that a record with any names is one line of text with the fields that
// were given, and valid JSON.
func FuzzRecord(f *testing.F) {
	f.Add("alice", "/a", "world:anyone:r")
	f.Add("a\tb", "/\n", "\xff")
	f.Fuzz(func(t *testing.T, user, znode, acl string) {
		r := Record{User: user, Znode: znode, ACL: acl, Operation: OpSetACL, Result: Success}
		fields := 2
		for _, s := range []string{user, znode, acl} {
			if s != "" {
				fields++
			}
		}
		tabs := 0
		for _, c := range string(r.AppendText(nil)) {
			if c == '\t' {
				tabs++
			}
			if c != '\t' && c < ' ' {
				t.Fatalf("control character %q", c)
			}
		}
		if tabs != fields-1 {
			t.Fatalf("%d tabs between %d fields", tabs, fields)
		}
		var back map[string]string
		if err := json.Unmarshal(r.AppendJSON(nil), &back); err != nil || len(back) != fields {
			t.Fatalf("JSON %s: %v, %d fields", r.AppendJSON(nil), err, len(back))
		}
	})
}
