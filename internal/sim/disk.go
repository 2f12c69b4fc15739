package sim

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"bellwether/internal/driver"
	"bellwether/internal/record"
	"bellwether/internal/replica"
	"bellwether/internal/sim/machine"
	"bellwether/internal/store"
	"bellwether/internal/tree"
	"bellwether/wire"
)

// dataDir is the directory of each server's memory disk that holds its data.
const dataDir = "/data"

func storeOptions() store.Options { return store.Options{DataDir: dataDir, PreallocBytes: -1} }

// newTree returns an empty tree with the options that all servers use.
func newTree() *tree.Tree {
	return tree.New(tree.Options{Seed: 1, ExtendedTypes: true, Reconfig: true})
}

// receivedSnapshot is a received snapshot and the zxid of the packet before it.
type receivedSnapshot struct {
	zxid        wire.Zxid
	bytes       []byte
	undelivered []*record.Txn // the history of the sender, as in server.undelivered
	reaches     wire.Zxid     // the snapshot may have effects of transactions up to here
}

// writer is the log writer of a process. It carries out one action after the other, in the
// order that driver.Journal gives. Each action takes time, and its answer comes some time
// after it is done.
//
// At most one action is under way; busy says so.
type writer struct {
	v       *server
	journal driver.Journal
	busy    bool // an action is under way
	full    bool
	since   int // number of transactions since the last snapshot
	snap    *snapshotting
	watch   diskWatch
	owes    uint64 // the last generation that waits for the answer to an append or an fsync; 0: none
}

// take queues a duty.
func (w *writer) take(d replica.Duty) {
	t := driver.Task{Duty: d, At: w.v.mono()}
	if d.Install != nil && !w.journal.Void() {
		t.Received = w.v.received(w.v.receivedSnapshots[d.Install.Link])
	}
	if kept, _ := w.journal.Push(t); kept && (len(d.Append) > 0 || d.Sync) {
		w.owes = d.Generation
	}
	w.next()
}

// next begins the next action, if the log writer is idle.
func (w *writer) next() {
	if !w.busy && !w.v.paused {
		w.begin(w.pick())
	}
}

// pick returns the next action. The action before it must be done.
func (w *writer) pick() driver.Action {
	a := w.journal.Next()
	if a.Kind == driver.Idle && w.journal.Take() {
		a = w.journal.Next()
	}
	return a
}

func (w *writer) begin(a driver.Action) {
	if a.Kind == driver.Idle {
		return
	}
	w.busy = true
	w.watch.began = a.At
	w.v.later(w.v.diskTime(), func() { w.v.whenDiskAnswers(func() { w.perform(&a) }) })
}

func (w *writer) perform(a *driver.Action) {
	if w.v.slowDisk > 0 {
		w.v.sim.reach(situationSlowDisk)
	}
	events, err := w.carryOut(a)
	for _, e := range events {
		if z, ok := e.(replica.Synced); ok && z.Generation >= w.owes {
			w.owes = 0
		}
	}
	if err != nil {
		w.owes = 0
		events = w.failed(events, err)
	}
	if !w.v.up {
		return
	}
	late := int64(0)
	if f := w.v.sim.nemesis.focus; f != nil && err != nil { // the server goes on for a while before it learns of the refusal
		late = f.Below(20 * machine.Millisecond)
	}
	w.v.later(w.v.diskTime()/4+late, func() {
		w.refusedLate(events, func() {
			w.busy = false
			for _, e := range events {
				w.v.push(e)
			}
			next := w.pick()
			if next.Kind == driver.Idle && w.owes != 0 {
				w.v.sim.fail("Log", "server %d has made its log durable, but does not answer the duties of its present role", w.v.id)
				return
			}
			w.answered(next.At)
			w.begin(next)
		})
	})
}

