package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"bellwether/internal/record"
	"bellwether/wire"
)

// On a disk that fills up at any point the log refuses a batch, says what is
// durable, has nothing of the refused batch after whatever crash, and goes on
// with other content for the same zxids once there is room.
func TestDiskFull(t *testing.T) {
	for space := int64(0); space < 12000; space += 300 {
		for _, prealloc := range []int64{-1, 4096} {
			t.Run(fmt.Sprintf("%d/%d", space, prealloc), func(t *testing.T) { diskFull(t, space, prealloc) })
		}
	}
}

func diskFull(t *testing.T, space, prealloc int64) {
	d := newDriver(NewMem(uint64(space)), Options{DataDir: "/data", PreallocBytes: prealloc})
	must(t, d.start())
	must(t, d.commit(1))
	d.m.SetSpace(space)
	var full *FullError
	for full == nil {
		last := d.last
		err := d.commit(last+1, last+2, last+3)
		if err != nil && !errors.As(err, &full) {
			t.Fatal(err)
		}
		if err != nil {
			d.forget(d.acked)
		}
	}
	if full.Zxid != d.acked || d.s.LastZxid() != d.acked || d.s.Synced() != d.acked {
		t.Fatalf("%v; last %v, synced %v, acknowledged %v", full, d.s.LastZxid(), d.s.Synced(), d.acked)
	}
	for v := range variants {
		c := d.m.Clone(uint64(v))
		c.Crash(v)
		must(t, d.verify(t, c).s.Close())
	}
	d.m.SetSpace(100)
	if err := d.s.Room(); !errors.As(err, &full) {
		t.Fatalf("room: %v", err)
	}
	d.m.SetSpace(-1)
	must(t, d.s.Room())
	must(t, d.commit(d.last+1, d.last+2))
	d.m.Crash(LoseAll)
	must(t, d.verify(t, d.m).s.Close())
}

// What keeps the probe for room from being written is a FullError only when
// it is a full disk. The probe is gone after it, as far as it can be.
func TestRoomTellsErrorsApart(t *testing.T) {
	for _, cause := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS, syscall.EACCES} {
		for _, op := range []Op{OpCreate, OpWrite, OpSync, OpRemove} {
			d := newDriver(NewMem(1), dataOptions)
			must(t, d.start())
			must(t, d.commit(1, 2))
			d.m.Fail(op, 1, cause)
			err := d.s.Room()
			var full *FullError
			if !errors.Is(err, cause) || errors.As(err, &full) != isFull(cause) {
				t.Errorf("%s fails with %v: %v", op, cause, err)
			}
			if full != nil && full.Zxid != 2 {
				t.Errorf("%s fails with %v: durable up to %v", op, cause, full.Zxid)
			}
			must(t, d.s.Room())
			must(t, d.commit(3))
			if left := names(t, d.m); slices.ContainsFunc(left, func(n string) bool { return strings.HasPrefix(n, tempPrefix) }) {
				t.Errorf("%s fails with %v: %v", op, cause, left)
			}
		}
	}
}

// A batch refused in a new log leaves no file behind that could come back.
func TestDiskFullInNewLog(t *testing.T) {
	d := newDriver(NewMem(3), dataOptions)
	must(t, d.start())
	must(t, d.commit(1))
	must(t, d.roll())
	d.m.SetSpace(600)
	var full *FullError
	if err := d.commit(2, 3, 4); !errors.As(err, &full) || full.Zxid != 1 {
		t.Fatalf("%v", err)
	}
	d.forget(1)
	d.m.SetSpace(-1)
	must(t, d.commit(2))
	d.m.Crash(LoseAll)
	must(t, d.verify(t, d.m).s.Close())
}

// A snapshot for which there is no room fails, and changes nothing.
func TestDiskFullInSnapshot(t *testing.T) {
	d := newDriver(NewMem(3), dataOptions)
	must(t, d.start())
	must(t, d.commit(1, 2, 3, 4))
	before := names(t, d.m)
	d.m.SetSpace(1000)
	var full *FullError
	if err := d.snapshot(4); !errors.As(err, &full) || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("%v", err)
	}
	if after := names(t, d.m); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("files %s, were %s", after, before)
	}
	d.m.SetSpace(-1)
	must(t, d.snapshot(4))
	must(t, d.commit(5))
}

// A full disk does not keep a torn log from being mended at the start.
func TestDiskFullAtStart(t *testing.T) {
	m, _ := filled(t, 4)
	raw := get(t, m, "log.1")
	put(t, m, "log.1", append(raw, raw[16:400]...))
	m.SetSpace(0)
	w, _, err := load(m, dataOptions)
	if err != nil || w.last != 4 {
		t.Fatalf("%v, last %v", err, w.last)
	}
}

