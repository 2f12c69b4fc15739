package store

import (
	"os"
	"path/filepath"
	"testing"
)

// TestStatWithoutTimes shows that both ways to describe a file agree, so that a system that refuses one of them loses nothing.
func TestStatWithoutTimes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "log.1")
	if err := os.WriteFile(file, []byte("ZKLG"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dir, file, "/dev/null"} {
		a, err := statOf(name)
		b, also := statWithTimes(name)
		if err != nil || also != nil || a != b || !a.SameFile(b) {
			t.Errorf("%s: %+v, %v; %+v, %v", name, a, err, b, also)
		}
	}
	if _, err := statOf(file + ".missing"); !os.IsNotExist(err) {
		t.Error(err)
	}
}
