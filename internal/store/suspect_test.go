package store

import (
	"strings"
	"testing"
)

// TestLostHistoryIsSuspected: a start without any history, or with snapshots but without
// a log directory, reports the signs that there was more. A first start reports nothing.
func TestLostHistoryIsSuspected(t *testing.T) {
	for _, c := range []struct {
		name string
		prep func(m *Mem)
		note string // part of the only warning; "" if there is none
	}{
		{"first start", func(m *Mem) {}, ""},
		{"myid", func(m *Mem) { create(t, m, "/data/myid") }, "/data/myid exists"},
		{"myid and the marker", func(m *Mem) { create(t, m, "/data/myid"); create(t, m, "/data/initialize") }, ""},
		{"epochs", func(m *Mem) { put(t, m, acceptedEpochName, []byte("3")); put(t, m, currentEpochName, []byte("3")) },
			"currentEpoch and acceptedEpoch in /data/version-2 are 3 and 3"},
		{"no snapshot directory", func(m *Mem) { must(t, m.MkdirAll("/logs/version-2")) }, "/data/version-2 was missing"},
		{"no log directory", func(m *Mem) { must(t, m.MkdirAll("/data/version-2")) }, "/logs/version-2 was missing"},
		{"snapshots and no log directory", func(m *Mem) { claimed{0, 0, 0, 0}.write(t, m) }, "/logs/version-2 was missing and was created"},
	} {
		m := NewMem(1)
		must(t, m.MkdirAll("/data"))
		c.prep(m)
		s := open(t, m, Options{DataDir: "/data", LogDir: "/logs"})
		res, err := s.Load(Discard{})
		must(t, err)
		if told := strings.Join(res.Notes, "\n"); (told == "") != (c.note == "") || !strings.Contains(told, c.note) {
			t.Errorf("%s: told is %q, want %q", c.name, told, c.note)
		}
		must(t, s.Close())
	}
}

func create(t *testing.T, m *Mem, path string) {
	t.Helper()
	f, err := m.Create(path)
	must(t, err)
	must(t, f.Close())
}
