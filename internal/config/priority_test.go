package config

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bellwether/internal/ensemble"
)

// loadLines loads an ensemble of two voters and an observer with further lines.
func loadLines(t *testing.T, lines ...string) (*Config, error) {
	t.Helper()
	dir := t.TempDir()
	text := "dataDir=" + dir + "\ninitLimit=5\nsyncLimit=5\nclientPort=0\nserver.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2:observer\n" + strings.Join(lines, "\n") + "\n"
	file := filepath.Join(dir, "zoo.cfg")
	for name, text := range map[string]string{file: text, filepath.Join(dir, "myid"): "1\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Load(file, "")
}

// TestPriorities: leaderPriority.N must name a server and be a small number. A changed line needs a
// restart. While reconfigurations are possible, it may name a server that is not listed now.
func TestPriorities(t *testing.T) {
	c, err := loadLines(t, "leaderPriority.1=-3", "leaderPriority.2 = 10")
	if err != nil {
		t.Fatal(err)
	}
	if want := map[ensemble.ServerID]int{1: -3, 2: 10}; !maps.Equal(c.Ensemble.Priorities, want) || len(c.Notices) > 0 {
		t.Errorf("%v, %v", c.Ensemble.Priorities, c.Notices)
	}
	next, err := loadLines(t, "leaderPriority.1=-3", "leaderPriority.2=11")
	if err != nil {
		t.Fatal(err)
	}
	if _, changes := c.Reloaded(next); strings.Join(changes.Restart, " ") != "dataDir leaderPriority.2" {
		t.Errorf("%+v", changes)
	}
	for line, want := range map[string]string{
		"leaderPriority.4=1":    "leaderPriority.4=1 names no server",
		"leaderPriority.x=1":    "leaderPriority.x=1 names no server",
		"leaderPriority.1=1001": "leaderPriority.1=1001 is not a priority",
		"leaderPriority.1=":     "is not a priority",
	} {
		if _, err := loadLines(t, line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
	c, err = loadLines(t, "leaderPriority.3=1")
	if err != nil || len(c.Notices) != 1 || !strings.Contains(c.Notices[0].String(), "an observer never leads") {
		t.Errorf("%v, %v", c, err)
	}
	c, err = loadLines(t, "reconfigEnabled=true", "leaderPriority.4=1")
	if err != nil || c.Ensemble.Priorities[4] != 1 || len(c.Notices) != 1 || !strings.Contains(c.Notices[0].String(), "until a reconfiguration adds") {
		t.Errorf("%v, %v", c, err)
	}
	if _, err := loadLines(t, "reconfigEnabled=true", "leaderPriority.x=1"); err == nil {
		t.Error("the priority of a server that is no number is accepted")
	}
}