// After a failed sync nothing is acknowledged any more, and the descriptor is
// not synced again, although that would seem to succeed (ZOOKEEPER-4882 and
// the write-back rules of the systems). The same for any other error.
func TestFailedSyncPoisons(t *testing.T) {
	for _, op := range []Op{OpSync, OpSyncDir, OpWrite, OpAllocate, OpCreate} {
		for _, fresh := range []bool{true, false} {
			if !fresh && (op == OpSyncDir || op == OpCreate || op == OpAllocate) {
				continue // nothing of the kind happens in the middle of a log
			}
			t.Run(fmt.Sprintf("%s in a new log %v", op, fresh), func(t *testing.T) { failedSync(t, op, fresh) })
		}
	}
}

func failedSync(t *testing.T, op Op, fresh bool) {
	d := newDriver(NewMem(5), dataOptions)
	must(t, d.start())
	must(t, d.commit(1, 2))
	if fresh {
		must(t, d.roll())
	}
	d.m.Fail(op, 1, syscall.EIO)
	err := d.commit(3, 4)
	var poisoned *PoisonedError
	if !errors.As(err, &poisoned) || !errors.Is(err, syscall.EIO) {
		t.Fatalf("%v", err)
	}
	steps := d.m.Steps()
	for name, again := range map[string]error{
		"append":   d.s.Append([]*record.Txn{txn(5, 'a')}),
		"sync":     d.s.Sync(),
		"roll":     d.s.Roll(),
		"room":     d.s.Room(),
		"truncate": d.s.Truncate(1),
		"snapshot": d.snapshot(2),
		"epoch":    d.s.SetCurrentEpoch(1),
	} {
		if again != err {
			t.Errorf("%s: %v, want the first error", name, again)
		}
	}
	if d.m.Steps() != steps {
		t.Errorf("the disk was touched %d times after the error", d.m.Steps()-steps)
	}
	for v := range variants {
		c := d.m.Clone(uint64(v))
		c.Crash(v)
		must(t, d.verify(t, c).s.Close())
	}
}

// An unreadable sector stops the start with file and offset; it is not taken
// for the end of the log.
func TestReadErrorIsNoEnd(t *testing.T) {
	m, _ := filled(t, 8)
	for n := 1; n < 40; n++ {
		c := m.Clone(1)
		c.Fail(OpRead, n, syscall.EIO)
		w, res, err := load(c, dataOptions)
		switch {
		case err == nil && w.last == 8:
		case err == nil:
			t.Errorf("read %d failed: history ends at %v, %q", n, w.last, res.Notes)
		case !errors.Is(err, syscall.EIO):
			var d *DamageError
			if !errors.As(err, &d) {
				t.Errorf("read %d failed: %v", n, err)
			}
		}
	}
}

// A transaction that is too long to be logged is for good: those before it in
// its batch may be on disk.
func TestTooLongPoisons(t *testing.T) {
	d := newDriver(NewMem(1), dataOptions)
	must(t, d.start())
	bad := txn(2, 'a')
	bad.Body.(*record.CreateTxn).Data = make([]byte, recordMax)
	var poisoned *PoisonedError
	if err := d.s.Append([]*record.Txn{txn(1, 'a'), bad}); !errors.As(err, &poisoned) {
		t.Errorf("append: %v", err)
	}
	if err := d.s.Sync(); !errors.As(err, &poisoned) {
		t.Errorf("sync: %v", err)
	}
}

// A body that is not its type's would be read as damage: it is refused before
// anything of its batch is written, and the log goes on.
func TestMisfitIsNotLogged(t *testing.T) {
	misfit := func(op wire.OpCode, body record.TxnBody) *record.Txn {
		return &record.Txn{TxnHeader: record.TxnHeader{Zxid: 3, Type: op}, Body: body}
	}
	for _, bad := range []*record.Txn{
		misfit(wire.OpDelete, &record.CreateTxn{Path: "/a"}),
		misfit(wire.OpCreate, nil),
		misfit(wire.OpGetData, nil),
		misfit(wire.OpMulti, &record.MultiTxn{Ops: []record.SubTxn{{Type: wire.OpDelete, Body: &record.CheckTxn{}}}}),
		misfit(wire.OpMulti, &record.MultiTxn{Ops: []record.SubTxn{{Type: wire.OpDelete}}}),
	} {
		d := newDriver(NewMem(1), dataOptions)
		must(t, d.start())
		must(t, d.commit(1))
		steps := d.m.Steps()
		err := d.s.Append([]*record.Txn{txn(2, 'a'), bad})
		if err == nil || !strings.Contains(err.Error(), "transaction 0x3 is a ") {
			t.Errorf("%v with %T: %v", bad.Type, bad.Body, err)
		}
		must(t, d.s.Sync())
		if d.m.Steps() != steps || d.s.LastZxid() != 1 {
			t.Errorf("%v with %T: something was written, last is %v", bad.Type, bad.Body, d.s.LastZxid())
		}
		must(t, d.commit(2, 3))
		d.m.Crash(LoseAll)
		must(t, d.verify(t, d.m).s.Close())
	}
}

