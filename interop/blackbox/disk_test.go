package blackbox

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"bellwether/interop/target"

	"golang.org/x/sys/unix"
)

// TestFullDisk fills the small disk of a follower, then that of the leader. The
// server leaves the quorum and refuses writes, the others go on, and with room
// again it comes back by itself, in the same process.
func TestFullDisk(t *testing.T) {
	s := begin(t, setting{before: smallDisks(t)})
	leader := s.awaitWhole()
	for _, i := range []int{s.others(leader)[0], leader} {
		pid := s.e.Servers[i].PID()
		filler := fill(t, s.e.Servers[i].Data)
		s.awaitOut(i)
		s.awaitLeader(i)
		s.load.awaitWrites(20, s.workers(s.others(i)...)...)
		s.must(os.Remove(filler))
		s.load.awaitWrites(5)
		if !s.e.Servers[i].Running() || s.e.Servers[i].PID() != pid {
			t.Errorf("server %d did not survive its full disk", i+1)
		}
	}
	s.finish()
}

// smallDisks puts every data directory on a tmpfs of its own.
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

// fill takes all room that a disk has left.
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
