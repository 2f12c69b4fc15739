package interop

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/recipe"
	"bellwether/zk"
)

// kazooShapes is the expected output for the recipes that shapes.py uses.
var kazooShapes = []string{
	"/lock lock: ann holds (kazoo), bob waits for ann (kazoo)",
	"/threads lock: - holds (kazoo), - waits for - (kazoo)",
	"/rw read-write lock: ann holds (kazoo-read), bob holds (kazoo-read), cat waits for ann bob (kazoo)",
	"/semaphore semaphore of 2: ann holds (kazoo-lease), bob holds (kazoo-lease), cat waits for any of ann bob (kazoo)",
	"/election lock: ann holds (kazoo), bob waits for ann (kazoo)",
	"/party group: ann is in (kazoo-party), bob is in (kazoo-party)",
	"/shallow group: ann is in (kazoo-shallow), bob is in (kazoo-shallow)",
	"/queue queue of 2 items:",
	"/locking work queue of 2 items: - works (kazoo-item)",
	"/waiting double barrier: ann waits (barrier), bob waits (barrier)",
	"/begun double barrier: ann is in (barrier), bob is in (barrier)",
	"/left behind/1 lock: ann holds (kazoo), bob waits for ann (kazoo)",
	"/left behind/2 lock: bob holds (kazoo), ann waits for bob (kazoo)",
}

// curatorShapes is the expected output for the recipes that Shapes.java uses.
var curatorShapes = []string{
	"/mutex lock: ann holds (curator-lock), bob waits for ann (curator-lock)",
	"/threads lock: ann holds (curator-lock), ann waits for ann (curator-lock)",
	"/rw read-write lock: ann holds (curator-read), bob holds (curator-read), cat waits for ann bob (curator-write)",
	"/downgrade read-write lock: ann holds (curator-write), ann waits for ann (curator-read)",
	"/oldsemaphore lock: ann holds (curator-lock), bob waits for ann (curator-lock)", // both hold, but the tree does not show it
	"/semaphore semaphore: ann holds (curator-lease), bob holds (curator-lease), cat waits for any of ann bob (curator-lease)",
	"/semaphoremutex semaphore: ann holds (curator-lease)",
	"/latch election: ann leads (curator-latch), bob waits for ann (curator-latch)",
	"/selector lock: ann holds (curator-lock), bob waits for ann (curator-lock)",
	"/waiting double barrier: ann waits (curator-barrier), bob waits (curator-barrier)",
	"/begun double barrier: ann is in (curator-barrier), bob is in (curator-barrier)",
	"/group group: ann is in (member), bob is in (member)",
	"/protected group: ann is in (curator-node)",
	"/services/web service: <id> is in (curator-instance), <id> is in (curator-instance)",
	"/simple queue of 2 items:",
	"/plain queue of 2 items:",
	"/priority queue of 2 items:",
	"/delay queue of 2 items:",
	"/id queue of 2 items:",
}

// ownShapes is the expected output for this library's recipes; see makeShapes.
var ownShapes = []string{
	"/election election: ann leads (own), bob waits for ann (own)",
	"/lock lock: ann holds (own), bob waits for ann (own)",
	"/rw read-write lock: ann holds (own-read), bob waits for ann (own)",
	"/semaphore semaphore: ann holds (own), bob waits for any of ann (own)",
	"/queue queue of 1 items:",
	"/work work queue of 1 items: - works (own)",
	"/barrier double barrier: - waits (barrier)",
	"/group group: ann is in (member)",
	"/services/web service: ann is in (curator-instance)",
}

// TestRecipesOfKazoo shows that each kazoo recipe in use is recognised, with its clients' names
// and addresses, and that claims of two threads of one client are not orphans. A lock that
// outlives its session and a deadlock of two clients are listed, and the printed commands
// remove them.
func TestRecipesOfKazoo(t *testing.T) {
	target.File(t, "/usr/lib/python3/dist-packages/kazoo/client.py", "python3-kazoo")
	eachShared(t, func(t *testing.T, s *target.Server) {
		r := newRegistry(t, s, "recipes-kazoo")
		look := func() error {
			defer r.release()
			got, err := showsSoon(s.Addr, r.prefix, func(got shown) error {
				if err := shapes(got, r.prefix, kazooShapes); err != nil {
					return err
				}
				if len(got.Orphans) != 1 || len(got.Deadlocks) != 1 || len(got.Deadlocks[0].Circle) != 2 {
					return fmt.Errorf("orphans %+v, deadlocks %+v", got.Orphans, got.Deadlocks)
				}
				return nil
			})
			if err != nil {
				return err
			}
			if err := cmp.Or(paste(got.Orphans[0].Clear), paste(got.Deadlocks[0].Clear)); err != nil {
				return err
			}
			got, err = recipesOf(s.Addr, r.prefix+"/left behind")
			return cmp.Or(err, clean(got))
		}
		target.Script{
			Args:     []string{debianPython, "-B", "shapes/shapes.py", s.Addr, r.prefix},
			Commands: map[string]func() error{"@look": look},
		}.Pass(t)
	})
}

