package server

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bellwether/internal/metrics"
	"bellwether/internal/peerwire"
	"bellwether/internal/replica"
	"bellwether/internal/store"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// watched is a disk watch with a clock that the test sets, and a record of what it has
// reported.
type watched struct {
	*diskWatch
	now  int64
	told []replica.Event
}

func watchDisk(limit time.Duration) *watched {
	w := &watched{}
	w.diskWatch = &diskWatch{
		limit: func() time.Duration { return limit }, clock: func() int64 { return w.now },
		wall: func(ns int64) time.Time { return time.Unix(0, ns) }, tell: func(e replica.Event) { w.told = append(w.told, e) },
		log: slog.New(slog.DiscardHandler), count: metrics.New().Counter("n"),
	}
	return w
}

// after advances the clock and checks the disk.
func (w *watched) after(d time.Duration) {
	w.now += int64(d)
	w.check()
}

// call makes a call of the disk that takes this long.
func (w *watched) call(op store.Op, path string, took time.Duration) {
	id := w.Begin(op, path)
	w.after(took)
	w.End(id)
}

// TestStallIsReportedOnce: a call that takes longer than the limit is reported once, with
// its duty and its start. Its end is reported at once.
func TestStallIsReportedOnce(t *testing.T) {
	w := watchDisk(time.Second)
	w.now = int64(5 * time.Second)
	id := w.Begin(store.OpSync, "/data/version-2/log.100000001")
	w.after(time.Second)
	if len(w.told) != 0 || w.slow() != nil {
		t.Fatalf("reported %v at the limit", w.told)
	}
	w.after(time.Millisecond)
	w.after(time.Minute)
	want := replica.DiskStalled{Since: 5000, Duty: "fsync of log.100000001"}
	if len(w.told) != 1 || w.told[0] != want {
		t.Fatalf("reported %v, want %v", w.told, want)
	}
	if d := w.slow(); d == nil || d.Dir != "/data/version-2" || d.Duty != want.Duty || !d.Since.Equal(time.Unix(5, 0)) {
		t.Errorf("slow disk %v", d)
	}
	w.End(id)
	if len(w.told) != 2 || w.told[1] != (replica.DiskAnswered{}) || w.slow() != nil {
		t.Errorf("reported %v when it had answered", w.told)
	}
}

// TestUsualSpeedRaisesLimit: with a limit of one second, a disk whose calls sometimes take 700 ms does
// not stall. A call that takes three times as long as usual does not count as a stall either, because the
// speed of the last minute raises the limit.
func TestUsualSpeedRaisesLimit(t *testing.T) {
	w := watchDisk(time.Second)
	for range 100 {
		w.call(store.OpSync, "log.1", 700*time.Millisecond)
		w.call(store.OpSync, "log.1", 5*time.Millisecond)
	}
	w.call(store.OpSync, "log.1", 2100*time.Millisecond)
	if len(w.told) != 0 {
		t.Fatalf("reported %v", w.told)
	}
	w.after(2 * time.Minute) // a call counts for one minute
	w.call(store.OpSync, "log.1", time.Millisecond)
	w.call(store.OpSync, "log.1", 1100*time.Millisecond)
	if len(w.told) != 2 {
		t.Errorf("reported %v of a disk that was fast for two minutes", w.told)
	}
}

// TestHangIsNotUsualSpeed: the time for which a disk hung does not count as its usual
// speed: the next hang is found as soon as the first.
func TestHangIsNotUsualSpeed(t *testing.T) {
	for _, hang := range []time.Duration{1900 * time.Millisecond, time.Hour} {
		w := watchDisk(time.Second)
		w.call(store.OpSync, "log.1", hang)
		if bound := w.boundNow(); bound != time.Second {
			t.Errorf("after a hang of %v a call may take %v", hang, bound)
		}
	}
}

