package store

import (
	"strings"
	"testing"
)

// A start that finds nothing, or snapshots and no log directory, tells what
// shows that there was more; a first start tells nothing.
func TestLostHistoryIsSuspected(t *testing.T) {
	for _, c := range []struct {
		name string
		prep func(m *Mem)
		note string // part of the only warning; "" if there is none
	}{
		{"first start", func(m *Mem) {}, ""},
		{"myid and the marker", func(m *Mem) { create(t, m, "/data/myid"); create(t, m, "/data/initialize") }, ""},
		{"epochs", func(m *Mem) { put(t, m, acceptedEpochName, []byte("3")); put(t, m, currentEpochName, []byte("3")) },
			"currentEpoch and acceptedEpoch in /data/version-2 say 3 and 3"},
		{"no snapshot directory", func(m *Mem) { must(t, m.MkdirAll("/logs/version-2")) }, "/data/version-2 was missing"},
		{"no log directory", func(m *Mem) { must(t, m.MkdirAll("/data/version-2")) }, "/logs/version-2 was missing"},
		{"snapshots and no log directory", func(m *Mem) { claimed{0, 0, 0, 0}.write(t, m) }, "/logs/version-2 was missing and is made anew"},
	} {
		m := NewMem(1)
		must(t, m.MkdirAll("/data"))
		c.prep(m)
		s := open(t, m, Options{DataDir: "/data", LogDir: "/logs"})
		res, err := s.Load(ignore{})
		must(t, err)
		if told := strings.Join(res.Notes, "\n"); (told == "") != (c.note == "") || !strings.Contains(told, c.note) {
			t.Errorf("%s: told is %q, want %q", c.name, told, c.note)
		}
		must(t, s.Close())
	}
}

// A directory with nothing but myid is that of a member that has not started
// yet: the start tells of it, and does not warn.
func TestMyidAloneIsNoWarning(t *testing.T) {
	for _, marked := range []bool{false, true} {
		m := NewMem(1)
		must(t, m.MkdirAll("/data"))
		create(t, m, "/data/myid")
		if marked {
			create(t, m, "/data/initialize")
		}
		s := open(t, m, Options{DataDir: "/data"})
		res, err := s.Load(ignore{})
		must(t, err)
		if len(res.Notes) > 0 {
			t.Errorf("marker %v: the start warns: %q", marked, res.Notes)
		}
		if told := strings.Contains(res.FirstStart, "/data/version-2 is empty"); told == marked {
			t.Errorf("marker %v: the start tells %q", marked, res.FirstStart)
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
