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

// TestDiskFull: the disk becomes full at any point. The log refuses a batch and reports
// the last durable transaction. After a crash, nothing of the refused batch is there.
// When there is space again, other transactions can be logged with the same zxids.
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

// TestRoomDistinguishesErrors: Room writes a file to find out whether there is space. If
// that fails, the error is a FullError only if the disk is full. Afterwards the file is
// removed if possible.
func TestRoomDistinguishesErrors(t *testing.T) {
	for _, cause := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.EIO, syscall.EROFS, syscall.EACCES} {
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

// TestDiskFullInNewLog: if the first batch of a new log is refused, no file remains that
// a later start could read.
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

// TestNoDescriptorForNewLog: a new log cannot be created, or its name cannot be made durable, because the process has no free
// descriptor. The batch is refused and no file remains; when there is a descriptor again, the log continues.
func TestNoDescriptorForNewLog(t *testing.T) {
	for _, op := range []Op{OpCreate, OpSyncDir} {
		for _, cause := range []error{syscall.EMFILE, syscall.ENFILE} {
			d := newDriver(NewMem(3), dataOptions)
			must(t, d.start())
			must(t, d.commit(1))
			must(t, d.roll())
			before := names(t, d.m)
			d.m.Fail(op, 1, cause)
			var full *FullError
			if err := d.commit(2, 3); !errors.As(err, &full) || full.Zxid != 1 || !strings.Contains(err.Error(), "limit of open files") {
				t.Fatalf("%s: %v", op, err)
			}
			if after := names(t, d.m); !slices.Equal(after, before) {
				t.Errorf("%s: files %s, were %s", op, after, before)
			}
			d.forget(1)
			must(t, d.s.Room())
			must(t, d.commit(2))
			d.m.Crash(LoseAll)
			must(t, d.verify(t, d.m).s.Close())
		}
	}
}

// TestNoDescriptorForEpoch: the new epoch is in its file when the folder cannot be opened for an fsync. That is no full disk, which
// would leave the old epoch.
func TestNoDescriptorForEpoch(t *testing.T) {
	d := newDriver(NewMem(3), dataOptions)
	must(t, d.start())
	d.m.Fail(OpSyncDir, 1, syscall.EMFILE)
	var full *FullError
	if err := d.s.SetCurrentEpoch(5); err == nil || errors.As(err, &full) {
		t.Errorf("%v", err)
	}
}

// TestDiskFullInSnapshot: a snapshot for which there is no space fails and changes
// nothing.
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

// TestDiskFullAtStart: a torn log can be repaired at the start even if the disk is full.
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

// TestFailedSyncPoisons: after a failed fsync nothing is acknowledged any more. The file
// is not fsynced again, because a second fsync would seem to succeed (ZOOKEEPER-4882 and
// the write-back rules of operating systems). The same holds for any other error.
func TestFailedSyncPoisons(t *testing.T) {
	for _, op := range []Op{OpSync, OpSyncDir, OpWrite, OpAllocate, OpCreate} {
		for _, fresh := range []bool{true, false} {
			if !fresh && (op == OpSyncDir || op == OpCreate || op == OpAllocate) {
				continue // this call does not occur in the middle of a log
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

// TestFileSizeLimitIsNamed: the error of a log that would exceed the limit of file size names the limit and what to do,
// because nothing is wrong with the disk.
func TestFileSizeLimitIsNamed(t *testing.T) {
	for _, op := range []Op{OpAllocate, OpWrite} {
		d := newDriver(NewMem(1), dataOptions)
		must(t, d.start())
		d.m.Fail(op, 1, syscall.EFBIG)
		err := d.commit(1)
		var poisoned *PoisonedError
		if text := fmt.Sprint(err); !errors.As(err, &poisoned) || !strings.Contains(text, "raise it (ulimit -f, LimitFSIZE=), or set preAllocSize") || strings.Contains(text, "repair") {
			t.Errorf("%s: %v", op, err)
		}
	}
}

// TestReadErrorIsNotTheEndOfTheLog: an unreadable sector stops the start with an error
// that has file and offset. It is not taken for the end of the log.
func TestReadErrorIsNotTheEndOfTheLog(t *testing.T) {
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

// TestTooLongPoisons: a transaction that is too long for the log poisons the store,
// because earlier transactions of its batch may be on the disk.
func TestTooLongPoisons(t *testing.T) {
	d := newDriver(NewMem(1), dataOptions)
	must(t, d.start())
	bad := txn(2, 'a')
	bad.Body.(*record.CreateTxn).Data = make([]byte, RecordMax)
	var poisoned *PoisonedError
	if err := d.s.Append([]*record.Txn{txn(1, 'a'), bad}); !errors.As(err, &poisoned) {
		t.Errorf("append: %v", err)
	}
	if err := d.s.Sync(); !errors.As(err, &poisoned) {
		t.Errorf("sync: %v", err)
	}
}

// TestBodyOfWrongTypeIsNotLogged: a record with a body of the wrong type would be taken
// for damage when it is read. So the whole batch is refused before anything is written,
// and the log can continue.
func TestBodyOfWrongTypeIsNotLogged(t *testing.T) {
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

// TestInstallFailsAnywhere: installing a leader's snapshot fails at each call. Then
// either nothing has changed and the history continues, or the store is poisoned. It must
// not log anything more if the snapshot already has its final name, because the next
// start would ignore that log.
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
			continue // the failed call was a truncation that only removes zeros
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

// TestTruncateFailsAnywhere: a truncation fails at each call. Then either nothing has
// changed and the history continues, or the store is poisoned: anything logged after an
// unfinished truncation would be lost when the next start completes the truncation.
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
				continue // the failed call was a truncation that only removes zeros
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

// TestCutTakesUnreadableSnapshots: a snapshot that cannot be read during a truncation is
// not used afterwards, because it may contain truncated transactions.
func TestCutTakesUnreadableSnapshots(t *testing.T) {
	d := newDriver(NewMem(1), dataOptions)
	must(t, d.start())
	must(t, d.commit(1, 2, 3))
	must(t, d.snapshot(1)) // this snapshot contains transaction 3
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
			return // the truncation makes fewer than nth reads
		}
	}
}

// TestEpochsAndTruncateOnAFullDisk: on a full disk, saving an epoch fails, and so does
// truncating the log. The earlier state remains, and both succeed when there is space.
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
