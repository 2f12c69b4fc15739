package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"bellwether/internal/local"
	"bellwether/internal/shell"
	"bellwether/recipe"
	"bellwether/zk"
)

// demoFlags are the flags of the command demo.
type demoFlags struct {
	every time.Duration
	kills int
}

const demoLong = `Run three servers and five candidates on this machine, and kill the leaders again and again.

Each server is a separate process with free ports and a folder that is removed at the end. Each has a web page, which
draws the elections. The candidates take part in one election, /demo. The demonstration alternates: it kills the server
that leads the ensemble as by kill -9 and starts it again; then it makes the candidate that leads /demo leave and
campaign again. It prints a line for each election. After the kill of a server, the line also says how long a client
that writes all the time had to wait.`

func newDemo() *cobra.Command {
	var f demoFlags
	c := &cobra.Command{
		Use:     "demo",
		Short:   "run three servers and five candidates, and kill their leaders every few seconds",
		Long:    demoLong,
		Example: "  bellwether demo\n  bellwether demo --every 1s --kills 10",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.every < 100*time.Millisecond || f.kills < 0 {
				return shell.Usage(errors.New("--every must be 100ms or more, and --kills 0 or more"))
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
			defer stop()
			return f.run(ctx, cmd.OutOrStdout())
		},
	}
	c.Flags().DurationVar(&f.every, "every", 3*time.Second, "time between two kills")
	c.Flags().IntVar(&f.kills, "kills", 0, "end after this number of kills; 0: end with Ctrl-C")
	return c
}

// demo is a running demonstration.
type demo struct {
	ensemble *local.Ensemble
	program  local.Program
	out      io.Writer
	mu       sync.Mutex // guards out
	leader   atomic.Pointer[candidate]
	changed  chan struct{} // has room for one value, which says that leader has changed
	writes   writer
}

func (f demoFlags) run(ctx context.Context, out io.Writer) error {
	dir, err := os.MkdirTemp("", "bellwether-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	e, err := local.Make(local.Options{Dir: dir, Servers: 3, Host: "127.0.0.1", Admin: true})
	if err != nil {
		return err
	}
	defer e.Stop(stopTimeout)
	d := &demo{ensemble: e, out: out, changed: make(chan struct{}, 1),
		program: serveFlags{logFormat: "text", logLevel: "error"}.program()}
	d.tell("three servers at %s; Ctrl-C ends it", e.Clients())
	d.tell("their pages, which draw each election: http://%s/ http://%s/ http://%s/", e.Admin(1), e.Admin(2), e.Admin(3))
	began := time.Now()
	for id := 1; id <= e.Servers(); id++ {
		if err := d.start(id); err != nil {
			return err
		}
	}
	first, err := d.awaitLeader(ctx, began, 0)
	if err != nil {
		return ended(ctx, err)
	}
	d.tell("%s", first)
	return ended(ctx, f.play(ctx, d))
}

// ended returns err, or nil if the user has ended the demonstration.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// play starts the candidates and kills leaders.
func (f demoFlags) play(ctx context.Context, d *demo) error {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for _, name := range []string{"ann", "bob", "cay", "dan", "eve"} {
		c := &candidate{demo: d, name: name}
		all.Go(func() { c.run(ctx) })
	}
	if err := d.writes.start(ctx, d.ensemble.Clients(), &all); err != nil {
		return err
	}
	if err := d.awaitCandidate(ctx, nil, time.Now()); err != nil {
		return err
	}
	for n := 1; f.kills == 0 || n <= f.kills; n++ {
		if err := sleep(ctx, f.every); err != nil {
			return err
		}
		kill := d.killServer
		if n%2 == 0 {
			kill = d.dismiss
		}
		if err := kill(ctx); err != nil {
			return err
		}
	}
	return nil
}

// tell prints a line that begins with the time.
func (d *demo) tell(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fmt.Fprintf(d.out, "%s  %s\n", time.Now().Format("15:04:05.000"), fmt.Sprintf(format, args...))
}

func (d *demo) start(id int) error {
	return d.ensemble.Start(id, d.program, func(id int, text string) { d.tell("server %d: %s", id, text) })
}

// killServer kills the leader, and starts it again when another server leads. It waits until all servers serve:
// as long as one of three servers is empty, the other two elect no leader, because the empty one may have lost
// its disk.
func (d *demo) killServer(ctx context.Context) error {
	if err := d.awaitAll(ctx); err != nil {
		return err
	}
	id := 0
	for try := 1; try <= d.ensemble.Servers(); try++ {
		if s, err := shell.LeaderElection(ctx, d.ensemble.Client(try)); err == nil && s != nil {
			id = try
		}
	}
	if id == 0 {
		return errors.New("no server leads")
	}
	d.tell("server %d leads, and is killed (kill -9 %d)", id, d.ensemble.PID(id))
	d.writes.begin()
	killed := time.Now()
	if err := d.ensemble.Kill(id); err != nil {
		return err
	}
	line, err := d.awaitLeader(ctx, killed, id)
	if err != nil {
		return err
	}
	wait, err := d.writes.waited(ctx)
	if err != nil {
		return err
	}
	stays := "nobody leads /demo"
	if c := d.leader.Load(); c != nil {
		stays = c.name + " leads /demo still"
	}
	d.tell("%s; a write waited %d ms; %s", line, wait.Milliseconds(), stays)
	return d.start(id)
}

// awaitLeader waits until a server other than gone leads, elected after the given moment, and returns a
// description of the election.
func (d *demo) awaitLeader(ctx context.Context, after time.Time, gone int) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		for id := 1; id <= d.ensemble.Servers(); id++ {
			if id == gone {
				continue
			}
			s, err := shell.LeaderElection(ctx, d.ensemble.Client(id))
			if err == nil && s != nil && s.Began.After(after.Add(-time.Millisecond)) {
				return fmt.Sprintf("server %d leads epoch %d: elected after %d ms, serves after %d ms (%s)",
					id, s.Epoch, s.LookMS, s.LookMS+s.DiscoverMS+s.SynchroniseMS, s.Ending), nil
			}
		}
		if err := sleep(ctx, 10*time.Millisecond); err != nil {
			return "", fmt.Errorf("no server leads: %w", err)
		}
	}
}