// failed handles an action that failed: it adds what the replica must hear to events, or
// ends the server.
func (w *writer) failed(events []replica.Event, err error) []replica.Event {
	v := w.v
	var full *store.FullError
	switch {
	case errors.Is(err, store.ErrCrashed):
		v.sim.tell("server %d loses power while it writes", v.id)
		v.powerOff()
		return nil
	case errors.As(err, &full):
		if !w.full {
			w.full = true
			v.later(machine.Second, w.probe)
		}
		v.sim.reach(situationFull)
		v.sim.fullTogether()
		v.tryFull(full.Zxid)
		return w.journal.Full(events, full.Zxid, err.Error())
	case errors.Is(err, store.ErrNotInLog):
		return w.journal.Refuse(events, v.store.Synced(), err.Error())
	}
	if !errors.Is(err, errDisk) && !errors.Is(err, syscall.ENOSPC) && !v.rotten && !v.epochRotten && !v.forgetful && !v.fs.Lies() {
		v.sim.fail("Log", "server %d, whose disk has not failed, refuses what it is told to write: %v", v.id, err)
		return nil
	}
	if poisoned := (*store.PoisonedError)(nil); errors.As(err, &poisoned) && v.store.Append(nil) == nil {
		v.sim.fail("Log", "server %d does not know what its disk holds, but its log accepts more: %v", v.id, err)
		return nil
	}
	v.sim.tell("server %d ends: %v", v.id, err)
	v.sim.reach(situationDiskError)
	v.syncFailed = strings.Contains(err.Error(), "sync")
	v.kill()
	return nil
}

// probe checks between two actions whether a full disk has space again, so that the server learns of the
// space after the refusal.
func (w *writer) probe() {
	if w.v.hung {
		w.v.whenDiskAnswers(w.probe)
		return
	}
	switch err := w.v.store.Room(); {
	case w.busy:
		w.v.later(machine.Millisecond, w.probe)
	case err == nil:
		w.full = false
		w.v.push(replica.LogFree{})
	case errors.Is(err, store.ErrCrashed):
		w.v.powerOff()
	default:
		w.v.later(machine.Second, w.probe)
	}
}

// aheadAfter is how long after the adoption of an epoch the files of the next one are
// written.
const aheadAfter = 20 * machine.Millisecond

func (w *writer) writeAhead() {
	if errors.Is(w.v.store.WriteEpochsAhead(), store.ErrCrashed) {
		w.v.powerOff()
	}
}

// isFull reports whether nothing was written because there is no space. After any other error the disk may have what was written.
func isFull(err error) bool {
	var full *store.FullError
	return errors.As(err, &full)
}

// carryOut carries out an action and returns its answers. If it returns an error, the
// answers are those of the part that was done.
func (w *writer) carryOut(a *driver.Action) ([]replica.Event, error) {
	v, st := w.v, w.v.store
	var made *tree.Tree
	var err error
	switch a.Kind {
	case driver.SaveAccepted:
		if err = st.SetAcceptedEpoch(a.Epoch); !isFull(err) {
			v.accepts(a.Epoch)
		}
	case driver.SaveCurrent:
		if err = st.SetCurrentEpoch(a.Epoch); !isFull(err) {
			v.saved.Current = max(v.saved.Current, a.Epoch)
		}
		if err == nil {
			v.later(aheadAfter, func() { v.whenDiskAnswers(w.writeAhead) })
		}
	case driver.SaveProposed, driver.SaveCommitted:
		err = w.saveMembers(a)
	case driver.Rebuild:
		made, err = w.rebuild(a)
	case driver.Install:
		err = w.install(a)
	case driver.Append:
		if err = st.Append(a.Txns); err == nil {
			err = st.Sync()
		}
	}
	if err != nil {
		return nil, err
	}
	answers := a.Answers(nil, st.LastZxid(), made)
	if a.Kind == driver.Append {
		err = w.logged(len(a.Txns))
	}
	return answers, err
}