// TestConcurrentHangsAreOneStall: several calls that hang at the same time are one stall.
func TestConcurrentHangsAreOneStall(t *testing.T) {
	w := watchDisk(time.Second)
	calls := []int{w.Begin(store.OpSync, "log.1"), w.Begin(store.OpRename, "currentEpoch"), w.Begin(store.OpSync, "log.2")}
	w.after(5 * time.Second)
	for _, id := range calls {
		w.End(id)
	}
	if bound := w.boundNow(); bound != time.Second {
		t.Errorf("a call may take %v", bound)
	}
}

// TestSlowDiskIsNotHung: a disk that is slower than the limit at each call is soon no
// longer reported, however slow it is. The raised limit has an upper bound.
func TestSlowDiskIsNotHung(t *testing.T) {
	w := watchDisk(time.Second)
	for range 20 {
		w.call(store.OpSync, "log.1", 5*time.Second)
	}
	if n := len(w.told); n > 6 { // from the third stall on the disk counts as slow; each stall before that is reported when it begins and when it ends
		t.Errorf("told %d times", n)
	}
	for range 5 {
		w.call(store.OpSync, "log.1", 25*time.Second)
	}
	if bound := w.boundNow(); bound != 10*time.Second { // ten times the limit
		t.Errorf("a call may take %v", bound)
	}
}

// TestOnlyDutiesStall: writing snapshots and reading may take any time, unless a duty waits for them. In
// that case the whole wait of the duty counts.
func TestOnlyDutiesStall(t *testing.T) {
	w := watchDisk(time.Second)
	for path, op := range map[string]store.Op{"snapshot.5": store.OpSync, "tmp.snapshot.5": store.OpWrite, "log.1": store.OpRead} {
		w.call(op, path, time.Hour)
	}
	if len(w.told) != 0 {
		t.Fatalf("reported %v", w.told)
	}
	id := w.Begin(store.OpWrite, "tmp.snapshot.5")
	w.after(time.Hour)
	done := w.whole()
	w.after(time.Second)
	if len(w.told) != 0 {
		t.Fatalf("reported %v", w.told)
	}
	w.after(time.Millisecond)
	if len(w.told) != 1 {
		t.Errorf("reported %v", w.told)
	}
	w.End(id)
	done()
}

// TestStallGoesOnWithAnotherCall: a stall continues if another call is as late as the one
// that was answered.
func TestStallGoesOnWithAnotherCall(t *testing.T) {
	w := watchDisk(time.Second)
	first, second := w.Begin(store.OpSync, "log.1"), w.Begin(store.OpRename, "currentEpoch")
	w.after(5 * time.Second)
	w.End(first)
	if len(w.told) != 1 || w.slow().Duty != "renaming to currentEpoch" {
		t.Fatalf("reported %v, %v", w.told, w.slow())
	}
	w.End(second)
	if len(w.told) != 2 {
		t.Errorf("reported %v", w.told)
	}
}

// hangs starts a standalone server whose disk hangs during a write. It returns the
// unanswered write.
func hangs(t *testing.T, o Options) (*running, *store.Mem, *client) {
	t.Helper()
	disk := store.NewMem(1)
	o.Config, o.FS = testConfig(), disk
	o.Config.Storage.StallLimit = 50 * time.Millisecond
	s := start(t, o)
	c := s.connect()
	c.create("/a", "")
	disk.Hang()
	t.Cleanup(disk.EndHang)
	c.send(wire.OpSetData, &wire.SetDataRequest{Path: "/a", Data: []byte("new"), Version: -1})
	eventually(t, "the disk is reported", func() bool { return s.Status().Disk != nil })
	return s, disk, c
}

