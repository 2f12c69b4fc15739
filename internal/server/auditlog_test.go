package server

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bellwether/internal/config"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// auditConfig returns a configuration with an audit log in JSON.
func auditConfig(t *testing.T) *config.Config {
	c := testConfig()
	c.Audit = config.Audit{Enable: true, File: filepath.Join(t.TempDir(), "audit.log"), Format: "json"}
	return c
}

// records reads an audit log in JSON.
func records(t *testing.T, file string) (all []map[string]string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var r map[string]string
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all = append(all, r)
	}
	return all
}

// anonymousReader reads a tree without identities.
type anonymousReader struct{ tree.Client }

func (anonymousReader) Identities() []wire.ID { return nil }
func (anonymousReader) Reserve(wire.Zxid)     {}

// TestAuditOfLostConnections shows that a client cannot avoid the audit log by closing its
// connection before the answer.
func TestAuditOfLostConnections(t *testing.T) {
	cfg := auditConfig(t)
	r := start(t, Options{Config: cfg})
	const clients, writes = 20, 30
	want := map[string]int{}
	for i := range clients {
		c := r.connect()
		var all []byte
		for j := range writes {
			path := "/" + string(rune('a'+i)) + "-" + string(rune('a'+j))
			want[path]++
			all = append(all, request(int32(j+1), wire.OpCreate, &wire.CreateRequest{Path: path, ACL: wire.OpenACL()})...)
		}
		c.write(all)
		if i%2 == 0 {
			c.nc.Close() // the client's last requests may be lost on the way
			continue
		}
		for range writes {
			c.reply(nil)
		}
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, rec := range records(t, cfg.Audit.File) {
		if rec["operation"] == "create" && rec["result"] == "success" {
			if rec["session"] == "" || rec["ip"] != "127.0.0.1" || rec["user"] != "127.0.0.1" || rec["znode_type"] != "persistent" {
				t.Errorf("%v", rec)
			}
			got[rec["znode"]]++
		}
	}
	applied := 0
	for path := range want {
		var stat wire.StatResponse
		exists := r.Tree().Exists(anonymousReader{}, path, false, &stat) == wire.OK
		if n := got[path]; n > 1 || exists != (n == 1) {
			t.Errorf("%s: applied %v, %d records", path, exists, n)
		}
		if exists {
			applied++
		}
	}
	if applied < clients*writes/2 {
		t.Errorf("only %d of %d writes are applied", applied, clients*writes)
	}
}

// TestAuditOfAnEnsemble shows that only the server to which a client is connected records the
// client's changes, and that every server records the ephemeral znodes of a session that ends.
func TestAuditOfAnEnsemble(t *testing.T) {
	g := newTestEnsemble(t, 3, 0, false)
	dir := t.TempDir()
	file := func(m *testServer) string { return filepath.Join(dir, fmt.Sprint(m.id)) }
	g.change = func(c *config.Config) {
		c.Audit = config.Audit{Enable: true, File: filepath.Join(dir, fmt.Sprint(c.Ensemble.ID)), Format: "json"}
	}
	for _, m := range g.servers {
		g.start(m)
	}
	g.settled()
	at := g.servers[0]
	c := at.connect()
	c.call(wire.OpCreate, &wire.CreateRequest{Path: "/e", ACL: wire.OpenACL(), Flags: wire.FlagEphemeral}, nil)
	c.call(wire.OpCloseSession, nil, nil)
	for _, m := range g.servers {
		eventually(t, "the end of the session is recorded", func() bool {
			all := records(t, file(m))
			return len(all) > 0 && all[len(all)-1]["operation"] == "ephemeralZNodeDeletionOnSessionCloseOrExpire"
		})
		created := 0
		for _, rec := range records(t, file(m)) {
			if rec["operation"] == "create" {
				created++
			}
		}
		if want := map[bool]int{true: 1}[m == at]; created != want {
			t.Errorf("server %v records %d creates, want %d", m.id, created, want)
		}
	}
}

// TestAuditOfStartAndStop shows the records of a start and a stop, and that a server does
// not start if its audit log cannot be opened.
func TestAuditOfStartAndStop(t *testing.T) {
	cfg := auditConfig(t)
	r := start(t, Options{Config: cfg})
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	all := records(t, cfg.Audit.File)
	if len(all) != 2 || all[0]["operation"] != "serverStart" || all[0]["result"] != "success" || all[1]["operation"] != "serverStop" || all[1]["result"] != "invoked" {
		t.Errorf("%v", all)
	}
	cfg.Audit.File = filepath.Join(t.TempDir(), "missing", "audit.log")
	if _, err := New(Options{Config: cfg}); err == nil || !strings.Contains(err.Error(), "audit.file") {
		t.Errorf("a folder that does not exist: %v", err)
	}
}

// TestLostAuditRecordsAreCounted shows that a metric counts the records that the audit log has lost.
// Without an audit log the metric has no value.
func TestLostAuditRecordsAreCounted(t *testing.T) {
	const name = "audit_records_lost"
	r := start(t, Options{Config: auditConfig(t)})
	if got := r.figure(name); got != 0 {
		t.Errorf("%v at the start", got)
	}
	r.audit.Lose()
	if got := r.figure(name); got != 1 {
		t.Errorf("%v after a loss", got)
	}
	if got := start(t, Options{}).figure(name); !math.IsNaN(got) && got != -1 {
		t.Errorf("%v without an audit log", got)
	}
}