// logged begins a snapshot when one is due. It first starts a new log file, so that this
// file holds what the snapshot lacks.
func (w *writer) logged(txns int) error {
	if w.since += txns; txns == 0 || w.since < w.v.snapEvery || w.snap != nil {
		return nil
	}
	w.since = 0
	w.beginSnapshot()
	return w.v.store.Roll()
}

// rebuild truncates the log if the action asks for that, and loads it into a new tree.
func (w *writer) rebuild(a *driver.Action) (*tree.Tree, error) {
	w.snap = nil
	if a.Truncate != nil {
		w.v.sim.reach(situationTrunc)
		if err := w.v.store.Truncate(a.Truncate.Zxid); err != nil {
			return nil, err
		}
		w.v.removalDone()
	}
	t := newTree()
	_, err := loadInto(w.v.store, t, new(keepingLoader))
	return t, err
}

// received reads a snapshot that a leader has sent.
func (v *server) received(sent receivedSnapshot) *tree.Tree {
	t := newTree()
	l := t.Loader()
	l.Reset()
	if err := store.DecodeStream(bufio.NewReader(bytes.NewReader(sent.bytes)), sent.zxid, l); err != nil {
		v.sim.fail("Snapshot", "%d cannot read what it was sent: %v", v.id, err)
	}
	l.CloseFuzzy()
	if v.sim.copiesSpoilt {
		v.sim.spoilAt(t, sent.zxid)
	}
	return t
}

// install replaces the history by a received snapshot.
func (w *writer) install(a *driver.Action) error {
	w.snap = nil
	if w.v.store.LastZxid() > 0 {
		w.v.sim.reach(situationSnapOverTail)
	}
	w.v.installed, w.v.everFuzzy = true, true
	w.v.unbroken = a.Snapshot.Zxid // also if the power fails meanwhile
	for _, txn := range a.Snapshot.Txns {
		a.Received.Replay(txn)
	}
	if _, err := w.v.store.InstallSnapshot(a.Snapshot.Zxid, a.Received.Snapshot()); err != nil {
		return err
	}
	w.v.removalDone()
	w.v.holeFilled()
	w.v.tryInstalled(a.Snapshot.Zxid)
	return nil
}

// loadInto fills a tree from the disk. l keeps what its fields ask for.
func loadInto(st *store.Store, t *tree.Tree, l *keepingLoader) (store.LoadResult, error) {
	l.tree, l.Loader = t, t.Loader()
	res, err := st.Load(l)
	if err != nil {
		return res, err
	}
	l.Close()
	if res.LastZxid < 0 {
		return res, errors.New("the disk has no history, and a new one must not begin")
	}
	if res.Snapshot < 0 {
		if _, err := st.WriteSnapshot(res.LastZxid, t.Snapshot()); err != nil {
			return res, fmt.Errorf("snapshot at the start: %w", err)
		}
	}
	return res, nil
}

// keepingLoader is a tree's loader that keeps the replayed transactions, and the
// memberships. A field that is nil keeps nothing.
type keepingLoader struct {
	*tree.Loader
	tree   *tree.Tree
	txns   *[]*record.Txn
	logged *driver.Logged
}

func (l *keepingLoader) SnapshotDone(zxid wire.Zxid, digest *record.SnapshotDigest) error {
	err := l.Loader.SnapshotDone(zxid, digest)
	if l.logged != nil {
		l.logged.Snapshot(l.tree)
	}
	return err
}

func (l *keepingLoader) Reset() {
	if l.txns != nil {
		*l.txns = nil
	}
	l.Loader.Reset()
}

func (l *keepingLoader) Txn(t *record.Txn) error {
	if l.txns != nil {
		*l.txns = append(*l.txns, t)
	}
	if l.logged != nil {
		l.logged.Txn(t)
	}
	return l.Loader.Txn(t)
}

// diskTime draws how long one action of the disk takes.
func (v *server) diskTime() int64 {
	d := v.sim.random.Between(50, 400)
	if v.sim.random.Below(50) == 0 {
		d += v.sim.random.Below(30 * machine.Millisecond)
	}
	return d + v.slowDisk
}
