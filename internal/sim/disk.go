package sim

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"bellwether/internal/record"
	"bellwether/internal/replica"
	"bellwether/internal/store"
	"bellwether/internal/tree"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// dataDir is where each server's memory disk holds its data.
const dataDir = "/data"

func storeOptions() store.Options { return store.Options{DataDir: dataDir, PreallocBytes: -1} }

// newTree is an empty tree as all servers have it.
func newTree() *tree.Tree { return tree.New(tree.Options{Seed: 1, ExtendedTypes: true}) }

// task is one thing the log writer does, of one duty.
type task struct {
	taken int64        // Mono ms
	duty  replica.Duty // one of its fields
	spool spool        // of an Install
}

// spool is a snapshot as it arrived, and the zxid of the packet before it.
type spool struct {
	zxid  wire.Zxid
	bytes []byte
	knows []*record.Txn // as server.knows, of who sent it
}

// writer is the log writer of a process: it does one thing after the other,
// each takes its time, and is answered some time after it was done.
type writer struct {
	v        *server
	tasks    []task
	busy     bool
	refusing bool // a Refused is on its way: all is dropped until it has been stepped
	full     bool
	since    int // transactions since the last snapshot
	snap     *snapshotting
	watch    diskWatch
}

// take queues a duty, part by part.
func (w *writer) take(d replica.Duty) {
	if w.refusing {
		return
	}
	g := d.Generation
	put := func(p replica.Duty) {
		p.Generation = g
		w.tasks = append(w.tasks, task{taken: w.v.mono(), duty: p})
	}
	if d.SaveAccepted != 0 {
		put(replica.Duty{SaveAccepted: d.SaveAccepted})
	}
	if d.Truncate != nil || d.Rebuild {
		put(replica.Duty{Truncate: d.Truncate, Rebuild: d.Rebuild})
	}
	if d.Install != nil {
		put(replica.Duty{Install: d.Install})
		w.tasks[len(w.tasks)-1].spool = w.v.spools[d.Install.Link]
	}
	if len(d.Append) > 0 || d.Sync {
		put(replica.Duty{Append: d.Append, Sync: true})
	}
	if d.SaveCurrent != 0 {
		put(replica.Duty{SaveCurrent: d.SaveCurrent})
	}
	w.next()
}

// next begins the next task. While one ran, what is to be appended has
// gathered: it is written as one.
func (w *writer) next() {
	if w.busy || len(w.tasks) == 0 || w.v.paused {
		return
	}
	w.busy = true
	t := w.tasks[0]
	w.tasks = w.tasks[1:]
	for t.duty.Sync && len(w.tasks) > 0 && w.tasks[0].duty.Sync && w.tasks[0].duty.Generation == t.duty.Generation {
		t.duty.Append = append(t.duty.Append, w.tasks[0].duty.Append...)
		w.tasks = w.tasks[1:]
	}
	w.watch.began = t.taken
	w.v.later(w.v.diskTime(), func() { w.v.onDisk(func() { w.perform(t) }) })
}

func (w *writer) perform(t task) {
	if w.v.slowDisk > 0 {
		w.v.sim.reach(situationSlowDisk)
	}
	events, err := w.carryOut(&t.duty, t.spool)
	if err != nil {
		events = w.mishap(t.duty.Generation, err)
	}
	if !w.v.up {
		return
	}
	w.v.later(w.v.diskTime()/4, func() {
		w.busy = false
		for _, e := range events {
			w.v.push(e)
		}
		w.answered(w.oldest())
		w.next()
	})
}

// oldest is when the first task that waits was taken, 0: none does.
func (w *writer) oldest() int64 {
	if len(w.tasks) == 0 {
		return 0
	}
	return w.tasks[0].taken
}

// mishap is what becomes of a server whose disk says no.
func (w *writer) mishap(generation uint64, err error) []replica.Event {
	v := w.v
	var full *store.FullError
	var poisoned *store.PoisonedError
	z := v.store.LastZxid()
	switch {
	case errors.Is(err, store.ErrCrashed):
		v.sim.tell("server %d loses power while it writes", v.id)
		v.powerOff()
		return nil
	case errors.As(err, &poisoned):
	case errors.As(err, &full) || errors.Is(err, syscall.ENOSPC):
		w.tasks, w.refusing = nil, true
		if !w.full {
			w.full = true
			v.later(second, w.probe)
		}
		v.sim.reach(situationFull)
		return []replica.Event{
			replica.LogFull{Zxid: z, Generation: generation},
			replica.Zab{Event: zab.Refused{Zxid: z, Generation: generation, Why: "no space"}},
		}
	case errors.Is(err, store.ErrNotInLog):
		w.tasks, w.refusing = nil, true
		return []replica.Event{replica.Zab{Event: zab.Refused{Zxid: z, Generation: generation, Why: err.Error()}}}
	}
	v.sim.tell("server %d ends: %v", v.id, err)
	v.sim.reach(situationDiskError)
	v.syncFailed = strings.Contains(err.Error(), "sync")
	v.kill()
	return nil
}

