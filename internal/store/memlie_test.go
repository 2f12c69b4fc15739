package store

import "testing"

// TestMemLies: while the file system lies, a crash loses what was fsynced since, content
// and names, and keeps what was fsynced before. After EndLie it loses nothing of it.
func TestMemLies(t *testing.T) {
	change := func(m *Mem) {
		f, err := m.Append("/data/version-2/kept")
		must(t, err)
		_, err = f.WriteAt([]byte("NEW"), 0)
		must(t, err)
		must(t, f.Truncate(5))
		must(t, f.Sync())
		put(t, m, "new", []byte("content"))
		must(t, m.Rename("/data/version-2/new", "/data/version-2/renamed"))
		must(t, m.SyncDir("/data/version-2"))
	}
	m := NewMem(1)
	put(t, m, "kept", []byte("old content"))
	m.Lie()
	change(m)
	if got := get(t, m, "kept"); string(got) != "NEW c" || len(names(t, m)) != 2 {
		t.Errorf("programs see %q, %v", got, names(t, m))
	}
	m.Crash(KeepAll)
	if got := get(t, m, "kept"); string(got) != "NEW c" || !m.Lies() {
		t.Errorf("after the end of the process: %q, lies: %v", got, m.Lies())
	}
	m.Crash(LoseAll)
	if got := get(t, m, "kept"); string(got) != "old content" || len(names(t, m)) != 1 {
		t.Errorf("after a power failure: %q, %v", got, names(t, m))
	}
	change(m)
	m.EndLie()
	m.Crash(LoseAll)
	if got := get(t, m, "kept"); string(got) != "NEW c" || string(get(t, m, "renamed")) != "content" {
		t.Errorf("after the lie has ended: %q, %v", got, names(t, m))
	}
}