// Installing a leader's snapshot fails anywhere: either nothing has changed
// and the history goes on, or the store is poisoned. A log that went on behind
// the snapshot that has its name already would be lost.
func TestInstallFailsAnywhere(t *testing.T) {
	poisoned := 0
	for n, steps := 1, 1; n <= steps; n++ {
		d := newDriver(NewMem(uint64(n)), dataOptions)
		must(t, d.start())
		must(t, d.commit(1, 2, 3))
		before := d.m.Steps()
		d.m.Fail(OpAny, n, syscall.EIO)
		err := d.install(2<<32 + 7)
		steps = max(steps, d.m.Steps()-before)
		if err == nil {
			continue // it was a truncation of zeros
		}
		if d.s.Sync() == nil {
			d.cut = false
			must(t, d.commit(4))
		} else {
			poisoned++
		}
		for v := range variants {
			m := d.m.Clone(uint64(v))
			m.Crash(v)
			must(t, d.verify(t, m).s.Close())
		}
	}
	if poisoned == 0 {
		t.Error("no failure came after the snapshot had its name")
	}
}

// Cutting the history back fails anywhere: either nothing has changed and it goes
// on, or the store is poisoned. What is logged behind a cut that the next start
// goes on with would be lost.
func TestTruncateFailsAnywhere(t *testing.T) {
	for _, cause := range []error{syscall.EIO, syscall.ENOSPC} {
		goes, poisoned := 0, 0
		for n, steps := 1, 1; n <= steps; n++ {
			d := newDriver(NewMem(uint64(n)), dataOptions)
			must(t, d.start())
			must(t, d.commit(1, 2, 3))
			before := d.m.Steps()
			d.m.Fail(OpAny, n, cause)
			err := d.truncate(2)
			steps = max(steps, d.m.Steps()-before)
			switch {
			case err == nil:
				continue // it was a truncation of zeros
			case d.s.Sync() != nil:
				poisoned++
			case d.s.loaded:
				goes++
				d.cut, d.acked = false, 3
				must(t, d.commit(4))
			}
			for v := range variants {
				m := d.m.Clone(uint64(v))
				m.Crash(v)
				must(t, d.verify(t, m).s.Close())
			}
		}
		if goes == 0 || poisoned == 0 {
			t.Errorf("%v: %d failures changed nothing, %d poisoned", cause, goes, poisoned)
		}
	}
}

// A snapshot that could not be read while a history was cut back is out of
// use afterwards: it may know of what was cut off.
func TestCutTakesUnreadableSnapshots(t *testing.T) {
	d := newDriver(NewMem(1), dataOptions)
	must(t, d.start())
	must(t, d.commit(1, 2, 3))
	must(t, d.snapshot(1)) // knows of 3
	for nth := 1; ; nth++ {
		m := d.m.Clone(uint64(nth))
		m.Crash(KeepAll)
		s := open(t, m, dataOptions)
		_, err := s.Load(newWorld())
		must(t, err)
		m.Fail(OpRead, nth, syscall.EIO)
		if err := s.Truncate(2); err == nil && slices.Contains(names(t, m), "snapshot.1") {
			t.Fatalf("read %d failed: the snapshot that knows of 3 is still there: %v", nth, names(t, m))
		}
		if p := m.faults.planned; len(p) > 0 && p[0].left > 0 {
			return // there were fewer reads
		}
	}
}

// A full disk keeps an epoch from being saved, and a log from being cut; the
// ones before stand, and both work once there is room.
func TestEpochsAndTruncateOnAFullDisk(t *testing.T) {
	d := newDriver(NewMem(1), dataOptions)
	must(t, d.start())
	must(t, d.commit(1, 2, 3))
	_, err := d.s.Epochs()
	must(t, err)
	d.m.SetSpace(0)
	var full *FullError
	if err := d.s.SetCurrentEpoch(1); !errors.As(err, &full) || full.Zxid != 3 {
		t.Errorf("current: %v", err)
	}
	if err := d.s.SetAcceptedEpoch(1); !errors.As(err, &full) || full.Zxid != 3 {
		t.Errorf("accepted: %v", err)
	}
	if err := d.s.Truncate(2); !errors.As(err, &full) || full.Zxid != 3 {
		t.Errorf("truncate: %v", err)
	}
	if e, err := d.s.Epochs(); err != nil || e != (Epochs{}) {
		t.Errorf("epochs %+v, %v", e, err)
	}
	d.m.SetSpace(-1)
	must(t, d.commit(4))
	must(t, d.s.SetAcceptedEpoch(1))
	must(t, d.s.SetCurrentEpoch(1))
	must(t, d.s.Truncate(2))
	if z := d.s.LastZxid(); z != 2 {
		t.Errorf("it ends at %v", z)
	}
	must(t, d.s.Close())
}
