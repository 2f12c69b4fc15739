package interop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/recipe"
	"bellwether/zk"
)

// attach opens a client that is closed at the end of the test.
func attach(t *testing.T, addr string, timeout time.Duration) *zk.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), electionWait)
	defer cancel()
	c, err := zk.Connect(ctx, addr, &zk.Options{SessionTimeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), briefTimeout)
		defer cancel()
		_ = c.Close(ctx) // an error means that the client was detached
	})
	return c
}

// recordingParticipant is the participant of a site. Its Prepare of one transaction waits until held is
// closed.
type recordingParticipant struct {
	holds    string
	held     chan struct{}
	asked    chan string
	outcomes chan string
}

func (b *recordingParticipant) Prepare(ctx context.Context, tx recipe.Tx) error {
	b.asked <- string(tx.Data)
	if string(tx.Data) != b.holds {
		return nil
	}
	select {
	case <-b.held:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *recordingParticipant) Commit(_ context.Context, tx recipe.Tx) error {
	b.outcomes <- string(tx.Data) + " commit"
	return nil
}

func (b *recordingParticipant) Abort(_ context.Context, tx recipe.Tx) error {
	b.outcomes <- string(tx.Data) + " abort"
	return nil
}

// TestTwoPhaseCommit commits transactions on five sites: all commit; one site is killed before
// it has voted, and the others abort; the coordinator is killed, and the sites commit.
func TestTwoPhaseCommit(t *testing.T) {
	eachShared(t, func(t *testing.T, s *target.Server) {
		for _, plain := range []bool{false, true} {
			t.Run(fmt.Sprint("plain ", plain), func(t *testing.T) {
				t.Parallel()
				twoPhases(t, s, plain)
			})
		}
	})
}

func twoPhases(t *testing.T, s *target.Server, plain bool) {
	o := &recipe.CommitOptions{Plain: plain, Patience: time.Minute}
	if plain { // with Plain, only this timeout ends the wait for a killed site
		o.Patience = 20 * time.Second
	}
	root := fresh("commit")
	var names []string
	var books []*recordingParticipant
	var clients []*zk.Client
	var stops []func()
	for i := range 5 {
		name := fmt.Sprint("site", i)
		b := &recordingParticipant{held: make(chan struct{}), asked: make(chan string, 9), outcomes: make(chan string, 9)}
		timeout := electionTimeout
		if b.holds = "orphaned"; i == 4 { // the site that is killed
			b.holds, timeout = "hard", sessionTimeout
		}
		c := attach(t, s.Addr, timeout)
		site, err := recipe.NewSite(c, root, name, b, o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if err := site.Serve(ctx); err != nil && ctx.Err() == nil {
				t.Errorf("%s: %v", name, err)
			}
		}()
		stopped := sync.OnceFunc(func() { stop(); <-ended })
		t.Cleanup(stopped)
		names, books, clients, stops = append(names, name), append(books, b), append(clients, c), append(stops, stopped)
	}
	coordinatorClient := attach(t, s.Addr, briefTimeout)
	coordinator, err := recipe.NewCoordinator(coordinatorClient, root, o)
	if err != nil {
		t.Fatal(err)
	}
	commit := func(ctx context.Context, what string, sites []string) (recipe.Decision, error) {
		return coordinator.Commit(ctx, coordinator.Path(), sites, []byte(what), nil)
	}
	each := func(want string, books []*recordingParticipant) {
		t.Helper()
		for i, b := range books {
			select {
			case got := <-b.outcomes:
				if got != want {
					t.Errorf("site %d: %s, want %s", i, got, want)
				}
			case <-time.After(electionWait):
				t.Fatalf("site %d does not get the outcome in time: want %s", i, want)
			}
		}
	}

	if d, err := commit(t.Context(), "easy", names); d != recipe.Commit || err != nil {
		t.Fatalf("all sites voted to commit, the outcome is %v, %v", d, err)
	}
	each("easy commit", books)

	out := make(chan recipe.Decision, 1)
	go func() {
		d, err := commit(t.Context(), "hard", names)
		if err != nil {
			t.Error(err)
		}
		out <- d
	}()
	<-books[4].asked // Prepare of the transaction "easy"
	<-books[4].asked
	stops[4]()
	clients[4].Detach() // the session of this site will expire
	if d := <-out; d != recipe.Abort {
		t.Errorf("a site was killed before it voted, the outcome is %v, want abort", d)
	}
	each("hard abort", books[:4])

	ctx, kill := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := commit(ctx, "orphaned", names[:4])
		failed <- err
	}()
	for asked := ""; asked != "orphaned"; asked = <-books[3].asked {
	}
	kill()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("the error of the killed coordinator is %v, want context.Canceled", err)
	}
	coordinatorClient.Detach()
	for _, b := range books[:4] {
		close(b.held)
	}
	each("orphaned commit", books[:4])
}