// TestHungDiskIsReported: a standalone server reports in its status and its log that a
// disk does not answer, with directory and duty, and that it answers again. Then the
// write is answered.
func TestHungDiskIsReported(t *testing.T) {
	book := new(logBook)
	s, disk, c := hangs(t, Options{Log: slog.New(slog.NewTextHandler(book, nil))})
	d := s.Status().Disk
	if d.Dir != "data/version-2" || !strings.Contains(d.Duty, "log.1") {
		t.Errorf("it reports %v", d)
	}
	if age := s.figure("disk_duty_age_ms"); age < 50 {
		t.Errorf("the oldest duty is %v ms old", age)
	}
	if n := s.figure("disk_stall_count"); n != 1 {
		t.Errorf("%v stalls are counted", n)
	}
	disk.EndHang()
	if h := c.reply(nil); h.Err != wire.OK {
		t.Errorf("the write: %v", h.Err)
	}
	eventually(t, "the disk is reported no more", func() bool { return s.Status().Disk == nil })
	for _, want := range []string{"level=ERROR msg=\"the disk does not answer", "dir=data/version-2", "level=WARN msg=\"the disk answers again\""} {
		if !strings.Contains(book.String(), want) {
			t.Errorf("the log lacks %q: %s", want, book)
		}
	}
}

// lookupFS is a file system that can leave lookups of names unanswered, as a network file
// system does.
type lookupFS struct {
	store.FS
	hung atomic.Pointer[chan struct{}] // closed when lookups are answered again
}

func (f *lookupFS) Stat(name string) (store.FileInfo, error) {
	if answer := f.hung.Load(); answer != nil {
		<-*answer
	}
	return f.FS.Stat(name)
}

// TestHungLookupIsReported: the log writer checks every second whether its files are in
// place. If the disk does not answer that, it is reported too, although nothing is
// written.
func TestHungLookupIsReported(t *testing.T) {
	disk := &lookupFS{FS: store.NewMem(1)}
	o := Options{Config: testConfig(), FS: disk}
	o.Config.Storage.StallLimit = 50 * time.Millisecond
	s := start(t, o)
	s.connect().create("/a", "")
	answer := make(chan struct{})
	t.Cleanup(sync.OnceFunc(func() { close(answer) }))
	disk.hung.Store(&answer)
	end := time.Now().Add(20 * time.Second)
	eventually(t, "the disk is reported", func() bool { return s.Status().Disk != nil || time.Now().After(end) })
	if d := s.Status().Disk; d == nil || !strings.HasPrefix(d.Duty, "lookup of ") {
		t.Errorf("it reports %v", d)
	}
}

