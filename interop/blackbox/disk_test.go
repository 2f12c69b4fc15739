package blackbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/zk"

	"golang.org/x/sys/unix"
)

// TestFullDisk fills the small disk of a follower, and then the small disk of the leader.
// The server whose disk is full must leave the quorum, refuse writes and answer reads,
// while the others continue. When the disk has space again, the server must return by
// itself, in the same process.
func TestFullDisk(t *testing.T) {
	s := begin(t, setting{before: smallDisks(t)})
	s.plant("/before", "v")
	leader := s.awaitWhole()
	for _, i := range []int{s.others(leader)[0], leader} {
		pid := s.e.Servers[i].PID()
		filler := fill(t, s.e.Servers[i].Data)
		s.awaitNoSpace(i)
		s.awaitLeader(i)
		s.load.awaitWrites(20, s.workers(s.others(i)...)...)
		r := s.reads(i, "/before", "v")
		s.must(os.Remove(filler))
		s.load.awaitWrites(5)
		s.writes(r, "/before")
		if !s.e.Servers[i].Running() || s.e.Servers[i].PID() != pid {
			t.Errorf("server %d did not survive its full disk", i+1)
		}
	}
	s.finish()
}

// TestFullDiskAlone fills the small disk of a standalone server while kazoo uses it. Clients that
// accept a read-only server, new ones included, must be served, and the existing session must
// still be able to read. When the disk has space again, the server must accept writes by itself,
// also from kazoo's client.
func TestFullDiskAlone(t *testing.T) {
	const python = "/usr/bin/python3"
	target.File(t, "/usr/lib/python3/dist-packages/kazoo/client.py", "python3-kazoo")
	if noHosts != nil {
		t.Fatalf("cannot create a small disk for this test: %v", noHosts)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	must(unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"))
	t.Cleanup(func() { must(unix.Unmount(dir, unix.MNT_DETACH)) })
	s := target.StartFor(t, target.Bellwether, target.Options{Data: dir, Extra: map[string]string{"preAllocSize": "64"}})
	c, err := zk.Connect(t.Context(), s.Addr, nil)
	must(err)
	defer c.Close(t.Context())
	_, _, err = c.Create(t.Context(), "/kept", []byte("v"), zk.Ephemeral)
	must(err)
	pid, filler := s.PID(), ""
	full := func() error {
		filler = fill(t, dir)
		for err = nil; err == nil; {
			_, err = c.Set(t.Context(), "/kept", make([]byte, 1000), zk.AnyVersion)
		}
		if !errors.Is(err, zk.ErrNotReadOnly) {
			return err
		}
		return nil
	}
	target.Script{Args: []string{python, "-B", "../readonly/reader.py", s.Addr}, Commands: map[string]func() error{
		"@alone": full,
		"@whole": func() error { return os.Remove(filler) },
	}}.Pass(t)
	if data, _, err := c.Get(t.Context(), "/kept"); err != nil || len(data) == 0 {
		t.Errorf("the existing session reads %d bytes, %v", len(data), err)
	}
	if s.PID() != pid {
		t.Error("the server was restarted, want the same process")
	}
}

// plant creates a znode and waits until every server has it.
func (s *scene) plant(path, data string) {
	s.t.Helper()
	for i, server := range s.e.Servers {
		c := s.client(server.Addr, longSession)
		var err error
		if i == 0 {
			_, _, err = c.Create(s.t.Context(), path, []byte(data))
		} else {
			err = c.Sync(s.t.Context(), path)
		}
		s.must(err)
	}
}

// reads opens a session with a server whose disk is full, and reads a znode there.
func (s *scene) reads(i int, path, data string) *zk.Client {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), waitMax)
	defer cancel()
	c, err := zk.Connect(ctx, s.e.Servers[i].Addr, &zk.Options{ReadOnly: true, Dial: s.hosts[s.clientHost()].dial})
	s.must(err)
	s.t.Cleanup(func() { c.Detach() })
	if st := c.State(); st.State != zk.ReadOnly {
		s.t.Errorf("server %d: the state is %v", i+1, st.State)
	}
	if got, _, err := c.Get(ctx, path); err != nil || string(got) != data {
		s.t.Errorf("server %d answers %q, %v", i+1, got, err)
	}
	if _, err := c.Set(ctx, path, nil, zk.AnyVersion); !errors.Is(err, zk.ErrNotReadOnly) {
		s.t.Errorf("server %d answers a write with %v", i+1, err)
	}
	return c
}

// awaitNoSpace waits until a server says that it serves reads only because it cannot write its log. A leader does not say so at
// once: it transfers leadership when there is no room for its next log, and follows while the present one has room.
func (s *scene) awaitNoSpace(server int) {
	s.t.Helper()
	for end := time.Now().Add(waitMax); ; <-time.After(20 * time.Millisecond) {
		text, err := s.e.Servers[server].Word("srvr")
		if err == nil && strings.Contains(text, "\nRead-only because: no space") {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("server %d does not say that its disk is full: %q, %v", server+1, text, err)
		}
	}
}

// writes waits until a client can write, and writes.
func (s *scene) writes(c *zk.Client, path string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), waitMax)
	defer cancel()
	for st := range c.States(ctx) {
		if st.State == zk.Connected {
			break
		}
	}
	_, err := c.Set(ctx, path, []byte("v"), zk.AnyVersion)
	s.must(err)
}

// smallDisks puts every data directory on its own tmpfs.
func smallDisks(t *testing.T) func(*network, []target.Place) {
	return func(w *network, places []target.Place) {
		for i := range places {
			dir := t.TempDir()
			w.must(unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"))
			t.Cleanup(func() { w.must(unix.Unmount(dir, unix.MNT_DETACH)) })
			places[i].Data = dir
		}
	}
}

// fill uses up all space of a disk.
func fill(t *testing.T, dir string) (file string) {
	t.Helper()
	file = filepath.Join(dir, "filler")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 16; size > 0; size /= 2 {
		for err == nil {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		err = nil
	}
	return file
}

// TestRemovedDirectory removes the directory version-2 of a running follower, and then of
// the running leader. The server must acknowledge nothing more, leave the quorum and end,
// while the others continue. After a restart it must get their data.
func TestRemovedDirectory(t *testing.T) {
	s := begin(t, setting{})
	leader := s.awaitWhole()
	for _, i := range []int{s.others(leader)[0], leader} {
		server := s.e.Servers[i]
		s.must(os.RemoveAll(filepath.Join(server.Data, "version-2")))
		for end := time.Now().Add(waitMax); server.Running(); <-time.After(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("server %d continues without its data directory", i+1)
			}
		}
		if log := server.Log(); !strings.Contains(log, "while the server was running") {
			t.Errorf("server %d does not log why it ended", i+1)
		}
		s.awaitLeader(i)
		s.load.awaitWrites(20, s.workers(s.others(i)...)...)
		s.restart(i)
		if log := server.Log(); !strings.Contains(log, "its data was removed") {
			t.Errorf("server %d starts with an empty directory and does not log it", i+1)
		}
		s.load.awaitWrites(5)
	}
	s.finish()
}
