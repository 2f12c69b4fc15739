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

// secretFile writes a file for sessionSecretFile and returns its name.
func secretFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "session-secret")
	if err := os.WriteFile(file, []byte(strings.Repeat("s", 64)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestSessionSecretWithClients shows that another library's client, whose connection is cut,
// resumes its session at a server whose passwords are secret.
func TestSessionSecretWithClients(t *testing.T) {
	s := target.StartFor(t, target.Bellwether, target.Options{Extra: map[string]string{"sessionSecretFile": secretFile(t)}})
	for _, name := range []string{"watches", "election"} {
		way := target.NewProxy(t, s.Addr)
		target.Script{
			Args:     []string{debianPython, "-B", "python/" + name + ".py", s.Addr, way.Addr, fresh("secret-" + name)},
			Commands: proxyCommands(way),
		}.Pass(t)
	}
}

// TestSessionSecretRefusesZooKeeper shows that servers with a session secret do not form an
// ensemble with a ZooKeeper server, whether it leads or follows, and that they serve without it.
func TestSessionSecretRefusesZooKeeper(t *testing.T) {
	for _, ids := range [][]int64{{1, 2, 3}, {9, 2, 3}} { // with the highest id ZooKeeper would win the election
		e := target.EnsembleFor(t, target.EnsembleOptions{
			Kinds: []target.Kind{target.Apache, target.Bellwether, target.Bellwether}, IDs: ids,
			Extra: map[string]string{"sessionSecretFile": secretFile(t), "tickTime": "500", "initLimit": "20", "syncLimit": "10"},
		})
		if _, err := e.AwaitLeader(2*time.Minute, 0); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c, err := zk.Connect(ctx, e.Servers[1].Addr+","+e.Servers[2].Addr, &zk.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(context.Background())
		if _, _, err := c.Create(ctx, "/a", nil); err != nil {
			t.Fatal(err)
		}
		for !strings.Contains(e.Servers[1].Log()+e.Servers[2].Log(), "sessionSecretFile makes") {
			if ctx.Err() != nil {
				t.Fatal("no log says why the ZooKeeper server is refused")
			}
			<-time.After(100 * time.Millisecond)
		}
		if role := e.Servers[0].Role(); role != "" {
			t.Errorf("the ZooKeeper server serves as %s", role)
		}
		e.Kill()
	}
}
