package store

import (
	"bytes"
	"errors"
	"testing"
)

// TestMemRots: a bit is flipped for programs and on the disk, but not in a clone, and not
// in a sector that was not fsynced.
func TestMemRots(t *testing.T) {
	const path = "/data/version-2/a"
	m := NewMem(1)
	put(t, m, "a", bytes.Repeat([]byte("a"), 2*sectorLen))
	before := m.Clone(1)
	if !m.Rot(path, sectorLen+1, 1) {
		t.Error("the byte is not changed")
	}
	for range 2 {
		if got := get(t, m, "a"); got[sectorLen+1] != 'a'^2 || bytes.Count(got, []byte("a")) != 2*sectorLen-1 {
			t.Errorf("%q", got)
		}
		m.Crash(LoseAll)
	}
	if got := get(t, before, "a"); bytes.Count(got, []byte("a")) != 2*sectorLen {
		t.Errorf("the clone is %q", got)
	}
	f, err := m.Append(path)
	must(t, err)
	_, err = f.WriteAt([]byte("b"), 0)
	must(t, err)
	for what, rots := range map[string]bool{"not fsynced": m.Rot(path, 5, 0), "past the end": m.Rot(path, 2*sectorLen, 0), "no file": m.Rot(path+"x", 0, 0)} {
		if rots {
			t.Errorf("%s: the byte is changed", what)
		}
	}
}

// TestMemSpoils: a spoilt sector cannot be read, also after a crash, until it is written
// again.
func TestMemSpoils(t *testing.T) {
	const path = "/data/version-2/a"
	spoilt := errors.New("spoilt")
	m := NewMem(1)
	put(t, m, "a", bytes.Repeat([]byte("a"), 3*sectorLen))
	if !m.Spoil(path, sectorLen+7, spoilt) {
		t.Fatal("the sector is not spoilt")
	}
	m.Crash(LoseAll)
	f, err := m.Append(path)
	must(t, err)
	for _, c := range []struct {
		off, n int64
		want   error
	}{
		{0, sectorLen, nil}, {2 * sectorLen, sectorLen, nil}, {0, sectorLen + 1, spoilt}, {sectorLen, 1, spoilt}, {2*sectorLen - 1, 5, spoilt},
	} {
		if _, err := f.ReadAt(make([]byte, c.n), c.off); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("read of %d bytes at %d: %v, want %v", c.n, c.off, err, c.want)
		}
	}
	_, err = f.WriteAt([]byte("b"), sectorLen)
	must(t, err)
	if got := get(t, m, "a"); got[sectorLen] != 'b' {
		t.Errorf("%q", got)
	}
}
