package interleave

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/interleave/schedule"
	"bellwether/internal/server"
	"bellwether/internal/store"
)

// dataDir is the folder of the server's data.
const dataDir = "data"

// builtIn reports whether the server itself makes a znode.
func builtIn(path string) bool {
	return path == "" || path == "/zookeeper" || strings.HasPrefix(path, "/zookeeper/")
}

// world is one run: a server, its disk, and its clients. One goroutine at a time uses it.
type world struct {
	listener *listener
	disk     *disk
	space    int // of a connection, in bytes per direction
	paths    []string
	clients  []*client
	clock    int // counts what clients send and receive
	schedule *schedule.Schedule
	digest   uint64 // of the order of all steps until the server is stopped
	faults   []fault
}

// fault is a broken rule.
type fault struct {
	what string
	line int // of the trace, where it is seen
}

// fault records that a rule is broken.
func (w *world) fault(format string, args ...any) {
	w.faults = append(w.faults, fault{fmt.Sprintf(format, args...), w.schedule.Line()})
}

// runMax is how long a run may take, in its own time. Nothing in it waits for long.
const runMax = 2 * time.Minute

// outcome is what a run has shown.
type outcome struct {
	seed   uint64
	faults []fault
	stuck  bool // the run has not ended
	trace  []string
	digest uint64 // see world
	steps  int
	images int // power failures that were checked
	events int // that clients have received
}

// run makes the run of a seed.
func run(t *testing.T, seed uint64, trace bool) (o *outcome) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(seed)
		s := schedule.Begin(seed, trace)
		w.schedule = s
		schedule.Go("operator", w.operate)
		ended := s.Run(runMax)
		o = &outcome{seed: seed, stuck: !ended, trace: s.Trace(), digest: w.digest, steps: s.Steps()}
		if !ended {
			w.fault("Answered: the run does not end; these goroutines wait:\n\t%s", strings.Join(s.Waiting(), "\n\t"))
			o.faults = w.faults
			report(t, o)
			panic("goroutines wait for ever") // they cannot be ended
		}
		s.End()
		o.faults = append(w.faults, w.check(o)...)
	})
	return o
}

// newWorld draws a world.
func newWorld(seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 1))
	spaces := []int{40, 400, 1 << 20}
	w := &world{listener: &listener{}, paths: paths[:1+rng.IntN(len(paths))], space: spaces[rng.IntN(len(spaces))], disk: &disk{Mem: store.NewMem(seed), cut: seed}}
	for i := range 2 + rng.IntN(3) {
		w.clients = append(w.clients, &client{w: w, number: i + 1, rng: rand.New(rand.NewPCG(seed, uint64(i+2))),
			window: 1 + rng.IntN(4), writes: 10 + rng.IntN(80), length: 10 + rng.IntN(15)})
	}
	return w
}

// options returns the options of the server.
func (w *world) options() server.Options {
	c := config.Default()
	c.Client = ensemble.HostPort{Host: "127.0.0.1"}
	c.DataDir, c.DataLogDir = dataDir, dataDir
	c.Limits.ClientCnxns, c.Storage.PreAllocBytes = 0, 0
	if len(w.clients)%2 == 0 {
		c.Storage.SnapCount = 6 // snapshots and new logs in the middle of the run
	}
	return server.Options{Config: c, FS: w.disk, Seed: 1, Hooks: server.Hooks{Clients: w.listener}}
}

// operate starts the server and the clients, and stops the server when the clients have
// ended.
func (w *world) operate() {
	srv, err := server.New(w.options())
	if err != nil {
		w.fault("the server does not start: %v", err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := false
	schedule.Go("server", func() {
		if err := srv.Run(ctx); err != nil {
			w.fault("the server ends: %v", err)
		}
		ended = true
	})
	<-srv.Ready()
	for _, c := range w.clients {
		schedule.Go(c.String(), c.run)
	}
	schedule.Wait("clients", func() bool {
		for _, c := range w.clients {
			if c.stage != gone {
				return false
			}
		}
		return true
	})
	w.digest = w.schedule.Digest()
	stop()
	schedule.Wait("server", func() bool { return ended })
}

// check applies the rules to what the clients and the disk have recorded.
func (w *world) check(o *outcome) (faults []fault) {
	h := historyOf(w.clients)
	faults = h.check()
	for i, p := range w.disk.images {
		faults = append(faults, h.checkImage(p, i)...)
	}
	last := &image{line: w.schedule.Line(), acked: h.last(), fs: w.disk.Mem.Clone(0)}
	faults = append(faults, h.checkImage(last, 0)...)
	o.images = len(w.disk.images) + 1
	for _, c := range w.clients {
		for _, r := range c.log {
			if r.reply == nil {
				o.events++
			}
		}
	}
	return faults
}
