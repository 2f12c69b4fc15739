package store

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
)

// ErrCrashed is what every call gets from the moment of a crash until
// [Mem.Crash], and what handles opened before it get for ever.
var ErrCrashed = errors.New("the machine has crashed")

// errNoSpace is what a full disk returns.
var errNoSpace = fmt.Errorf("memory file system: %w", syscall.ENOSPC)

// Op names a kind of call for fault injection.
type Op string

// The calls that change something, OpAny for each of them, and OpRead.
const (
	OpAny      Op = ""
	OpWrite    Op = "write"
	OpTruncate Op = "truncate"
	OpAllocate Op = "allocate"
	OpSync     Op = "sync"
	OpCreate   Op = "create"
	OpRename   Op = "rename"
	OpRemove   Op = "remove"
	OpSyncDir  Op = "syncdir"
	OpRead     Op = "read"
	OpStat     Op = "stat" // never struck by a fault of Mem
)

// faults is what a test has planned.
type faults struct {
	steps   int   // changes so far
	crashAt int   // at this step, if not 0
	space   int64 // bytes left; -1: endless
	planned []fault
}

type fault struct {
	op   Op
	left int // calls until it strikes
	err  error
}

// Fail makes the nth call of this kind from now (1 is the next) return err.
// A failing write stores a part; a failing sync forgets the content that it
// should have written, so that a later one succeeds without it, though it can
// still be read; others do nothing.
func (m *Mem) Fail(op Op, nth int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.planned = append(m.faults.planned, fault{op, nth, err})
}

// SetSpace says how many bytes may still be written to new sectors before
// the disk is full; negative: endless.
func (m *Mem) SetSpace(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.space = bytes
}

// CrashAt crashes the machine during the nth change from now (1 is the next):
// it may or may not take effect, its caller gets ErrCrashed, and so does
// everybody until Crash. A disk that hangs hangs no longer.
func (m *Mem) CrashAt(nth int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.crashAt = m.faults.steps + nth
	m.hangs = false
	m.answers.Broadcast()
}

// Hang lets no change and no sync return, as a disk does that fails without an
// error, until Answer, Crash or CrashAt. Reads go on, as they do from a system's
// memory.
func (m *Mem) Hang() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hangs = true
}

// Answer ends Hang: the calls that wait are carried out.
func (m *Mem) Answer() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hangs = false
	m.answers.Broadcast()
}

// Abandon lets the calls that wait for a disk that hangs fail, and all handles
// with them, as if their process were gone. What was written stays, locks are
// released, and the disk hangs on.
func (m *Mem) Abandon() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.life++
	clear(m.locks)
	m.answers.Broadcast()
}

// Waiting is how many calls wait for Answer.
func (m *Mem) Waiting() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.waiting
}

// await waits while the disk hangs; an error: the machine crashed meanwhile.
// m.mu is held, but not while it waits.
func (m *Mem) await() error {
	life := m.life
	m.waiting++
	for m.hangs && m.life == life {
		m.answers.Wait()
	}
	m.waiting--
	if m.life != life {
		return ErrCrashed
	}
	return nil
}

// Calm takes back what Fail and CrashAt have planned and has not come yet.
func (m *Mem) Calm() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.planned, m.faults.crashAt = nil, 0
}

// Steps is the number of changes so far.
func (m *Mem) Steps() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.faults.steps
}

// What a crash keeps of what was not synced.
const (
	LoseAll = iota // nothing
	// KeepAll: everything, for the process was killed, and the machine was not.
	// What was not synced is still in the system's memory alone.
	KeepAll
	// Every larger number: each sector, length and name by a coin of the seed.
)

// Losses counts what power failures have taken.
type Losses struct {
	Torn  int // files of which a sector was lost, and a later one was not
	Names int // changes of names
}

// Lost returns what the crashes so far have taken.
func (m *Mem) Lost() Losses {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lost
}

// Crash ends all handles and locks and brings the machine up again, with
// what the disk has kept. Planned faults are dropped.
func (m *Mem) Crash(keeping int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	keep := func(r *rand.Rand) bool { return keeping != LoseAll && r.IntN(2) == 0 }
	if keeping != KeepAll {
		for _, name := range slices.Sorted(maps.Keys(m.dirs)) {
			m.dirs[name].crash(m.rng, keep, &m.lost)
		}
	}
	m.life++
	m.down, m.hangs = false, false
	m.answers.Broadcast()
	clear(m.locks)
	m.faults = faults{steps: m.faults.steps, space: -1}
}

func (d *memDir) crash(rng *rand.Rand, keep func(*rand.Rand) bool, lost *Losses) {
	for _, names := range d.pending {
		if keep(rng) {
			applyNames(d.disk, names)
		} else {
			lost.Names++
		}
	}
	d.live, d.pending = maps.Clone(d.disk), nil
	for _, name := range slices.Sorted(maps.Keys(d.disk)) {
		d.disk[name].crash(rng, keep, lost)
	}
}

// Clone returns an independent copy, without handles, locks and faults, that
// goes on with another seed. A crashed machine's copy is still to be brought
// up by Crash.
func (m *Mem) Clone(seed uint64) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := NewMem(seed)
	c.down = m.down
	copies := map[*memInode]*memInode{}
	twin := func(names map[string]*memInode) map[string]*memInode {
		out := make(map[string]*memInode, len(names))
		for name, ino := range names {
			if ino != nil && copies[ino] == nil {
				copies[ino] = &memInode{ino.live.clone(), ino.disk.clone(), maps.Clone(ino.dirty), ino.cut}
			}
			out[name] = copies[ino]
		}
		return out
	}
	for name, d := range m.dirs {
		n := &memDir{live: twin(d.live), disk: twin(d.disk)}
		for _, p := range d.pending {
			n.pending = append(n.pending, twin(p))
		}
		c.dirs[name] = n
	}
	return c
}

// step counts a change and looks up what is planned for it: err instead of
// the change, or crash after it. m.mu is held.
func (m *Mem) step(op Op) (crash, err error) {
	if m.down {
		return nil, ErrCrashed
	}
	if m.hangs {
		if err := m.await(); err != nil {
			return nil, err
		}
	}
	m.faults.steps++
	if m.faults.steps == m.faults.crashAt {
		m.down = true
		return ErrCrashed, nil
	}
	return nil, m.faults.strike(op)
}

func (m *Mem) readStep() error { return m.faults.strike(OpRead) }

// strike returns the error planned for this call, if it is due.
func (f *faults) strike(op Op) (err error) {
	f.planned = slices.DeleteFunc(f.planned, func(p fault) bool {
		return p.left <= 0
	})
	for i := range f.planned {
		p := &f.planned[i]
		if p.op != op && (p.op != OpAny || op == OpRead) {
			continue
		}
		if p.left--; p.left == 0 && err == nil {
			err = p.err
		}
	}
	return err
}

// room reports whether n more bytes fit; take also uses them up.
func (m *Mem) room(n int64) bool { return m.faults.space < 0 || m.faults.space >= n }

func (m *Mem) take(n int64) bool {
	if !m.room(n) {
		return false
	}
	if m.faults.space >= 0 {
		m.faults.space -= n
	}
	return true
}

// free gives sectors back.
func (m *Mem) free(sectors int64) {
	if m.faults.space >= 0 {
		m.faults.space += sectors * sectorLen
	}
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
