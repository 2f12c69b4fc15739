package server

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"bellwether/internal/store"
	"bellwether/wire"
)

// quiet is a log that drops everything, for tests that start many servers.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// diskOptions returns options for a server that takes snapshots and starts new log files
// often.
func diskOptions(fs store.FS) Options {
	c := testConfig()
	c.Storage.SnapCount = 20
	c.Autopurge.Interval = 3 * time.Millisecond
	return Options{Config: c, FS: fs, Log: quiet(), Seed: 7}
}

// workload pipelines writes, a few at a time, until all are answered or the
// server is gone, and returns how many were answered. Write i is: create
// /n<i>, but every third sets /n0 to i.
func workload(r *running, n int) (acked int) {
	const together = 4
	c := r.dial()
	c.write(wire.AppendFrame(nil, &wire.ConnectRequest{TimeoutMS: lastingMS, Password: make([]byte, 16)}))
	if _, err := wire.ReadFrame(c.nc, nil, 1<<20); err != nil {
		return 0
	}
	for acked < n {
		var out []byte
		for i := acked; i < acked+together; i++ {
			op, q := wire.OpCreate, wire.Record(create(fmt.Sprintf("/n%d", i), strconv.Itoa(i)))
			if i%3 == 2 {
				op, q = wire.OpSetData, &wire.SetDataRequest{Path: "/n0", Data: []byte(strconv.Itoa(i)), Version: -1}
			}
			out = append(out, request(int32(i), op, q)...)
		}
		c.nc.Write(out)
		for range together {
			if _, err := wire.ReadFrame(c.nc, nil, 1<<20); err != nil {
				return acked
			}
			acked++
		}
	}
	return n
}

// survives checks that every acknowledged write is there, and nothing that was never
// sent.
func survives(t *testing.T, r *running, acked, n int) {
	t.Helper()
	c := r.connect()
	c.t = t
	value := -1
	if acked > 0 {
		value, _ = strconv.Atoi(c.data("/n0"))
	}
	for i := range acked {
		if i%3 == 2 {
			if value < i {
				t.Fatalf("%d writes were acknowledged, /n0 holds %d", acked, value)
			}
			continue
		}
		if h := c.call(wire.OpExists, &wire.PathWatchRequest{Path: fmt.Sprintf("/n%d", i)}, nil); h.Err != wire.OK {
			t.Fatalf("%d writes were acknowledged, /n%d: %v", acked, i, h.Err)
		}
	}
	if value >= n {
		t.Fatalf("/n0 holds %d, which was never written", value)
	}
	c.create("/after", "") // the history can continue
	c.nc.Close()
}

// TestAcknowledgedWritesSurviveACrash: wherever the machine crashes, and whatever part of
// the data without fsync the disk keeps, every acknowledged write is there after the next
// start, without help (etcd 14370: reply only after the fsync, also with group commit).
func TestAcknowledgedWritesSurviveACrash(t *testing.T) {
	const n = 80
	probe := store.NewMem(1)
	r := start(t, diskOptions(probe))
	if got := workload(r, n); got != n {
		t.Fatalf("undisturbed: %d acknowledged", got)
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	steps := probe.Steps()
	t.Logf("%d points to crash at", steps)
	for at := 1; at <= steps; at += 1 + steps/120 {
		disk := store.NewMem(uint64(at))
		disk.CrashAt(at)
		acked, err := crashRun(t, diskOptions(disk), n)
		if err != nil && !errors.Is(err, store.ErrCrashed) {
			t.Fatalf("crash at %d: %v", at, err)
		}
		for keep := range 4 {
			kept := disk.Clone(uint64(at*10 + keep))
			kept.Crash(keep)
			again := start(t, diskOptions(kept))
			survives(t, again, acked, n)
			if err := again.end(); err != nil {
				t.Fatalf("crash at %d: the end after it: %v", at, err)
			}
		}
	}
}

// crashRun runs a server over a disk that will crash.
func crashRun(t *testing.T, o Options, n int) (acked int, err error) {
	s, err := New(o)
	if err != nil {
		return 0, err
	}
	done := make(chan error, 1)
	go func() { done <- s.Run(t.Context()) }()
	select {
	case <-s.Ready():
	case err := <-done:
		return 0, err
	}
	r := &running{Server: s, t: t}
	acked = workload(r, n)
	if acked == n {
		s.fail(store.ErrCrashed) // the workload ended before the crash
	}
	return acked, <-done
}

// TestFailedSyncEndsTheServer: after a failed fsync nothing is acknowledged. The process
// ends with an error that names the file and the reason, and never calls fsync on that
// descriptor again.
func TestFailedSyncEndsTheServer(t *testing.T) {
	disk := store.NewMem(1)
	r := start(t, diskOptions(disk))
	c := r.connect()
	c.create("/a", "")
	disk.Fail(store.OpSync, 1, syscall.EIO)
	c.send(wire.OpCreate, create("/b", ""))
	c.closed()
	err := <-r.done
	r.done <- err
	if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "log.") {
		t.Fatalf("Run returned %v", err)
	}
	disk.Crash(store.LoseAll)
	again := start(t, diskOptions(disk)).connect()
	again.data("/a")
	if h := again.call(wire.OpExists, &wire.PathWatchRequest{Path: "/b"}, nil); h.Err != wire.ErrNoNode {
		t.Errorf("the write that was never acknowledged: %v", h.Err)
	}
}

