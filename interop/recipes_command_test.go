package interop

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"bellwether/interop/target"
)

// shown is what the command recipes prints, as far as it is looked at.
type shown struct {
	Recipes []struct {
		Path, Recipe string
		Clients      []struct {
			State, Bid, Naming, Address string
			Behind                      []string
		}
	}
	Orphans, Deadlocks []json.RawMessage
	Complete           bool
}

// TestRecipesCommand: the locks of go-zookeeper are recognised on either
// server, with the addresses of their clients, and who is kicked lets the next
// one have its lock.
func TestRecipesCommand(t *testing.T) {
	eachShared(t, func(t *testing.T, s *target.Server) {
		parent := fresh("recipes") + "/lock"
		first := zk.NewLock(dial(t, s.Addr).Conn, parent, world)
		if err := first.Lock(); err != nil {
			t.Fatal(err)
		}
		second := zk.NewLock(dial(t, s.Addr).Conn, parent, world)
		had := make(chan error, 1)
		go func() { had <- second.Lock() }()
		var got shown
		for end := time.Now().Add(eventTimeout); len(got.Recipes) == 0 || len(got.Recipes[0].Clients) < 2; {
			if time.Now().After(end) {
				t.Fatalf("the second does not wait: %+v", got)
			}
			got = recipesAt(t, s, parent)
		}
		all := got.Recipes[0].Clients
		if got.Recipes[0].Recipe != "lock" || all[0].State != "holds" || all[1].State != "waits" ||
			len(all[1].Behind) != 1 || all[1].Behind[0] != all[0].Bid || !got.Complete {
			t.Errorf("%+v", got)
		}
		for _, c := range all {
			if c.Naming != "go-zk" || !strings.HasPrefix(c.Address, "127.0.0.1:") {
				t.Errorf("%+v", c)
			}
		}
		if len(got.Orphans)+len(got.Deadlocks) != 0 {
			t.Errorf("orphans %s, deadlocks %s", got.Orphans, got.Deadlocks)
		}
		bellwether(t, "kick", "--yes", "--server", s.Addr, all[0].Bid)
		select {
		case err := <-had:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(eventTimeout):
			t.Error("the second did not get the lock")
		}
	})
}

func recipesAt(t *testing.T, s *target.Server, path string) (got shown) {
	t.Helper()
	if err := json.Unmarshal(bellwether(t, "recipes", "--server", s.Addr, "-o", "json", path), &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// bellwether runs the program and returns what it prints.
func bellwether(t *testing.T, args ...string) []byte {
	t.Helper()
	binary, err := target.Binary()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(binary, args...).Output()
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return out
}
