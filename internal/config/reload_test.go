package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bellwether/internal/ensemble"
)

// loadText loads a zoo.cfg in dir, next to a myid. It replaces DIR in the text by dir.
func loadText(t *testing.T, dir, text string) *Config {
	t.Helper()
	file := filepath.Join(dir, "zoo.cfg")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "DIR", dir)), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := Load(file, "")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const three = "dataDir=DIR\nclientPort=2181\ninitLimit=5\nsyncLimit=2\ntickTime=2000\n" +
	"server.1=a:2888:3888\nserver.2=b:2888:3888\nserver.3=c:2888:3888\n"

// TestReloadedNamesEachChange shows that Reloaded applies the live keys and no others, that
// it names the changed keys of both kinds, and that it names no key whose value is equal.
func TestReloadedNamesEachChange(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "myid"), []byte("1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	before := loadText(t, dir, three)
	for _, c := range []struct{ change, says string }{
		{"", "no key has changed"},
		{"# a comment\nmaxClientCnxns=60\nforceSync=YES\npreAllocSize=0x10000\nserverCnxnFactory=x\n", "no key has changed"},
		{"maxClientCnxns=61\nautopurge.purgeInterval=3\n", "took effect: maxClientCnxns, autopurge.purgeInterval"},
		{"pathBytesPerSecond=/b/c:5, /a:b:7\nclientRequestsPerSecond=9\n", "took effect: clientRequestsPerSecond, pathBytesPerSecond"},
		{"tickTime=3000\n", "need a restart: tickTime"},
		{"server.3=d:2888:3888\nserver.4=e:2888:3888:observer\nsyncLimit=3\nsnapCount=9\n", "took effect: snapCount; need a restart: syncLimit, server.3, server.4"},
	} {
		now, changes := before.Reloaded(loadText(t, dir, three+c.change))
		if changes.String() != c.says {
			t.Errorf("%q: %s, want %s", c.change, changes, c.says)
		}
		if now.TickTime != 2*time.Second || now.Ensemble.SyncLimit != 2 || len(now.Ensemble.Members.Servers()) != 3 {
			t.Errorf("%q: a key that needs a restart took effect: %+v", c.change, now)
		}
		// A key that needs a restart is named at each reload until it has its old value again.
		if _, again := now.Reloaded(loadText(t, dir, three+c.change)); strings.Join(again.Restart, " ") != strings.Join(changes.Restart, " ") || len(again.Taken) > 0 {
			t.Errorf("%q: second reload: %s", c.change, again)
		}
		if _, back := now.Reloaded(loadText(t, dir, three)); len(back.Restart) > 0 || strings.Join(back.Taken, " ") != strings.Join(changes.Taken, " ") {
			t.Errorf("%q: old value again: %s", c.change, back)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "myid"), []byte("2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	now, changes := before.Reloaded(loadText(t, dir, three))
	if changes.String() != "need a restart: myid" || now.Ensemble.ID != 1 {
		t.Errorf("myid: %s, %d", changes, now.Ensemble.ID)
	}
}

// TestLiveKeysAreHonoured shows that every live key has an effect.
func TestLiveKeysAreHonoured(t *testing.T) {
	for _, s := range table {
		for _, k := range s.keys {
			if k.live && (k.into == nil || k.status != honoured) {
				t.Errorf("%s is live, but has no effect", k.name)
			}
		}
	}
}

// TestReloadAfterAReconfiguration: a server whose membership has changed while it runs reads the files
// that it has written itself. They hold nothing new, also if the client port has moved.
func TestReloadAfterAReconfiguration(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "myid"), []byte("1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := loadText(t, dir, three+"reconfigEnabled=true\n")
	for version, client := range []string{"", ";127.0.0.9:2182", ";2183"} {
		m, err := ensemble.Parse("server.1=a:2888:3888:participant" + client + "\nserver.4=d:2888:3888:participant")
		if err != nil {
			t.Fatal(err)
		}
		m = m.WithVersion(int64(version + 1))
		file := m.FileName(c.File)
		if err := os.WriteFile(file, []byte(m.FileText(false)), 0o644); err != nil {
			t.Fatal(err)
		}
		c = c.WithMembers(m, file)
		before, err := os.ReadFile(c.File)
		if err != nil {
			t.Fatal(err)
		}
		static, err := ensemble.StaticText(string(before), file, client != "")
		if err != nil {
			t.Fatal(err)
		}
		if _, changes := c.Reloaded(loadText(t, dir, static)); changes.String() != "no key has changed" {
			t.Errorf("version %d: %s", version, changes)
		}
	}
}
