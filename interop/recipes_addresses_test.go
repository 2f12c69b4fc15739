package interop

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"bellwether/internal/portblock"
	"bellwether/interop/target"
	"bellwether/recipe"
	"bellwether/zk"
)

// TestRecipesOfAnEnsemble lets three clients wait in a line, each at another server of an
// ensemble of both kinds. All their addresses must be shown. When a client leaves, its session
// and its bid must disappear.
func TestRecipesOfAnEnsemble(t *testing.T) {
	t.Parallel()
	e := target.EnsembleFor(t, target.EnsembleOptions{
		Kinds: []target.Kind{target.Apache, target.Bellwether, target.Apache}, Extra: map[string]string{"initLimit": "10", "syncLimit": "5"},
	})
	if _, err := e.AwaitWhole(registryWait); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), registryWait)
	defer cancel()
	var clients []*zk.Client
	ended := make(chan struct{}, len(e.Servers))
	for _, s := range e.Servers {
		c, err := zk.Connect(ctx, s.Addr, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Detach()
		l, err := recipe.NewLock(c, "/lock", &recipe.LockOptions{ID: s.Addr})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			defer func() { ended <- struct{}{} }()
			_, _ = l.Lock(ctx) // Lock returns when ctx ends
		}()
		clients = append(clients, c)
		inLine(t, e.Addrs(), len(clients))
	}
	got := inLine(t, e.Addrs(), 3)
	if slices.Sort(got); len(slices.Compact(got)) != 3 {
		t.Errorf("addresses %q", got)
	}
	cancel()
	for range clients {
		<-ended
	}
}

// inLine waits until count clients with known addresses are in line at /lock without problems,
// and returns the addresses. The command omits a server that is slow to answer.
func inLine(t *testing.T, servers string, count int) []string {
	t.Helper()
	for end := time.Now().Add(registryWait); ; {
		got, err := recipesOf(servers, "/lock")
		if err == nil && len(got.Recipes) == 1 && len(got.Recipes[0].Clients) == count {
			if err := clean(got); err != nil {
				t.Error(err)
			}
			var all []string
			for _, c := range got.Recipes[0].Clients {
				if strings.HasPrefix(c.Address, "127.0.0.1:") {
					all = append(all, c.Address)
				}
			}
			if len(all) == count {
				return all
			}
		}
		if time.Now().After(end) {
			t.Fatalf("not %d in line: %+v, %v", count, got, err)
		}
	}
}

// TestRecipesThroughAdminServer shows that the command asks a ZooKeeper server that does not
// answer cons and dump through its AdminServer.
func TestRecipesThroughAdminServer(t *testing.T) {
	t.Parallel()
	free, err := portblock.Free("127.0.0.1", 1)
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(free[0])
	s := target.StartFor(t, target.Apache, target.Options{Extra: map[string]string{
		"4lw.commands.whitelist": "srvr,ruok",
		"admin.enableServer":     "true", "admin.serverAddress": "127.0.0.1", "admin.serverPort": port,
	}})
	r := newRegistry(t, s, "admin")
	r.join("group", recipe.MemberNames)
	for _, tc := range []struct {
		port string
		says bool
	}{{port, true}, {"0", false}} {
		says, out := false, ""
		for end := time.Now().Add(registryWait); ; { // the first answer may take longer than the command's timeout
			out = string(bellwether(t, "recipes", "--server", s.Addr, "--admin-port", tc.port, "-o", "json", r.prefix))
			if says = strings.Contains(out, `"address":"127.0.0.1:`); says || !tc.says || time.Now().After(end) {
				break
			}
		}
		if says != tc.says || !says && strings.Contains(out, `"address"`) || !strings.Contains(out, `"orphans":[]`) {
			t.Errorf("port %s: %s", tc.port, out)
		}
	}
}
