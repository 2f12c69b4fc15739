package interop

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/recipe"
	"bellwether/zk"
)

const (
	workItems = 60
	workKills = 4 // kills of consumers that have an item
	workAhead = 8 // number of waiting items while further kills are planned

	workerAddr  = "WORKER_ADDR"
	workerPath  = "WORKER_PATH"
	memberCount = 3
)

func init() {
	if addr := os.Getenv(workerAddr); addr != "" {
		fmt.Println("failed:", workerMain(addr, os.Getenv(workerPath)))
		os.Exit(1)
	}
}

// TestWorkersKilledWithKazoo lets consumers of Bellwether and of kazoo's LockingQueue, in
// separate processes, share a queue, while consumers that have an item are killed at random.
// No item may have two consumers at a time, each item must be completed, and the item of a
// killed consumer must become available again.
func TestWorkersKilledWithKazoo(t *testing.T) {
	target.File(t, "/usr/lib/python3/dist-packages/kazoo/client.py", "python3-kazoo")
	eachTarget(t, func(t *testing.T, kind target.Kind) {
		s := target.StartFor(t, kind, target.Options{})
		c := attach(t, s.Addr, electionTimeout)
		path := fresh("workers")
		w, err := recipe.NewWorkQueue(c, path, &recipe.QueueOptions{Naming: recipe.KazooItems})
		if err != nil {
			t.Fatal(err)
		}
		f := &factory{t: t, c: c, addr: s.Addr, path: path, owners: map[string]*worker{}, done: map[string]int{}, doubt: map[string]bool{}}
		for i := range 4 {
			f.workers = append(f.workers, f.start(i%2 == 0))
		}
		f.run(func(i int) {
			if err := w.Put(t.Context(), fmt.Appendf(nil, "item%d", i)); err != nil {
				t.Fatal(err)
			}
		})
		if n, err := w.Len(t.Context()); n != 0 || err != nil {
			t.Errorf("%d left, %v", n, err)
		}
	})
}

// factory records what the workers print.
type factory struct {
	t          *testing.T
	c          *zk.Client
	addr, path string
	workers    []*worker
	owners     map[string]*worker // the consumer of each item
	done       map[string]int
	doubt      map[string]bool // items of killed consumers: available again, or acknowledged without a printed line
	kills      int
}

type worker struct {
	*remote
	ours bool
	item string // the item that the worker has
}

func (f *factory) start(ours bool) *worker {
	if ours {
		return &worker{remote: startRemote(f.t, workerAddr+"="+f.addr, workerPath+"="+f.path), ours: true}
	}
	return &worker{remote: begin(f.t, exec.Command(debianPython, "-B", "queues/worker.py", f.addr, f.path))}
}

// run reads the workers' lines and kills workers until all items are completed. It adds items
// as long as further kills are planned.
func (f *factory) run(put func(i int)) {
	items := 0
	for end := time.Now().Add(2 * electionWait); items < workItems || f.kills < workKills || len(f.done)+len(f.doubt) < items || f.stands(); {
		if time.Now().After(end) {
			f.t.Fatalf("%d of %d items are done, %d kills", len(f.done), items, f.kills)
		}
		if items < workItems || f.kills < workKills && items-len(f.done) < workAhead {
			put(items)
			items++
		}
		for i, w := range f.workers {
			select {
			case line := <-w.lines:
				f.hear(w, line)
			default:
			}
			if w.item != "" && f.kills < workKills && rand.IntN(40) == 0 {
				f.kill(i)
			}
		}
		<-time.After(time.Millisecond)
	}
}

func (f *factory) hear(w *worker, line string) {
	word, item, _ := strings.Cut(line, " ")
	switch word {
	case "@took":
		if other := f.owners[item]; other != nil && other != w {
			f.t.Fatalf("two consumers have the item %s", item)
		}
		if f.done[item] > 0 {
			f.t.Fatalf("a consumer took %s after it was completed", item)
		}
		w.item, f.owners[item] = item, w
		delete(f.doubt, item)
	case "@done":
		w.item = ""
		delete(f.owners, item)
		f.done[item]++
	default:
		f.t.Fatalf("ours %v: %s", w.ours, line)
	}
}

// kill kills a worker. The lines that it printed before still count.
func (f *factory) kill(i int) {
	w := f.workers[i]
	w.kill()
	for len(w.lines) > 0 {
		f.hear(w, <-w.lines)
	}
	if w.item != "" {
		delete(f.owners, w.item)
		f.kills++
		f.doubt[w.item] = true
	}
	f.workers[i] = f.start(w.ours)
}

