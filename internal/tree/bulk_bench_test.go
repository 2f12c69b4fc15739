package tree

import (
	"fmt"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"bellwether/wire"
)

// bigMulti is a multi of n operations that creates half as many znodes and
// deletes them again.
func bigMulti(n int) *Request {
	var r wire.MultiRequest
	path := func(i int) string { return "/directory-000042/" + strconv.FormatInt(int64(i), 36) }
	for i := range n / 2 {
		r.Ops = append(r.Ops, wire.Op{Type: wire.OpCreate2, Request: &wire.CreateRequest{Path: path(i), ACL: wire.OpenACL()}})
	}
	for i := range n / 2 {
		r.Ops = append(r.Ops, wire.Op{Type: wire.OpDelete, Request: &wire.PathVersionRequest{Path: path(i), Version: -1}})
	}
	return request(wire.OpMulti, &r)
}

// BenchmarkMultiPrepare, BenchmarkMultiApply and BenchmarkMultiReplay measure a multi of
// 20,000 operations: preparing it on the leader without the tree's lock, applying it with
// the lock, and applying it on a server that sends no reply.
func BenchmarkMultiPrepare(b *testing.B) {
	l := benchTree(b)
	req := bigMulti(20_000)
	b.ReportAllocs()
	for b.Loop() {
		l.prepare(req)
		b.StopTimer()
		l.tree.Discard()
		b.StartTimer()
	}
}

func BenchmarkMultiApply(b *testing.B) {
	l := benchTree(b)
	req := bigMulti(20_000)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		txn := l.prepare(req)
		b.StartTimer()
		res := l.tree.Apply(txn)
		RestoreCreateTypes(res.Response.(*wire.MultiResponse), req.WithoutStat)
	}
}

func BenchmarkMultiReplay(b *testing.B) {
	l := benchTree(b)
	req := bigMulti(20_000)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		txn := l.prepare(req)
		b.StartTimer()
		l.tree.Replay(txn)
	}
}

// ephemeralsOf gives alice n ephemerals, perDirectory in each directory.
func ephemeralsOf(l *leader, n, perDirectory int) {
	for i := range n {
		if i%perDirectory == 0 {
			l.tree.Apply(l.prepare(request(wire.OpCreate, &wire.CreateRequest{Path: fmt.Sprintf("/e%06d", i/perDirectory), ACL: wire.OpenACL()})))
		}
		req := request(wire.OpCreate, &wire.CreateRequest{Path: fmt.Sprintf("/e%06d/member-%06d", i/perDirectory, i), Data: make([]byte, 20),
			ACL: wire.OpenACL(), Flags: wire.FlagEphemeral})
		l.tree.Apply(l.prepare(req))
	}
}

// threadTime returns the processor time of this thread, which other programs do not
// affect.
func threadTime() time.Duration {
	var u syscall.Rusage
	const thread = 1 // RUSAGE_THREAD
	if err := syscall.Getrusage(thread, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkEndSession ends a session with 500,000 ephemerals. It measures what the
// leader's loop does before the log is written, and what every server does with the
// tree's lock.
func BenchmarkEndSession(b *testing.B) {
	const n = 500_000
	for _, perDirectory := range []int{1000, n, 1} {
		for _, watched := range []string{"nothing", "parents", "ephemerals"} {
			b.Run(fmt.Sprintf("in directories of %d, watched %s", perDirectory, watched), func(b *testing.B) {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				for b.Loop() {
					b.StopTimer()
					l := benchTree(b)
					ephemeralsOf(l, n, perDirectory)
					switch watched {
					case "parents":
						for i := range n / perDirectory {
							l.tree.watches.add(&noEventsClient{}, fmt.Sprintf("/e%06d", i), childOnce)
						}
					case "ephemerals":
						client := &noEventsClient{}
						for i := range n {
							l.tree.watches.add(client, fmt.Sprintf("/e%06d/member-%06d", i/perDirectory, i), dataOnce)
						}
					}
					b.StartTimer()
					start := threadTime()
					txn := l.prepare(&Request{Session: alice, Op: wire.OpCloseSession})
					prepared := threadTime()
					l.tree.Apply(txn)
					b.ReportMetric(float64((prepared - start).Milliseconds()), "ms-prepare")
					b.ReportMetric(float64((threadTime() - prepared).Milliseconds()), "ms-apply")
				}
			})
		}
	}
}