// TestServerEndsWithAHungDisk: a server ends even if its disk hangs.
func TestServerEndsWithAHungDisk(t *testing.T) {
	s, _, _ := hangs(t, Options{})
	s.stop()
	select {
	case err := <-s.done:
		s.done <- err
		if !errors.Is(err, errHung) && !strings.Contains(err.Error(), "could not be answered in time") {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(eventTimeout):
		t.Fatal("it does not end")
	}
}

// TestStartEndsWithAHungDisk: if the disk hangs during a start, that is reported, and the
// start ends when asked to.
func TestStartEndsWithAHungDisk(t *testing.T) {
	disk, book := store.NewMem(1), new(logBook)
	o := Options{Config: testConfig(), FS: disk, Log: slog.New(slog.NewTextHandler(book, nil))}
	o.Config.Storage.StallLimit = 50 * time.Millisecond
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	disk.Hang()
	defer disk.EndHang()
	r := run(t, s)
	eventually(t, "the hung disk is logged", func() bool { return strings.Contains(book.String(), "the disk does not answer") })
	if err := r.end(); !errors.Is(err, errHung) {
		t.Errorf("it ended with %v", err)
	}
}

// packetOf returns a packet of a type with this many bytes.
func packetOf(kind peerwire.PacketType, size int) []*peerwire.QuorumPacket {
	return []*peerwire.QuorumPacket{{Type: kind, Data: make([]byte, size)}}
}

// types returns the types of the packets among events, in order.
func types(events []event) (out []peerwire.PacketType) {
	for _, e := range events {
		if z, ok := e.event.(replica.Zab); ok {
			if r, ok := z.Event.(zab.Received); ok {
				out = append(out, r.Packet.Type)
			}
		}
	}
	return out
}

func mustPush(t *testing.T, b *inbox, link zab.LinkID, p []*peerwire.QuorumPacket) {
	t.Helper()
	if err := b.pushPackets(link, p); err != nil {
		t.Fatal(err)
	}
}

// TestOnlyRequestsAreParked: a leader whose disk is behind reads everything
// that its learners send, and parks their requests in order.
func TestOnlyRequestsAreParked(t *testing.T) {
	b := newInbox(diskQueueMax)
	b.log(diskQueueMax)
	var sent []*peerwire.QuorumPacket
	for _, kind := range []peerwire.PacketType{peerwire.PacketFollowerInfo, peerwire.PacketAckEpoch, peerwire.PacketRequest, peerwire.PacketAck, peerwire.PacketRequest, peerwire.PacketPing} {
		sent = append(sent, packetOf(kind, 10)...)
	}
	for i, p := range sent {
		p.Zxid = wire.Zxid(i)
	}
	mustPush(t, b, 1, sent)
	got := types(b.take(nil))
	if len(got) != 4 || got[0] != peerwire.PacketFollowerInfo || got[1] != peerwire.PacketAckEpoch || got[2] != peerwire.PacketAck || got[3] != peerwire.PacketPing {
		t.Errorf("read %v", got)
	}
	b.log(-1000)
	select {
	case <-b.wake:
	default:
		t.Error("the loop is not woken when the disk has space")
	}
	events := b.take(nil)
	if got := types(events); len(got) != 2 || got[0] != peerwire.PacketRequest || got[1] != peerwire.PacketRequest {
		t.Fatalf("read %v", got)
	}
	if z := events[0].event.(replica.Zab).Event.(zab.Received).Packet.Zxid; z != 2 {
		t.Errorf("request %d comes first", z)
	}
	mustPush(t, b, 1, packetOf(peerwire.PacketRequest, 10))
	if got := types(b.take(nil)); len(got) != 1 {
		t.Errorf("with room: read %v", got)
	}
}

// TestParkedRequestsAreBounded: parked requests become events only as far as the limit
// for the disk allows. Those of a link that ends are dropped.
func TestParkedRequestsAreBounded(t *testing.T) {
	b := newInbox(diskQueueMax)
	b.log(diskQueueMax)
	for range 4 {
		mustPush(t, b, 1, packetOf(peerwire.PacketRequest, 1<<20))
		mustPush(t, b, 2, packetOf(peerwire.PacketRequest, 1<<20))
	}
	b.log(-1 << 20)
	if got := types(b.take(nil)); len(got) != 1 {
		t.Errorf("%d requests for a MiB", len(got))
	}
	b.log(1 << 20)
	b.closed(1)
	b.closed(2)
	b.log(-diskQueueMax)
	if got := b.take(nil); len(got) != 0 {
		t.Errorf("%d requests of links that have ended", len(got))
	}
	b.log(diskQueueMax)
	var err error
	n := 0
	for ; err == nil && n < parkBytesMax>>20+2; n++ {
		err = b.pushPackets(3, packetOf(peerwire.PacketRequest, 1<<20))
	}
	if !errors.Is(err, errParked) || n < parkBytesMax>>20 {
		t.Errorf("after %d requests of a MiB: %v", n, err)
	}
}

// TestParkedRequestsOfAllAreBounded: the requests that all learners have parked together
// are bounded too, and count no longer when links end or requests are taken.
func TestParkedRequestsOfAllAreBounded(t *testing.T) {
	b := newInbox(diskQueueMax)
	b.log(diskQueueMax)
	learners := parkTotalMax / (64 << 20)
	for i := range learners {
		for range 64 {
			mustPush(t, b, zab.LinkID(i), packetOf(peerwire.PacketRequest, 1<<20-packetCost))
		}
	}
	if err := b.pushPackets(99, packetOf(peerwire.PacketRequest, 1<<20)); !errors.Is(err, errParked) {
		t.Errorf("beyond the bound of all: %v", err)
	}
	b.closed(99)
	b.closed(0)
	mustPush(t, b, 1, packetOf(peerwire.PacketRequest, 1<<20))
	b.log(-diskQueueMax)
	for len(b.take(nil)) > 0 {
	}
	if b.parks != 0 {
		t.Errorf("%d bytes are counted when nothing is parked", b.parks)
	}
}

// TestPacketsBeforeTheEndReachTheLoop: when a request ends the link, the packets before
// it go to the loop, and the loop is woken.
func TestPacketsBeforeTheEndReachTheLoop(t *testing.T) {
	b := newInbox(diskQueueMax)
	b.log(diskQueueMax)
	for range parkBytesMax >> 20 {
		mustPush(t, b, 1, packetOf(peerwire.PacketRequest, 1<<20-packetCost))
	}
	both := append(packetOf(peerwire.PacketAck, 0), packetOf(peerwire.PacketRequest, 1<<20)...)
	if err := b.pushPackets(1, both); !errors.Is(err, errParked) {
		t.Fatalf("beyond the bound: %v", err)
	}
	select {
	case <-b.wake:
	default:
		t.Error("the loop is not woken for the ACK")
	}
}

// TestSynchronisationLeavesSpaceForProposals: a learner that is synchronised may fill
// only half of the queue for its disk, because proposals follow at once.
func TestSynchronisationLeavesSpaceForProposals(t *testing.T) {
	b := newInbox(diskQueueMax)
	var all sync.WaitGroup
	defer all.Wait()
	defer b.close()
	b.follows(1)
	b.log(diskQueueMax / 2)
	one := bring(&all, 1, func() { mustPush(t, b, 1, packetOf(peerwire.PacketUpToDate, 0)) })
	eventually(t, "the learner waits", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.held[1] || one.Load() == 1
	})
	if one.Load() == 1 {
		t.Fatal("it is in service with half of its room used up")
	}
	b.log(-1)
	eventually(t, "it goes on", func() bool { return one.Load() == 1 })
	mustPush(t, b, 1, packetOf(peerwire.PacketProposal, 1<<20))
}

