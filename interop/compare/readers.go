package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"bellwether/interop/target"
	"bellwether/wire"
	"bellwether/zk"
)

// The child list that the readers request: 4.2 MB.
const (
	listedParent   = "/listed"
	listedChildren = 100_000
	listedName     = 38 // bytes of each child's name
)

// readerLoads are the loads of -readers: the number of connections to the leader, and of
// pipelined getChildren requests for the large znode on each.
var readerLoads = []struct {
	what                  string
	connections, requests int
	replies               replyUse
}{
	{"read normally", 20, 20, readReplies},
	{"read normally", 60, 40, readReplies},
	{"never read", 60, 40, ignoreReplies},
	{"connections closed at once", 60, 40, dropReplies},
}

// replyUse is how a reader treats the replies.
type replyUse int

const (
	readReplies   replyUse = iota
	ignoreReplies          // the connection stays open, nothing is read
	dropReplies            // the connection is closed after the requests were sent
)

// readerPeriod is the shortest time for which a load is measured, and readerLimit is the longest.
const (
	readerPeriod = 15 * time.Second
	readerLimit  = 90 * time.Second
)

// readers measures how long others wait while many clients request large replies from the
// leader.
func readers(ctx context.Context, kind target.Kind, p plan) ([]figure, error) {
	dir, err := os.MkdirTemp("", "bellwether-compare-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	f := &ensemble{meter: &meter{ctx: ctx, kind: kind, plan: p, dir: dir}}
	defer f.end()
	for _, load := range readerLoads {
		if err := f.largeReads(load.connections, load.requests, load.replies, load.what); err != nil {
			return nil, fmt.Errorf("%d connections with %d requests, %s: %w", load.connections, load.requests, load.what, err)
		}
	}
	return f.figures, nil
}

// largeReads starts an ensemble, puts one load on its leader, and reports the results.
func (f *ensemble) largeReads(connections, requests int, replies replyUse, what string) error {
	if _, err := f.begin(); err != nil {
		return err
	}
	leader, err := f.e.AwaitWhole(waitMax)
	if err != nil {
		return err
	}
	if err := fillListing(f.ctx, f.e.Addrs()); err != nil {
		return err
	}
	server := f.e.Servers[leader]
	began := time.Now()
	before, err := processor(server.PID())
	if err != nil {
		return err
	}
	if err := resetPeak(server.PID()); err != nil {
		return err
	}
	waits, err := f.beginWaits(leader)
	if err != nil {
		return err
	}
	l := &readerLoad{addr: server.Addr, requests: requests, replies: replies}
	l.begin(f.ctx, connections)
	l.await(f.ctx)
	took := time.Since(began)
	// The load is over when the leader is idle again.
	used := f.awaitIdle(server.PID(), began)
	changes, write, read, err := waits.end()
	if err != nil {
		return err
	}
	peak, err := peakResident(server.PID())
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%d connections, %d listings each, %s: ", connections, requests, what)
	f.say(milliseconds(write), "%slongest write through a follower", name)
	f.say(milliseconds(read), "%slongest getData at the leader", name)
	f.say(fmt.Sprint(changes), "%schanges of the leader", name)
	f.say((used - before).Round(10*time.Millisecond).String(), "%sprocessor time of the leader", name)
	f.say(mib(peak), "%speak of the leader's resident memory", name)
	if replies == readReplies {
		f.say(fmt.Sprintf("%d of %d in %.1f s", l.got.Load(), connections*requests, took.Seconds()), "%sreplies", name)
	}
	return f.stopUnder(l, server, name)
}

// stopUnder ends the leader while the load's connections are open.
func (f *ensemble) stopUnder(l *readerLoad, s *target.Server, name string) error {
	defer l.end()
	began := time.Now()
	err := s.Stop()
	f.say(milliseconds(time.Since(began)), "%stime from SIGTERM to the end of the process", name)
	return err
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

// fillListing creates the znode whose children are listed.
func fillListing(ctx context.Context, servers string) error {
	c, err := zk.Connect(ctx, servers, nil)
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	if _, _, err := c.Create(ctx, listedParent, nil); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range inFlight {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < listedChildren && ctx.Err() == nil; i = next.Add(1) - 1 {
				if _, _, err := c.Create(ctx, fmt.Sprintf("%s/%0*d", listedParent, listedName, i), nil); err != nil {
					cancel(err)
				}
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}

// readerLoad is a set of connections that request the child list.
type readerLoad struct {
	addr     string
	requests int
	replies  replyUse
	got      atomic.Int64 // replies that were read
	mu       sync.Mutex
	conns    []net.Conn
	workers  sync.WaitGroup
}

// begin opens the connections.
func (l *readerLoad) begin(ctx context.Context, n int) {
	for range n {
		l.workers.Go(func() {
			for ctx.Err() == nil && l.one() != nil { // a server without a leader refuses connections, so try again
				pause(ctx, 100*time.Millisecond)
			}
		})
	}
}

// pause waits for d or until the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// one opens a connection and sends the requests. It fails if no request was sent.
func (l *readerLoad) one() error {
	nc, err := net.Dial("tcp", l.addr)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.conns = append(l.conns, nc)
	l.mu.Unlock()
	hello := wire.AppendFrame(nil, &wire.ConnectRequest{TimeoutMS: 40_000, Password: make([]byte, wire.PasswordLen)})
	if _, err := nc.Write(hello); err != nil {
		return err
	}
	in := bufio.NewReaderSize(nc, 64<<10)
	if _, err := wire.ReadFrame(in, nil, 1<<10); err != nil {
		return errors.Join(err, nc.Close())
	}
	var out []byte
	for xid := range l.requests {
		out = wire.AppendFrame(out, &wire.RequestHeader{Xid: int32(xid + 1), Op: wire.OpGetChildren},
			&wire.PathWatchRequest{Path: listedParent})
	}
	if _, err := nc.Write(out); err != nil {
		return err
	}
	switch l.replies {
	case dropReplies:
		return nc.Close()
	case readReplies:
		l.discard(in)
	}
	return nil
}

// discard reads and discards the replies.
func (l *readerLoad) discard(in *bufio.Reader) {
	var head [4]byte
	for range l.requests {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return
		}
		n := int64(head[0])<<24 | int64(head[1])<<16 | int64(head[2])<<8 | int64(head[3])
		if _, err := io.CopyN(io.Discard, in, n); err != nil {
			return
		}
		l.got.Add(1)
	}
}

// await waits until all replies that the clients read have arrived, and at least for
// readerPeriod.
func (l *readerLoad) await(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		l.workers.Wait()
		close(done)
	}()
	least := time.After(readerPeriod)
	select {
	case <-done:
	case <-time.After(readerLimit):
	case <-ctx.Done():
	}
	if l.replies != readReplies {
		select {
		case <-least:
		case <-ctx.Done():
		}
	}
}

// end closes the connections.
func (l *readerLoad) end() {
	l.mu.Lock()
	for _, nc := range l.conns {
		nc.Close()
	}
	l.mu.Unlock()
	l.workers.Wait()
}

// waits measures the writes at a follower and small reads at the leader.
type waits struct {
	stop        context.CancelFunc
	workers     sync.WaitGroup
	write, read time.Duration // the longest durations
	first, last wire.Zxid
}

func (f *ensemble) beginWaits(leader int) (*waits, error) {
	writer, err := f.client(f.e.Servers[(leader+1)%members].Addr)
	if err != nil {
		return nil, err
	}
	small, err := f.client(f.e.Servers[leader].Addr)
	if err != nil {
		writer.Detach()
		return nil, err
	}
	w := &waits{}
	stat, err := writer.Set(f.ctx, f.path, nil, zk.AnyVersion)
	if err != nil {
		writer.Detach()
		small.Detach()
		return nil, err
	}
	w.first = stat.Mzxid
	ctx, stop := context.WithCancel(f.ctx)
	w.stop = stop
	w.workers.Go(func() {
		defer writer.Detach()
		w.write = longestWait(ctx, func(ctx context.Context) error {
			stat, err := writer.Set(ctx, f.path, nil, zk.AnyVersion)
			if err == nil {
				w.last = stat.Mzxid
			}
			return err
		})
	})
	w.workers.Go(func() {
		defer small.Detach()
		w.read = longestWait(ctx, func(ctx context.Context) error {
			_, _, err := small.Get(ctx, f.path)
			return err
		})
	})
	return w, nil
}

// longestWait repeats an operation, at most 200 times a second, and returns the longest
// time until it succeeded.
func longestWait(ctx context.Context, do func(context.Context) error) (longest time.Duration) {
	pace := time.NewTicker(5 * time.Millisecond)
	defer pace.Stop()
	began := time.Now()
	for ctx.Err() == nil {
		err := do(ctx)
		longest = max(longest, time.Since(began))
		select {
		case <-pace.C:
		case <-ctx.Done():
		}
		if err == nil {
			began = time.Now()
		}
	}
	return longest
}

// end returns the results; the number of leader changes is the increase of the epoch.
func (w *waits) end() (changes int64, write, read time.Duration, err error) {
	w.stop()
	w.workers.Wait()
	if w.last == 0 {
		return 0, 0, 0, errors.New("no write was acknowledged")
	}
	return int64(w.last.Epoch()) - int64(w.first.Epoch()), w.write, w.read, nil
}

// awaitIdle waits until a process has used less than 0.4 s of CPU time in one second, and
// returns its total CPU time.
func (f *ensemble) awaitIdle(pid int, began time.Time) time.Duration {
	last, _ := processor(pid)
	for f.ctx.Err() == nil && time.Since(began) < 2*readerLimit {
		pause(f.ctx, time.Second)
		now, err := processor(pid)
		if err != nil || now-last < 400*time.Millisecond {
			return now
		}
		last = now
	}
	return last
}

// resetPeak sets the peak of a process's resident memory to its current value.
func resetPeak(pid int) error {
	return os.WriteFile(filepath.Join("/proc", fmt.Sprint(pid), "clear_refs"), []byte("5"), 0)
}
