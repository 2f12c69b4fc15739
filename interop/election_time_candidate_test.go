package interop

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"bellwether/interop/target"
	"bellwether/recipe"
	"bellwether/wire"
	"bellwether/zk"
)

// jumpTimeout is the session timeout of candidates while clocks jump.
const jumpTimeout = 6 * time.Second

// Environment variables that make a test process a candidate that leads again and again.
const (
	jumperAddr   = "ELECTION_JUMPER_ADDR"
	jumperParent = "ELECTION_JUMPER_PARENT"
	jumperState  = "ELECTION_JUMPER_STATE"
)

func init() {
	if addr := os.Getenv(jumperAddr); addr != "" {
		if err := jumperMain(addr, os.Getenv(jumperParent), os.Getenv(jumperState)); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// jumperMain is the main function of a process that leads whenever it can, until its input
// ends.
func jumperMain(addr, parent, state string) error {
	ctx, cancel := untilInputEnds()
	defer cancel()
	c, err := zk.Connect(ctx, addr, &zk.Options{SessionTimeout: jumpTimeout, LeaseDelay: electionTick})
	if err != nil {
		return err
	}
	defer c.Close(context.Background())
	e, err := recipe.NewElection(c, parent, fmt.Sprint(os.Getpid()), nil)
	if err != nil {
		return err
	}
	err = e.Lead(ctx, func(ctx context.Context, h *recipe.Handle) error {
		fmt.Println("leads", int64(h.Token()))
		for ctx.Err() == nil {
			tell(h)
			writePastDeadline(ctx, c, h, state)
		}
		for range 5 { // this candidate continues to write, like a process that has not noticed the loss
			writePastDeadline(context.WithoutCancel(ctx), c, h, state)
		}
		fmt.Println("over", int64(h.Token()), h.Lost())
		return ctx.Err()
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// tell prints an instant if the handle is unexpired at that instant. It reads the clock first. A handle
// never becomes unexpired again, so if it is unexpired now, it was unexpired when the clock was read.
func tell(h *recipe.Handle) {
	at := machineTime()
	if h.Left() > 0 {
		fmt.Println("held", int64(h.Token()), int64(at))
	}
}

// writePastDeadline sends a guarded write like a process that was stopped after its check of
// the deadline, and prints whether it succeeded.
func writePastDeadline(ctx context.Context, c *zk.Client, h *recipe.Handle, state string) {
	ctx, cancel := context.WithTimeout(ctx, jumpTimeout)
	defer cancel()
	res, err := c.Multi(ctx, h.Guard(), zk.SetOp(state, fmt.Append(nil, int64(h.Token())), zk.AnyVersion))
	if err == nil {
		fmt.Println("wrote", int64(h.Token()), int64(res[1].Stat.Mzxid))
	}
}

// machineTime returns the monotonic clock, which all processes of the machine share and which
// nobody can set.
func machineTime() time.Duration {
	const monotonic = 1
	var ts syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, monotonic, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		panic(errno)
	}
	return time.Duration(ts.Nano())
}

// jumper is such a process; the test controls its wall clock.
type jumper struct {
	*remote
	clock *target.WallClock
}

// span holds what a jumper has printed about one term.
type span struct {
	of          *jumper
	first, last time.Duration // first and last instant at which it was unexpired
	writes      int           // number of successful writes
	over        string        // why the term has ended; empty while it has not
}

// jumps is an election of jumpers, and the records about it.
type jumps struct {
	s     *target.Server
	watch *candidate // only observes; its clocks are correct
	state string
	all   []*jumper

	mu     sync.Mutex
	spans  map[wire.Zxid]*span
	writes []write
	failed string
	heard  sync.WaitGroup
}

// newJumps starts a new server and n candidates.
func newJumps(t *testing.T, kind target.Kind, n int) *jumps {
	t.Helper()
	s := target.StartFor(t, kind, target.Options{})
	root := fresh("jumps")
	j := &jumps{s: s, state: root + "/state", spans: map[wire.Zxid]*span{}}
	j.watch = newCandidate(t, s.Addr, root+"/job", "onlooker", electionTimeout, recipe.ElectionOptions{})
	mustCreate(t, j.watch.c, root)
	mustCreate(t, j.watch.c, j.state)
	for range n {
		r := startRemote(t, jumperAddr+"="+s.Addr, jumperParent+"="+root+"/job", jumperState+"="+j.state)
		k := &jumper{remote: r, clock: target.WallClockOf(t, r.cmd.Process.Pid)}
		j.all = append(j.all, k)
		j.heard.Go(func() { j.hear(k) })
	}
	j.await(t, "all stand", func() bool {
		bids, err := j.watch.e.Candidates(t.Context())
		return err == nil && len(bids) == n
	})
	return j
}

// hear records the lines of a candidate until it has ended.
func (j *jumps) hear(k *jumper) {
	for {
		select {
		case line := <-k.lines:
			j.note(k, line)
		case <-k.done:
			for len(k.lines) > 0 {
				j.note(k, <-k.lines)
			}
			return
		}
	}
}

func (j *jumps) note(k *jumper, line string) {
	var token wire.Zxid
	var number int64
	verb, rest, _ := strings.Cut(line, " ")
	fmt.Sscan(rest, &token, &number) // the numbers may be missing from the line
	j.mu.Lock()
	defer j.mu.Unlock()
	sp := j.spans[token]
	switch {
	case verb == "leads":
		j.spans[token] = &span{of: k}
	case sp == nil:
		j.failed = line
	case verb == "held":
		sp.last = time.Duration(number)
		if sp.first == 0 {
			sp.first = sp.last
		}
	case verb == "wrote":
		sp.writes++
		j.writes = append(j.writes, write{wire.Zxid(number), token})
	case verb == "over":
		sp.over = rest
	default:
		j.failed = line
	}
}

// await waits for a condition, which is called without a lock.
func (j *jumps) await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(electionWait); !holds(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", electionWait, what)
		}
	}
}

// term returns the record of a term.
func (j *jumps) term(token wire.Zxid) span {
	j.mu.Lock()
	defer j.mu.Unlock()
	return *j.spans[token]
}