// TestFullDiskIsReadOnly: on a full disk writes are refused as by a read-only server.
// Reads, pings and watches continue, no session is lost, and when there is space again
// writes are accepted without help.
func TestFullDiskIsReadOnly(t *testing.T) {
	disk := store.NewMem(1)
	o := diskOptions(disk)
	o.Config.Storage.SnapCount = 100_000
	r := start(t, o)
	c := r.connect()
	c.create("/a", "before")
	disk.SetSpace(0)
	var refused wire.ReplyHeader
	for i := 0; refused.Err == wire.OK; i++ {
		if i > 100 {
			t.Fatal("the disk never gets full")
		}
		refused = c.call(wire.OpSetData, &wire.SetDataRequest{Path: "/a", Data: make([]byte, 1000), Version: -1}, nil)
	}
	if refused.Err != wire.ErrNotReadOnly {
		t.Fatalf("write on a full disk: %v", refused.Err)
	}
	if h := c.call(wire.OpCreate, create("/b", ""), nil); h.Err != wire.ErrNotReadOnly {
		t.Errorf("create on a full disk: %v", h.Err)
	}
	c.data("/a")
	c.must(wire.OpPing, nil, nil)
	if !r.Status().ReadOnly {
		t.Error("status does not say read-only")
	}
	fresh := r.dial()
	fresh.write(wire.AppendFrame(nil, &wire.ConnectRequest{TimeoutMS: lastingMS}))
	fresh.closed()
	reader := r.dial()
	reader.write(wire.AppendFrame(nil, &wire.ConnectRequest{TimeoutMS: lastingMS, HasReadOnly: true, ReadOnly: true}))
	var welcome wire.ConnectResponse
	if b, err := wire.ReadFrame(reader.nc, nil, 1<<20); err != nil || wire.Decode(b, &welcome) != nil || !welcome.ReadOnly || welcome.Session == 0 {
		t.Fatalf("a client that accepts a read-only server: %+v, %v", welcome, err)
	}
	reader.data("/a")
	if h := reader.call(wire.OpCreate, create("/b", ""), nil); h.Err != wire.ErrNotReadOnly {
		t.Errorf("create of a read-only session: %v", h.Err)
	}
	disk.SetSpace(-1)
	eventually(t, "writes are accepted again", func() bool {
		return c.call(wire.OpCreate, create("/b", "after"), nil).Err == wire.OK
	})
	reader.closed() // its client now looks for a server that accepts writes
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	o.FS = disk
	if got := start(t, o).connect().data("/b"); got != "after" {
		t.Errorf("after a restart: %q", got)
	}
}

// TestFullDiskKeepsOrder: Pipelined requests after a refused write keep their order, and
// writes that were durable before are not taken back.
func TestFullDiskKeepsOrder(t *testing.T) {
	disk := store.NewMem(1)
	o := diskOptions(disk)
	o.Config.Storage.SnapCount = 100_000
	r := start(t, o)
	c := r.connect()
	c.create("/a", "0")
	disk.SetSpace(2000)
	const n = 100
	var out []byte
	for i := range int32(n) {
		out = append(out, request(2*i, wire.OpSetData, &wire.SetDataRequest{Path: "/a", Data: fmt.Appendf(nil, "%0100d", i), Version: -1})...)
		out = append(out, request(2*i+1, wire.OpGetData, &wire.PathWatchRequest{Path: "/a"})...)
	}
	c.write(out)
	last, full := "0", false
	for i := range int32(n) {
		h := c.reply(nil)
		if h.Xid != 2*i || h.Err != wire.OK && h.Err != wire.ErrNotReadOnly || h.Err == wire.OK && full {
			t.Fatalf("write %d: %+v", i, h)
		}
		if full = h.Err != wire.OK; !full {
			last = fmt.Sprintf("%0100d", i)
		}
		var d wire.DataResponse
		if h := c.reply(&d); h.Xid != 2*i+1 || string(d.Data) != last {
			t.Fatalf("read %d: %+v %q, want %q", i, h, d.Data, last)
		}
	}
	if !full {
		t.Fatal("the disk never got full")
	}
}

// TestRemovedDataDirectoryEndsServer: the data directory is removed while a server runs.
// A later write is not acknowledged, a server without writes notices too, and the error
// names the directory.
func TestRemovedDataDirectoryEndsServer(t *testing.T) {
	for _, writes := range []bool{true, false} {
		disk := store.NewMem(1)
		r := start(t, diskOptions(disk))
		c := r.connect()
		c.create("/a", "1")
		disk.RemoveAll("data/version-2")
		if writes {
			c.write(request(1, wire.OpCreate, create("/b", "2")))
			if _, err := wire.ReadFrame(c.nc, nil, 1<<20); err == nil {
				t.Error("a write was acknowledged after the data directory was removed")
			}
		}
		select {
		case err := <-r.done:
			var removed *store.RemovedError
			if !errors.As(err, &removed) || !strings.Contains(err.Error(), "data/version-2") {
				t.Errorf("writes %v: the server ended with %v", writes, err)
			}
			r.done <- err
		case <-time.After(eventTimeout):
			t.Fatalf("writes %v: the server continues without its data directory", writes)
		}
	}
}
