package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"bellwether/interop/target"
)

// shown is the JSON output of the command recipes.
type shown struct {
	Recipes []struct {
		Path, Recipe  string
		Items, Leases int
		Clients       []struct {
			State, ID, Bid, Naming, Token, Since, Session, Address string
			Behind                                                 []string
			AnyOf                                                  bool `json:"any_of"`
		}
	}
	Orphans   []struct{ Path, Why, Clear string }
	Deadlocks []struct {
		Circle []struct{ Session, ID, Holds, Waits string }
		Clear  string
	}
	Complete bool
}

// TestRecipesCommand shows that the command recognises go-zookeeper's locks on both servers,
// with the addresses of their clients, and that kicking a holder gives the lock to the next
// client.
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
		got, err := showsSoon(s.Addr, parent, func(got shown) error {
			if len(got.Recipes) == 0 || len(got.Recipes[0].Clients) < 2 {
				return fmt.Errorf("the second client is not in line: %+v", got)
			}
			for _, c := range got.Recipes[0].Clients {
				if c.Naming != "go-zk" || !strings.HasPrefix(c.Address, "127.0.0.1:") {
					return fmt.Errorf("%+v", c)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		all := got.Recipes[0].Clients
		if got.Recipes[0].Recipe != "lock" || all[0].State != "holds" || all[1].State != "waits" ||
			len(all[1].Behind) != 1 || all[1].Behind[0] != all[0].Bid || !got.Complete {
			t.Errorf("%+v", got)
		}
		if len(got.Orphans)+len(got.Deadlocks) != 0 {
			t.Errorf("orphans %+v, deadlocks %+v", got.Orphans, got.Deadlocks)
		}
		bellwether(t, "kick", "--yes", "--server", s.Addr, all[0].Bid)
		select {
		case err := <-had:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(eventTimeout):
			t.Error("the second client did not get the lock after the kick")
		}
	})
}

// recipesOf runs the command for a path. docs/recipes.md lists all fields.
func recipesOf(server, path string) (got shown, err error) {
	out, err := execute("recipes", "--server", server, "-o", "json", path)
	if err != nil {
		return got, err
	}
	strict := json.NewDecoder(bytes.NewReader(out))
	strict.DisallowUnknownFields()
	return got, strict.Decode(&got)
}

// bellwether runs the program and returns its output.
func bellwether(t *testing.T, args ...string) []byte {
	t.Helper()
	out, err := execute(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func execute(args ...string) ([]byte, error) {
	binary, err := target.Binary()
	if err != nil {
		return nil, err
	}
	out, err := exec.Command(binary, args...).Output()
	if err != nil {
		err = fmt.Errorf("%q: %w", args, err)
	}
	return out, err
}
