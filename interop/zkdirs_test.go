package interop

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bellwether/interop/target"
	"bellwether/zk"
)

// TestDirectoriesOfAnEnsembleOfZooKeeperAreSound checks data directories of a ZooKeeper ensemble
// whose snapshot names, digests and logs seem to disagree. A follower that received a
// snapshot has stored it far behind its log; a leader may give a snapshot the first zxid of an
// epoch as its name; a server that restarts without a write replaces its snapshot by one
// without a digest. data check must accept all of them, and Bellwether must start with them.
func TestDirectoriesOfAnEnsembleOfZooKeeperAreSound(t *testing.T) {
	t.Parallel()
	kinds := []target.Kind{target.Apache, target.Apache, target.Apache}
	e := target.EnsembleFor(t, target.EnsembleOptions{Kinds: kinds,
		Extra: map[string]string{"snapCount": "300", "commitLogCount": "50", "preAllocSize": "64", "tickTime": "300", "initLimit": "30", "syncLimit": "10"}})
	leader, err := e.AwaitWhole(electionWait)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, e, 50)
	behind := (leader + 1) % 3
	e.Servers[behind].Kill()
	if _, err := e.AwaitLeader(electionWait, behind); err != nil {
		t.Fatal(err)
	}
	fill(t, e, 1000) // more than commitLogCount, so that the follower gets a snapshot
	for range 2 {    // two restarts without a write
		if err := e.Begin(); err != nil {
			t.Fatal(err)
		}
		if _, err := e.AwaitWhole(electionWait); err != nil {
			t.Fatal(err)
		}
		checkDirectories(t, e)
		e.Kill()
	}
	if here, there := logs(t, e.Servers[behind]), logs(t, e.Servers[leader]); here >= there {
		t.Fatalf("the follower was not sent a snapshot: it has %d logs, the others %d", here, there)
	}
	checkDirectories(t, e)
	for _, s := range e.Servers {
		s.Kind = target.Bellwether
	}
	if err := e.Begin(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.AwaitWhole(electionWait); err != nil {
		t.Fatal(err)
	}
	for i, s := range e.Servers {
		if log := s.Log(); strings.Contains(log, "wrong name") || strings.Contains(log, "set aside") {
			t.Errorf("server %d reports a fault of a directory that ZooKeeper wrote", i+1)
		}
	}
}

// logs returns the number of a server's logs.
func logs(t *testing.T, s *target.Server) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.Data, "version-2", "log.*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

// fill creates znodes through any running server.
func fill(t *testing.T, e *target.Ensemble, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), electionWait)
	defer cancel()
	c, err := zk.Connect(ctx, e.Addrs(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Detach()
	for i := range n {
		if _, _, err := c.Create(ctx, fmt.Sprintf("/%d-%d", n, i), nil); err != nil {
			t.Fatal(err)
		}
	}
}

// checkDirectories runs data check on a copy of each server's directory.
func checkDirectories(t *testing.T, e *target.Ensemble) {
	t.Helper()
	binary, err := target.Binary()
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range e.Servers {
		dir := filepath.Join(t.TempDir(), "copy")
		if err := os.CopyFS(dir, os.DirFS(s.Data)); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(binary, "data", "check", dir).CombinedOutput()
		lines := strings.Split(string(out), "\n")
		if err != nil || slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "damage:") }) {
			t.Errorf("server %d: %v\n%s", i+1, err, out)
		}
	}
}