// TestRecipesOfCurator shows that each Curator recipe in use is recognised.
func TestRecipesOfCurator(t *testing.T) {
	javac := target.Tool(t, "javac", "default-jdk-headless")
	java := target.Tool(t, "java", "default-jdk-headless")
	target.File(t, "/usr/share/java/curator-x-discovery.jar", "libcurator-discovery-java")
	classes := t.TempDir()
	target.Script{
		Args: []string{javac, "-Xlint:unchecked,deprecation,rawtypes", "-Werror", "-proc:none", "-cp", registryPath, "-d", classes, "shapes/Shapes.java"},
	}.Pass(t)
	eachShared(t, func(t *testing.T, s *target.Server) {
		r := newRegistry(t, s, "recipes-curator")
		look := func() error {
			defer r.release()
			_, err := showsSoon(s.Addr, r.prefix, func(got shown) error {
				return cmp.Or(shapes(got, r.prefix, curatorShapes), clean(got))
			})
			return err
		}
		target.Script{
			Args:     append(append([]string{java}, target.JVM...), "-cp", classes+":"+registryPath, "Shapes", s.Addr, r.prefix),
			Commands: map[string]func() error{"@look": look},
		}.Pass(t)
	})
}

// TestRecipesOfBellwether shows that each of this library's recipes in use is recognised.
func TestRecipesOfBellwether(t *testing.T) {
	eachShared(t, func(t *testing.T, s *target.Server) {
		r := newRegistry(t, s, "recipes-ours")
		r.makeShapes()
		if _, err := showsSoon(s.Addr, r.prefix, func(got shown) error { // waiting clients appear soon
			return cmp.Or(shapes(got, r.prefix, ownShapes), clean(got))
		}); err != nil {
			t.Error(err)
		}
	})
}

// showsSoon runs the command until its output is right: the command omits a server that is slow
// to list its clients.
func showsSoon(server, path string, right func(shown) error) (got shown, err error) {
	for end := time.Now().Add(eventTimeout); ; {
		if got, err = recipesOf(server, path); err == nil {
			err = right(got)
		}
		if err == nil || time.Now().After(end) {
			return got, err
		}
	}
}

func clean(got shown) error {
	if len(got.Orphans)+len(got.Deadlocks) != 0 {
		return fmt.Errorf("orphans %+v, deadlocks %+v", got.Orphans, got.Deadlocks)
	}
	return nil
}

