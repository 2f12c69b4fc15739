package interop

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/zk"
)

// writesAfterRemoval is the number of writes after the removal of the data directory, one after
// the other: enough to show that a server does not notice it.
const writesAfterRemoval = 1500

// TestRemovedDataDirectory shows that Bellwether acknowledges no write that was sent after its
// data directory was removed or replaced, logs where and why, and ends. The test prints the
// number for each server: ZooKeeper continues, with files that no start will find. To measure
// another build: INTEROP_BINARY=path go test -run RemovedDataDirectory -v .
func TestRemovedDataDirectory(t *testing.T) {
	eachTarget(t, func(t *testing.T, kind target.Kind) {
		for what, remove := range map[string]func(dir string) error{
			"rm -rf version-2": os.RemoveAll,
			"rm -rf dataDir":   func(dir string) error { return os.RemoveAll(filepath.Dir(dir)) },
			"mv version-2 x; mkdir version-2": func(dir string) error {
				if err := os.Rename(dir, filepath.Join(filepath.Dir(dir), "x")); err != nil {
					return err
				}
				return os.Mkdir(dir, 0o755)
			},
		} {
			t.Run(what, func(t *testing.T) {
				s := target.StartFor(t, kind, target.Options{})
				written := writesOver(t, s, func() error { return remove(filepath.Join(s.Data, "version-2")) })
				t.Logf("%s: %s: %d of %d writes acknowledged afterwards", kind, what, written, writesAfterRemoval)
				if kind != target.Bellwether {
					return
				}
				if written > 0 {
					t.Errorf("%d writes were acknowledged after %s", written, what)
				}
				awaitEnd(t, s)
				if log := s.Log(); !strings.Contains(log, "removed, renamed or replaced while the server was running") || !strings.Contains(log, s.Data) {
					t.Error("the log does not say what happened")
				}
			})
		}
	})
}

// writesOver writes, removes the directory, and counts the writes that are acknowledged
// afterwards.
func writesOver(t *testing.T, s *target.Server, remove func() error) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := zk.Connect(ctx, s.Addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Detach()
	if _, _, err := c.Create(ctx, "/n", nil); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, err := c.Set(ctx, "/n", []byte("before"), zk.AnyVersion); err != nil {
			t.Fatal(err)
		}
	}
	if err := remove(); err != nil {
		t.Fatal(err)
	}
	for n := range writesAfterRemoval {
		each, stop := context.WithTimeout(ctx, 5*time.Second)
		_, err := c.Set(each, "/n", []byte("after"), zk.AnyVersion)
		stop()
		if err != nil {
			return n
		}
	}
	return writesAfterRemoval
}

// awaitEnd waits until a server has ended by itself.
func awaitEnd(t *testing.T, s *target.Server) {
	t.Helper()
	for end := time.Now().Add(time.Minute); s.Running(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the server has not ended")
		}
	}
}
