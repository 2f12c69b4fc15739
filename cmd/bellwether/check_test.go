package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bellwether/internal/config"
)

// TestCheckTriesTheDirectoryOfTheConfiguration: with reconfigEnabled=true the directory of zoo.cfg must be writable, and the
// directory to which zoo.cfg leads if it is a symbolic link. A start fails only if it cannot write the backup of zoo.cfg.
func TestCheckTriesTheDirectoryOfTheConfiguration(t *testing.T) {
	locked := fmt.Sprintf("/proc/%d/status", os.Getpid()) // nobody can create a file beside it
	if _, err := os.Stat(locked); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, link := filepath.Join(dir, "zoo.cfg"), filepath.Join(dir, "link.cfg")
	for name, text := range map[string]string{
		"zoo.cfg": "dataDir=" + dir + "\ninitLimit=5\nsyncLimit=5\nreconfigEnabled=true\nserver.1=127.0.0.1:1:2;3\nserver.2=127.0.0.1:4:5;6\n",
		"myid":    "1",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(locked, link); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		what, file string
		change     func(c *config.Config)
		fails      bool
		stale      int
	}{
		{"writable", file, func(*config.Config) {}, false, 0},
		{"not writable", locked, func(*config.Config) {}, true, 0},
		{"not writable, with a dynamic file", locked, func(c *config.Config) { c.Ensemble.DynamicFile = "/x" }, false, 1},
		{"leads to where nothing is writable", link, func(*config.Config) {}, false, 1},
		{"the membership does not change", locked, func(c *config.Config) { c.Tree.Reconfig = false }, false, 0},
	} {
		c, err := config.Load(file, "")
		if err != nil {
			t.Fatal(err)
		}
		c.File = x.file
		x.change(c)
		stale, err := tryMemberFiles(c)
		if (err != nil) != x.fails || len(stale) != x.stale {
			t.Errorf("%s: %v, %v", x.what, stale, err)
		}
		if text := fmt.Sprint(stale, err); (x.fails || x.stale > 0) && !strings.Contains(text, "write to /proc/") {
			t.Errorf("%s: %s", x.what, text)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