// TestFollowerWithSlowDiskClosesItsLink: a follower that serves and whose disk is behind
// closes its link. A learner that is being synchronised waits for its disk instead.
func TestFollowerWithSlowDiskClosesItsLink(t *testing.T) {
	b := newInbox(diskQueueMax)
	var all sync.WaitGroup
	defer all.Wait()
	defer b.close()
	b.follows(1)
	mustPush(t, b, 1, packetOf(peerwire.PacketUpToDate, 0))
	mustPush(t, b, 1, packetOf(peerwire.PacketProposal, 10))
	b.log(diskQueueMax)
	if err := b.pushPackets(1, packetOf(peerwire.PacketProposal, 10)); !errors.Is(err, errBehind) {
		t.Errorf("in service: %v", err)
	}
	b.closed(1)
	b.follows(2)
	one := bring(&all, 1, func() { mustPush(t, b, 2, packetOf(peerwire.PacketProposal, 10)) })
	eventually(t, "the learner waits", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.held[2]
	})
	b.log(-diskQueueMax/2 - 1)
	eventually(t, "it goes on", func() bool { return one.Load() == 1 })
}

// TestClientsWaitForTheDisk: requests of clients are not read while too much waits for
// the disk.
func TestClientsWaitForTheDisk(t *testing.T) {
	s := start(t, Options{})
	c := s.connect()
	s.inbox.log(diskQueueMax)
	c.send(wire.OpCreate, create("/a", ""))
	eventually(t, "the reader waits", func() bool { return s.stats.throttleWaits.Value() == 1 })
	if n := s.stats.proposals.Value(); n != 1 {
		t.Errorf("%d proposals", n)
	}
	s.inbox.log(-diskQueueMax)
	if h := c.reply(nil); h.Err != wire.OK {
		t.Errorf("create: %v", h.Err)
	}
}