// stands reports whether an item in doubt exists.
func (f *factory) stands() bool {
	if len(f.doubt) == 0 {
		return false
	}
	names, _, err := f.c.Children(f.t.Context(), f.path+"/entries")
	if err != nil {
		f.t.Fatal(err)
	}
	for _, name := range names {
		if data, _, err := f.c.Get(f.t.Context(), f.path+"/entries/"+name); err == nil && f.doubt[string(data)] {
			return true
		}
	}
	return false
}

// workerMain is the main function of a Bellwether worker.
func workerMain(addr, path string) error {
	ctx := context.Background()
	c, err := zk.Connect(ctx, addr, &zk.Options{SessionTimeout: briefTimeout, LeaseDelay: electionTick})
	if err != nil {
		return err
	}
	q, err := recipe.NewWorkQueue(c, path, &recipe.QueueOptions{Naming: recipe.KazooItems})
	if err != nil {
		return err
	}
	for {
		item, err := q.Take(ctx)
		if err != nil {
			return err
		}
		fmt.Println("@took", string(item.Data))
		<-time.After(time.Duration(5+rand.IntN(25)) * time.Millisecond)
		if err := item.Ack(ctx); err != nil {
			return err
		}
		fmt.Println("@done", string(item.Data))
	}
}

// TestDoubleBarrierMembersKilled kills members of a double barrier, Bellwether's and
// Curator's: one of three while it waits, and one when all are inside. The others must wait
// for the replacement of the first, and leave without the second.
func TestDoubleBarrierMembersKilled(t *testing.T) {
	program := curatorMember(t)
	eachTarget(t, func(t *testing.T, kind target.Kind) {
		s := target.StartFor(t, kind, target.Options{})
		for _, oursDies := range []bool{false, true} {
			t.Run(fmt.Sprint("ours ", oursDies), func(t *testing.T) {
				t.Parallel()
				(&meeting{t, s.Addr, fresh("killed-meeting"), program}).loses(oursDies)
			})
		}
	})
}

// meeting is one double barrier.
type meeting struct {
	t          *testing.T
	addr, path string
	program    []string
}

func (m *meeting) member(ours bool) *remote {
	if ours {
		return startRemote(m.t, memberAddr+"="+m.addr, memberPath+"="+m.path)
	}
	args := append(slices.Clone(m.program), m.addr, m.path, fmt.Sprint(memberCount))
	return begin(m.t, exec.Command(args[0], args[1:]...))
}

func (m *meeting) loses(oursDies bool) {
	t := m.t
	c := attach(t, m.addr, electionTimeout)
	first := m.member(oursDies)
	in := []*remote{m.member(!oursDies)}
	awaitChildren(t, c, m.path, 2)
	first.kill()
	m.awaitMembers(c, 1)
	in = append(in, m.member(oursDies))
	m.awaitMembers(c, 2) // two remain, because one of three was killed
	for _, r := range in {
		if len(r.lines) > 0 {
			t.Fatalf("a member entered before all had arrived: %s", <-r.lines)
		}
	}
	in = append(in, m.member(oursDies))
	for _, r := range in {
		r.await(t, "@in")
	}
	in[2].kill() // this member is inside the barrier when it is killed
	for _, r := range in[:2] {
		if err := r.in.Close(); err != nil { // the end of its input tells the member to leave
			t.Fatal(err)
		}
	}
	for _, r := range in[:2] {
		r.await(t, "@out")
	}
}

// awaitMembers waits until there are n members and no ready znode.
func (m *meeting) awaitMembers(c *zk.Client, n int) {
	m.t.Helper()
	for end := time.Now().Add(electionWait); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		names, _, err := c.Children(m.t.Context(), m.path)
		if slices.Contains(names, "ready") {
			m.t.Fatal("the ready znode exists although a member was killed")
		}
		if err == nil && len(names) == n {
			return
		}
	}
	m.t.Fatalf("the barrier does not get %d members in time", n)
}

const (
	memberAddr = "MEMBER_ADDR"
	memberPath = "MEMBER_PATH"
)

func init() {
	if addr := os.Getenv(memberAddr); addr != "" {
		if err := memberMain(addr, os.Getenv(memberPath)); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// memberMain is the main function of a Bellwether member.
func memberMain(addr, path string) error {
	ctx := context.Background()
	c, err := zk.Connect(ctx, addr, &zk.Options{SessionTimeout: briefTimeout, LeaseDelay: electionTick})
	if err != nil {
		return err
	}
	b, err := recipe.NewDoubleBarrier(c, path, memberCount, nil)
	if err != nil {
		return err
	}
	if err := b.Enter(ctx); err != nil {
		return err
	}
	fmt.Println("@in")
	_, _ = os.Stdin.Read(make([]byte, 1)) // the end of the input tells the member to leave
	if err := b.Leave(ctx); err != nil {
		return err
	}
	fmt.Println("@out")
	return nil
}