// makeShapes uses each recipe as the client ann. If the recipe lets clients wait, the client
// bob waits for ann. Waiting calls end with the test.
func (r *registry) makeShapes() {
	ann := r.c
	bob, err := zk.Connect(r.ctx, ann.State().Server, nil)
	r.must(err)
	ctx, cancel := context.WithCancel(r.ctx)
	var waiting []chan struct{}
	r.t.Cleanup(func() {
		cancel()
		for _, w := range waiting {
			<-w
		}
		_ = bob.Close(context.Background())
	})
	wait := func(f func(context.Context) error) {
		ended := make(chan struct{})
		waiting = append(waiting, ended)
		go func() { defer close(ended); _ = f(ctx) }() // f returns when ctx ends
	}
	at := func(name string) string { return r.prefix + "/" + name }

	first, err := recipe.NewElection(ann, at("election"), "ann", nil)
	r.must(err)
	second, err := recipe.NewElection(bob, at("election"), "bob", nil)
	r.must(err)
	_, err = first.Campaign(r.ctx)
	r.must(err)
	wait(func(ctx context.Context) error { _, err := second.Campaign(ctx); return err })

	id := func(who string) *recipe.LockOptions { return &recipe.LockOptions{ID: who} }
	held, err := recipe.NewLock(ann, at("lock"), id("ann"))
	r.must(err)
	_, err = held.Lock(r.ctx)
	r.must(err)
	wanted, err := recipe.NewLock(bob, at("lock"), id("bob"))
	r.must(err)
	wait(func(ctx context.Context) error { _, err := wanted.Lock(ctx); return err })

	shared, err := recipe.NewReadWriteLock(ann, at("rw"), id("ann"))
	r.must(err)
	_, err = shared.RLock(r.ctx)
	r.must(err)
	other, err := recipe.NewReadWriteLock(bob, at("rw"), id("bob"))
	r.must(err)
	wait(func(ctx context.Context) error { _, err := other.Lock(ctx); return err })

	lease, err := recipe.NewSemaphore(ann, at("semaphore"), 1, id("ann"))
	r.must(err)
	_, err = lease.Acquire(r.ctx)
	r.must(err)
	more, err := recipe.NewSemaphore(bob, at("semaphore"), 1, id("bob"))
	r.must(err)
	wait(func(ctx context.Context) error { _, err := more.Acquire(ctx); return err })

	q, err := recipe.NewQueue(ann, at("queue"), nil)
	r.must(err)
	r.must(q.Put(r.ctx, []byte("one")))
	w, err := recipe.NewWorkQueue(ann, at("work"), nil)
	r.must(err)
	r.must(w.Put(r.ctx, []byte("one")))
	_, err = w.Take(r.ctx)
	r.must(err)
	b, err := recipe.NewDoubleBarrier(ann, at("barrier"), 2, nil)
	r.must(err)
	wait(b.Enter)

	g, err := recipe.NewGroup(ann, at("group"), nil)
	r.must(err)
	_, err = g.Join(r.ctx, "ann", []byte("whatever"))
	r.must(err)
	d, err := recipe.NewDiscovery(ann, at("services"), nil)
	r.must(err)
	_, err = d.Register(r.ctx, recipe.Instance{Name: "web", ID: "ann", Address: "127.0.0.1", Port: 81})
	r.must(err)
	n, err := recipe.NewCounter(ann, at("counter"), nil)
	r.must(err)
	_, err = n.Add(r.ctx, 3)
	r.must(err)
}

func (r *registry) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// shapes compares the output with the expected one.
func shapes(got shown, prefix string, want []string) error {
	all := map[string]bool{}
	for _, r := range got.Recipes {
		line := strings.TrimPrefix(r.Path, prefix) + " " + r.Recipe
		if r.Leases > 0 {
			line += fmt.Sprintf(" of %d", r.Leases)
		}
		if r.Items > 0 {
			line += fmt.Sprintf(" of %d items", r.Items)
		}
		who := map[string]string{}
		var clients []string
		for _, c := range r.Clients {
			if c.ID = cmp.Or(c.ID, "-"); len(c.ID) >= 32 {
				c.ID = "<id>" // the id is random
			}
			who[c.Bid] = c.ID
			text := c.ID + " " + c.State
			if len(c.Behind) > 0 {
				text += " for"
			}
			if c.AnyOf {
				text += " any of"
			}
			for _, b := range c.Behind {
				text += " " + who[b]
			}
			clients = append(clients, text+" ("+c.Naming+")")
			if !strings.HasPrefix(c.Address, "127.0.0.1:") || c.Token == "" || c.Session == "" || c.Since == "" {
				return fmt.Errorf("%s: %+v", r.Path, c)
			}
		}
		if len(r.Clients) > 0 && r.Clients[0].State != "holds" && r.Clients[0].State != "leads" {
			slices.Sort(clients) // clients without an order come in random order
		}
		all[strings.TrimSuffix(line+": "+strings.Join(clients, ", "), " ")] = true
	}
	for _, w := range want {
		if !all[w] {
			return fmt.Errorf("there is no %q in\n%s", w, strings.Join(slices.Sorted(maps.Keys(all)), "\n"))
		}
		delete(all, w)
	}
	if len(all) > 0 {
		return fmt.Errorf("besides there is %q", slices.Sorted(maps.Keys(all)))
	}
	return nil
}

// paste runs a printed command in a shell and confirms its question with yes.
func paste(command string) error {
	binary, err := target.Binary()
	if err != nil {
		return err
	}
	cmd := exec.Command("sh", "-c", command)
	cmd.Env = append(cmd.Environ(), "PATH="+filepath.Dir(binary)+":/usr/bin:/bin")
	cmd.Stdin = strings.NewReader("y\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", command, err, out)
	}
	return nil
}