// probe asks a full disk for room.
func (w *writer) probe() {
	if w.v.hung {
		w.v.onDisk(w.probe)
		return
	}
	switch err := w.v.store.Room(); {
	case err == nil:
		w.full = false
		w.v.push(replica.LogFree{})
	case errors.Is(err, store.ErrCrashed):
		w.v.powerOff()
	default:
		w.v.later(second, w.probe)
	}
}

// aheadAfter is how long after an epoch was adopted the next is written ahead.
const aheadAfter = 20 * millisecond

func (w *writer) writeAhead() {
	if errors.Is(w.v.store.WriteEpochsAhead(), store.ErrCrashed) {
		w.v.powerOff()
	}
}

// carryOut does a task and returns its answers.
func (w *writer) carryOut(d *replica.Duty, sent spool) ([]replica.Event, error) {
	st := w.v.store
	switch {
	case d.SaveAccepted != 0:
		err := st.SetAcceptedEpoch(d.SaveAccepted)
		w.v.saved.Accepted = max(w.v.saved.Accepted, d.SaveAccepted)
		return []replica.Event{replica.Zab{Event: zab.Saved{Accepted: d.SaveAccepted, Generation: d.Generation}}}, err
	case d.SaveCurrent != 0:
		err := st.SetCurrentEpoch(d.SaveCurrent)
		w.v.saved.Current = max(w.v.saved.Current, d.SaveCurrent)
		if err == nil {
			w.v.later(aheadAfter, func() { w.v.onDisk(w.writeAhead) })
		}
		return []replica.Event{replica.Zab{Event: zab.Saved{Current: d.SaveCurrent, Generation: d.Generation}}}, err
	case d.Truncate != nil || d.Rebuild:
		return w.rebuild(d)
	case d.Install != nil:
		return w.install(d, sent)
	}
	if err := w.log(d.Append); err != nil {
		return nil, err
	}
	return []replica.Event{replica.Synced{Zxid: st.LastZxid(), Generation: d.Generation}}, nil
}

// log appends and syncs, and begins a snapshot when one is due.
func (w *writer) log(txns []*record.Txn) error {
	st := w.v.store
	if err := st.Append(txns); err != nil {
		return err
	}
	if err := st.Sync(); err != nil {
		return err
	}
	if w.since += len(txns); w.since < w.v.snapEvery || w.snap != nil {
		return nil
	}
	w.since = 0
	w.beginSnapshot()
	return st.Roll()
}

// rebuild cuts the log, where that is asked for, and loads it anew.
func (w *writer) rebuild(d *replica.Duty) ([]replica.Event, error) {
	w.snap = nil
	if d.Truncate != nil {
		w.v.sim.reach(situationTrunc)
		if err := w.v.store.Truncate(d.Truncate.Zxid); err != nil {
			return nil, err
		}
		w.v.hasShed()
	}
	t := newTree()
	if _, err := loadInto(w.v.store, t, nil); err != nil {
		return nil, err
	}
	if !d.Rebuild {
		return nil, nil
	}
	return []replica.Event{replica.Rebuilt{Tree: t}}, nil
}

// install makes a snapshot that arrived the history.
func (w *writer) install(d *replica.Duty, sent spool) ([]replica.Event, error) {
	w.snap = nil
	if w.v.store.LastZxid() > 0 {
		w.v.sim.reach(situationSnapOverTail)
	}
	w.v.installed = true
	t := newTree()
	l := t.Loader()
	l.Reset()
	if _, err := store.DecodeSnapshot(bytes.NewReader(sent.bytes), sent.zxid, l); err != nil {
		w.v.sim.fail("Snapshot", "%d cannot read what it was sent: %v", w.v.id, err)
		return nil, nil
	}
	l.CloseFuzzy()
	for _, txn := range d.Install.Txns {
		t.Apply(txn)
	}
	if _, err := w.v.store.InstallSnapshot(d.Install.Zxid, t.Snapshot()); err != nil {
		return nil, err
	}
	w.v.hasShed()
	return []replica.Event{
		replica.Rebuilt{Tree: t},
		replica.Zab{Event: zab.Installed{Zxid: d.Install.Zxid, Generation: d.Generation}},
	}, nil
}

// loadInto fills a tree from the disk, and a list with what was replayed.
func loadInto(st *store.Store, t *tree.Tree, replayed *[]*record.Txn) (store.LoadResult, error) {
	l := &keepingLoader{Loader: t.Loader(), txns: replayed}
	res, err := st.Load(l)
	if err != nil {
		return res, err
	}
	l.Close()
	if res.LastZxid < 0 {
		return res, errors.New("there is no history, and none may begin")
	}
	if res.Snapshot < 0 {
		if _, err := st.WriteSnapshot(res.LastZxid, t.Snapshot()); err != nil {
			return res, fmt.Errorf("snapshot at the start: %w", err)
		}
	}
	return res, nil
}

// keepingLoader is a tree's loader that keeps what was replayed.
type keepingLoader struct {
	*tree.Loader
	txns *[]*record.Txn
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
	return l.Loader.Txn(t)
}

// diskTime is how long the disk takes for one thing.
func (v *server) diskTime() int64 {
	d := v.sim.dice.between(50, 400)
	if v.sim.dice.below(50) == 0 {
		d += v.sim.dice.below(30 * millisecond)
	}
	return d + v.slowDisk
}
