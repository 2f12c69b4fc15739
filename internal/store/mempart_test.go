package store

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestMemLiesAboutSomeFiles: while the file system lies about some files, a crash loses what was fsynced of them, content and
// names, and nothing of other files.
func TestMemLiesAboutSomeFiles(t *testing.T) {
	m := NewMem(1)
	put(t, m, "log.1", []byte("old"))
	m.LieAbout(func(path string) bool { return strings.HasPrefix(filepath.Base(path), "log.") })
	put(t, m, "log.1", []byte("new"))
	put(t, m, "log.2", []byte("new"))
	put(t, m, "currentEpoch", []byte("2"))
	if !m.Lies() {
		t.Error("it does not say that it lies")
	}
	m.Crash(LoseAll)
	if got := names(t, m); len(got) != 2 || string(get(t, m, "log.1")) != "old" || string(get(t, m, "currentEpoch")) != "2" {
		t.Errorf("%v", got)
	}
	put(t, m, "log.2", []byte("new"))
	m.EndLie()
	if m.Crash(LoseAll); m.Lies() || string(get(t, m, "log.2")) != "new" {
		t.Errorf("after the lie has ended: %v", names(t, m))
	}
}

// TestMemEmpties: an emptied file keeps its name, and a crash does not bring its content back.
func TestMemEmpties(t *testing.T) {
	m := NewMem(1)
	put(t, m, "currentEpoch", []byte("2"))
	if !m.Empty("/data/version-2/currentEpoch") || m.Empty("/data/version-2/other") {
		t.Error("the wrong file is emptied")
	}
	if m.Crash(LoseAll); len(get(t, m, "currentEpoch")) != 0 {
		t.Error("the content is back")
	}
}
