package server

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"bellwether/internal/store"
	"bellwether/wire"
)

// stallFS is a file system whose fsyncs can be blocked.
type stallFS struct {
	store.FS
	mu    sync.Mutex
	held  chan struct{} // fsyncs wait until it is closed; nil: they do not wait
	syncs int
}

type stallFile struct {
	store.File
	fs *stallFS
}

func (f *stallFS) wrap(file store.File, err error) (store.File, error) {
	if err != nil {
		return nil, err
	}
	return &stallFile{file, f}, nil
}

func (f *stallFS) Create(name string) (store.File, error) { return f.wrap(f.FS.Create(name)) }
func (f *stallFS) Append(name string) (store.File, error) { return f.wrap(f.FS.Append(name)) }

func (f *stallFile) Sync() error {
	f.fs.mu.Lock()
	held := f.fs.held
	f.fs.syncs++
	f.fs.mu.Unlock()
	if held != nil {
		<-held
	}
	return f.File.Sync()
}

// stall blocks fsyncs until release is called.
func (f *stallFS) stall() (release func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	held := make(chan struct{})
	f.held = held
	return func() {
		f.mu.Lock()
		f.held = nil
		f.mu.Unlock()
		close(held)
	}
}

func (f *stallFS) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.syncs
}

// TestStalledDiskDelaysOnlyWrites: while the disk stalls, only writes wait, and requests
// behind a write of the same connection. Sessions stay alive, and all writes that
// gathered meanwhile need one more fsync.
func TestStalledDiskDelaysOnlyWrites(t *testing.T) {
	withTimeouts(t, 300*time.Millisecond, func(timeout time.Duration) error { return stallWriters(t, timeout) })
}

// stallWriters runs TestStalledDiskDelaysOnlyWrites with sessions of this timeout. It returns an error if
// one of them expires.
func stallWriters(t *testing.T, timeout time.Duration) error {
	t.Helper()
	fs := &stallFS{FS: store.NewMem(1)}
	o := quick()
	o.FS = fs
	s := start(t, o)
	reader := s.connect()
	var writers []*client
	for range 10 {
		writers = append(writers, s.connectFor(timeout))
	}
	reader.create("/a", "old")
	release := fs.stall()
	before := fs.count()
	writers[0].send(wire.OpSetData, &wire.SetDataRequest{Path: "/a", Data: []byte("new"), Version: -1})
	eventually(t, "the first write is at the disk", func() bool { return fs.count() > before })
	for _, c := range writers[1:] {
		for xid := range int32(10) {
			c.nc.Write(request(xid+1, wire.OpSetData, &wire.SetDataRequest{Path: "/a", Version: -1})) // a failed write means that the session has ended, which the check below reports
		}
	}
	expired := func() bool { return s.stats.expired.Value() > 0 }
	eventually(t, "all writes wait", func() bool { return s.stats.proposals.Value() == 1+10+1+1+90 || expired() })
	// The writers keep pinging for three times their timeout. Nothing is answered, and no
	// session expires.
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(3 * timeout); time.Now().Before(end) && !expired(); <-tick.C {
		for _, c := range writers {
			c.nc.Write(request(wire.XidPing, wire.OpPing, nil))
		}
		if got := reader.data("/a"); got != "old" {
			t.Fatalf("a reader sees %q, which is not durable", got)
		}
	}
	release()
	if expired() {
		return errors.New("a session has expired")
	}
	for _, c := range writers {
		for xid := int32(0); xid != wire.XidPing; {
			h := c.reply(nil)
			if h.Err != wire.OK {
				t.Fatalf("%+v", h)
			}
			xid = h.Xid
		}
	}
	if n := fs.count() - before; n != 2 {
		t.Errorf("%d fsyncs, want one for the first write and one for the rest", n)
	}
	return nil
}