// TestDoubleBarrierWithCurator shows that two Bellwether members and one of Curator start
// together and end together.
func TestDoubleBarrierWithCurator(t *testing.T) {
	javac := target.Tool(t, "javac", "default-jdk-headless")
	java := target.Tool(t, "java", "default-jdk-headless")
	target.File(t, "/usr/share/java/curator-recipes.jar", "libcurator-recipes-java")
	classes := t.TempDir()
	target.Script{
		Args: []string{javac, "-Xlint:unchecked,deprecation,rawtypes", "-Werror", "-proc:none", "-cp", curatorPath, "-d", classes, "queues/Meeting.java"},
	}.Pass(t)
	args := append(append([]string{java}, target.JVM...), "-cp", classes+":"+curatorPath, "Meeting")
	eachShared(t, func(t *testing.T, s *target.Server) { meet(t, s, args) })
}

func meet(t *testing.T, s *target.Server, program []string) {
	path := fresh("meeting")
	a, errA := recipe.NewDoubleBarrier(attach(t, s.Addr, electionTimeout), path, 3, nil)
	b, errB := recipe.NewDoubleBarrier(attach(t, s.Addr, electionTimeout), path, 3, nil)
	if err := errors.Join(errA, errB); err != nil {
		t.Fatal(err)
	}
	in, out, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	entered := make(chan error, 1)
	go func() { entered <- a.Enter(t.Context()) }()
	go func() {
		defer close(ended)
		target.Script{
			Args: append(slices.Clone(program), s.Addr, path, "3"),
			Commands: map[string]func() error{
				"@in":  func() error { close(in); return nil },
				"@out": func() error { close(out); return nil },
			},
		}.Pass(t)
	}()
	t.Cleanup(func() { <-ended })
	c := attach(t, s.Addr, electionTimeout)
	awaitChildren(t, c, path, 2)
	select {
	case <-in:
		t.Fatal("Curator's member has entered before all had arrived")
	case err := <-entered:
		t.Fatalf("a Bellwether member has entered before all had arrived: %v", err)
	default:
	}
	if err := b.Enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	soon(t, in, "Curator's member has not entered")
	if err := <-entered; err != nil {
		t.Fatal(err)
	}
	left := make(chan error, 2)
	go func() { left <- a.Leave(t.Context()) }()
	go func() { left <- b.Leave(t.Context()) }()
	awaitChildren(t, c, path, 2) // the ready znode and Curator's member, which was not told to leave, must remain
	select {
	case <-out:
		t.Fatal("Curator's member has left before it was told to leave")
	case err := <-left:
		t.Fatalf("a Bellwether member has left before all were ready to leave: %v", err)
	default:
	}
	mustCreate(t, c, path+"-leave")
	soon(t, out, "Curator's member has not left")
	for range 2 {
		if err := <-left; err != nil {
			t.Fatal(err)
		}
	}
}

// awaitChildren waits until a znode has at least n children.
func awaitChildren(t *testing.T, c *zk.Client, path string, n int) {
	t.Helper()
	for end := time.Now().Add(electionWait); time.Now().Before(end); <-time.After(time.Millisecond) {
		if names, _, err := c.Children(t.Context(), path); err == nil && len(names) >= n {
			return
		}
	}
	t.Fatalf("%s does not get %d children in time", path, n)
}

// TestQueuesWithKazoo runs producers and consumers of Bellwether and of kazoo on the same
// queues.
func TestQueuesWithKazoo(t *testing.T) {
	target.File(t, "/usr/lib/python3/dist-packages/kazoo/client.py", "python3-kazoo")
	eachShared(t, func(t *testing.T, s *target.Server) {
		path, o := fresh("shared-queue"), &recipe.QueueOptions{Naming: recipe.KazooItems}
		c := attach(t, s.Addr, electionTimeout)
		q, errQ := recipe.NewQueue(c, path, o)
		w, errW := recipe.NewWorkQueue(c, path+"-work", o)
		err := errors.Join(errQ, errW)
		if err == nil {
			err = errors.Join(q.Put(t.Context(), []byte("first")), q.Put(t.Context(), []byte("second")),
				q.PutPriority(t.Context(), []byte("urgent"), 1), w.Put(t.Context(), []byte("job")))
		}
		if err != nil {
			t.Fatal(err)
		}
		target.Script{Args: []string{debianPython, "-B", "queues/ends.py", s.Addr, path}}.Pass(t)
		for _, want := range []string{"sooner", "later"} {
			if got, err := q.Take(t.Context()); string(got) != want || err != nil {
				t.Errorf("took %s, %v, want %s", got, err, want)
			}
		}
		for _, want := range []string{"high", "low"} {
			item, err := w.Take(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := item.Ack(t.Context()); string(item.Data) != want || err != nil {
				t.Errorf("acknowledged %s, %v, want %s", item.Data, err, want)
			}
		}
		for _, left := range []func(context.Context) (int, error){q.Len, w.Len} {
			if n, err := left(t.Context()); n != 0 || err != nil {
				t.Errorf("%d left, %v", n, err)
			}
		}
	})
}