// awaitAll waits until every server serves.
func (d *demo) awaitAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for id := 1; id <= d.ensemble.Servers(); id++ {
		for {
			if serves, err := shell.Serves(ctx, d.ensemble.Client(id)); err == nil && serves {
				break
			}
			if err := sleep(ctx, 10*time.Millisecond); err != nil {
				return fmt.Errorf("server %d does not serve: %w", id, err)
			}
		}
	}
	return nil
}

// dismiss makes the candidate that leads leave the election.
func (d *demo) dismiss(ctx context.Context) error {
	c := d.leader.Load()
	if c == nil {
		return d.awaitCandidate(ctx, nil, time.Now())
	}
	d.tell("%s leads /demo, and leaves", c.name)
	left := time.Now()
	c.leave()
	return d.awaitCandidate(ctx, c, left)
}

// awaitCandidate waits until a candidate other than the given one leads.
func (d *demo) awaitCandidate(ctx context.Context, gone *candidate, since time.Time) error {
	for {
		if c := d.leader.Load(); c != nil && c != gone {
			d.tell("%s leads /demo after %d ms (token %d)", c.name, time.Since(since).Milliseconds(), c.token.Load())
			return nil
		}
		select {
		case <-d.changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// candidate is a client that takes part in the election of /demo until the demonstration ends.
type candidate struct {
	demo  *demo
	name  string
	token atomic.Int64
	mu    sync.Mutex
	stop  context.CancelFunc // ends the current session
}

func (c *candidate) run(ctx context.Context) {
	for ctx.Err() == nil {
		life, stop := context.WithCancel(ctx)
		c.mu.Lock()
		c.stop = stop
		c.mu.Unlock()
		if err := c.campaign(life); err != nil && life.Err() == nil {
			c.demo.tell("%s: %v", c.name, err)
		}
		stop()
		_ = sleep(ctx, 500*time.Millisecond) // an error means that ctx has ended, which ends the loop
	}
}

// leave ends the candidate's session, as the end of its process would do.
func (c *candidate) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stop()
}

// campaign opens a session and campaigns until ctx ends.
func (c *candidate) campaign(ctx context.Context) error {
	zc, err := zk.Connect(ctx, c.demo.ensemble.Clients(), &zk.Options{SessionTimeout: 10 * time.Second})
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = zc.Close(end) // if the close fails, the session expires
	}()
	e, err := recipe.NewElection(zc, "/demo", c.name, nil)
	if err != nil {
		return err
	}
	return e.Lead(ctx, func(ctx context.Context, h *recipe.Handle) error {
		c.token.Store(int64(h.Token()))
		c.demo.leads(c)
		defer c.demo.leader.CompareAndSwap(c, nil)
		<-ctx.Done()
		return nil
	})
}

// leads records that a candidate leads /demo.
func (d *demo) leads(c *candidate) {
	d.leader.Store(c)
	select {
	case d.changed <- struct{}{}:
	default:
	}
}

// writer is a client that writes all the time and measures how long each write takes.
type writer struct {
	mu    sync.Mutex
	done  *sync.Cond // uses mu; signals that another write is done
	count int
	worst time.Duration
}

// start connects, and then writes until ctx ends.
func (w *writer) start(ctx context.Context, servers string, all *sync.WaitGroup) error {
	w.done = sync.NewCond(&w.mu)
	zc, err := zk.Connect(ctx, servers, nil)
	if err != nil {
		return err
	}
	if _, _, err := zc.Create(ctx, "/beat", nil); err != nil {
		return err
	}
	all.Go(func() {
		defer zc.Close(context.Background())
		defer context.AfterFunc(ctx, w.wake)()
		for ctx.Err() == nil {
			begin := time.Now()
			_, err := zc.Set(ctx, "/beat", []byte("x"), zk.AnyVersion)
			for err != nil && ctx.Err() == nil {
				_, err = zc.Set(ctx, "/beat", []byte("x"), zk.AnyVersion)
			}
			w.mu.Lock()
			w.count++
			w.worst = max(w.worst, time.Since(begin))
			w.mu.Unlock()
			w.wake()
			_ = sleep(ctx, time.Millisecond) // an error means that ctx has ended, which ends the loop
		}
	})
	return nil
}

// wake makes waited check its condition again. It takes the lock, so that waited cannot miss the signal.
func (w *writer) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done.Broadcast()
}

// begin starts a new measurement.
func (w *writer) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.worst = 0
}

// waited returns the duration of the longest write since begin. It first waits until a write that starts now is
// done.
func (w *writer) waited(ctx context.Context) (time.Duration, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for until := w.count + 2; w.count < until && ctx.Err() == nil; {
		w.done.Wait()
	}
	return w.worst, ctx.Err()
}

// sleep waits for a duration. It returns an error if ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