// TestThrottledOps: a request that has waited too long is answered with ThrottledOp in
// its turn and not carried out. Pings and closeSession are always carried out.
func TestThrottledOps(t *testing.T) {
	fs := &stallFS{FS: store.NewMem(1)}
	o := Options{Config: testConfig(), FS: fs}
	s := start(t, o)
	c := s.connect()
	c.create("/a", "")
	next := *o.Config
	next.Limits.Throttle.OpWait = time.Nanosecond
	s.Reload(&next)
	if h := c.call(wire.OpSetData, &wire.SetDataRequest{Path: "/a", Version: -1}, nil); h.Err != wire.ErrThrottledOp || h.Zxid != 2 {
		t.Errorf("set: %+v", h)
	}
	if h := c.call(wire.OpSync, &wire.PathRequest{Path: "/a"}, nil); h.Err != wire.ErrThrottledOp {
		t.Errorf("sync: %+v", h)
	}
	c.must(wire.OpPing, nil, nil)
	c.must(wire.OpCloseSession, nil, nil)
	c.closed()
}

// TestStaleRequestsAreDropped: while the request throttler is full, a request that has
// waited for longer than its session's timeout is dropped, and its connection is closed.
func TestStaleRequestsAreDropped(t *testing.T) {
	withTimeouts(t, 100*time.Millisecond, func(timeout time.Duration) error { return dropStale(t, timeout) })
}

// dropStale lets a request become stale. It fails if its session ends before that.
func dropStale(t *testing.T, timeout time.Duration) error {
	t.Helper()
	fs := &stallFS{FS: store.NewMem(1)}
	o := quick()
	o.FS = fs
	l := &o.Config.Limits.Throttle
	l.MaxRequests, l.Stall, l.DropStale, l.StaleLatency = 1, time.Millisecond, true, true
	s := start(t, o)
	c, late := s.connect(), s.dial()
	late.handshake(wire.ConnectRequest{TimeoutMS: int32(timeout.Milliseconds()), Password: make([]byte, 16)})
	release := fs.stall()
	defer release()
	c.send(wire.OpCreate, create("/a", ""))
	eventually(t, "the throttler is full", func() bool { return s.inProcess.Load() == 1 })
	late.nc.Write(request(1, wire.OpCreate, create("/b", ""))) // an error is noticed below
	late.closed()
	if n := s.stats.staleDropped.Value(); n != 1 {
		return fmt.Errorf("%d dropped", n)
	}
	return nil
}

// TestExpiryTakenBack: an expiry that could not be logged because the disk is full is
// taken back: the session continues normally on the same connection.
func TestExpiryTakenBack(t *testing.T) {
	withTimeouts(t, 500*time.Millisecond, func(timeout time.Duration) error { return takeExpiryBack(t, timeout) })
}

// takeExpiryBack lets a session expire while the disk stalls and then is full. It fails
// if the session expires before that, or again.
func takeExpiryBack(t *testing.T, timeout time.Duration) error {
	t.Helper()
	disk := store.NewMem(1)
	fs := &stallFS{FS: disk}
	o := quick()
	o.FS = fs
	s := start(t, o)
	other := s.connect()
	c := s.connectFor(timeout)
	before := fs.count()
	release := fs.stall()
	other.send(wire.OpCreate, create("/a", ""))
	eventually(t, "the write is at the disk", func() bool { return fs.count() > before })
	eventually(t, "the session is expiring", func() bool { return s.stats.expired.Value() == 1 })
	disk.SetSpace(0)
	other.send(wire.OpCreate, create("/big", string(make([]byte, 4000))))
	eventually(t, "a write that does not fit waits behind two sessions, one write and one end", func() bool { return s.stats.proposals.Value() == 5 })
	release()
	eventually(t, "the disk is full", func() bool { return s.Status().ReadOnly })
	if err := c.try(wire.OpPing, nil, nil); err != nil {
		return fmt.Errorf("ping of the session that was expiring: %w", err)
	}
	disk.SetSpace(-1)
	eventually(t, "writes are accepted", func() bool { return !s.Status().ReadOnly })
	for end := time.Now().Add(2 * timeout); time.Now().Before(end); {
		if err := c.try(wire.OpPing, nil, nil); err != nil {
			return err
		}
	}
	return c.try(wire.OpCreate, create("/b", ""), &wire.PathResponse{})
}
