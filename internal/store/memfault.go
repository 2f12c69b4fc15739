package store

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
)

// ErrCrashed is returned by every call between a crash and [Mem.Crash], and always by
// calls on handles that were opened before the crash.
var ErrCrashed = errors.New("the machine has crashed")

// errNoSpace is the error of a full disk.
var errNoSpace = fmt.Errorf("memory file system: %w", syscall.ENOSPC)

// Op names a kind of call for fault injection.
type Op string

// The kinds of calls that change something, OpAny for any of these, and OpRead.
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
	OpStat     Op = "stat" // no fault of Mem affects it
)

// faults are the faults that a test has planned.
type faults struct {
	steps   int   // number of changes so far
	crashAt int   // the machine crashes at this step; 0: no crash is planned
	space   int64 // bytes left; -1: no limit
	planned []fault
}

type fault struct {
	op   Op
	left int // number of calls until the fault takes effect
	err  error
}

// Fail makes the nth call of this kind from now (1 is the next) return err. A failing write
// stores a part of its data. A failing fsync marks the content as written, so that a later fsync
// succeeds without writing it, although the content can still be read. Other failing calls do
// nothing.
func (m *Mem) Fail(op Op, nth int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.planned = append(m.faults.planned, fault{op, nth, err})
}

// SetSpace sets how many bytes may still be written to new sectors before the disk is
// full; negative: no limit.
func (m *Mem) SetSpace(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.space = bytes
}

// CrashAt crashes the machine during the nth change from now (1 is the next). That change
// may or may not take effect; its caller gets ErrCrashed, and so does every caller until
// Crash. It also ends Hang.
func (m *Mem) CrashAt(nth int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.crashAt = m.faults.steps + nth
	m.hangs = false
	m.answers.Broadcast()
}

// Hang makes every change and every fsync wait until EndHang, Crash or CrashAt, like a disk that
// fails without an error. Reads are still answered, as they are from a system's memory.
func (m *Mem) Hang() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hangs = true
}

// EndHang ends Hang: the waiting calls are carried out.
func (m *Mem) EndHang() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hangs = false
	m.answers.Broadcast()
}

// Abandon makes the calls that wait for a hanging disk fail, and invalidates all handles,
// as if their process had ended. Written data stays, locks are released, and the disk
// still hangs.
func (m *Mem) Abandon() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.life++
	clear(m.locks)
	m.answers.Broadcast()
}

// Waiting returns how many calls wait for EndHang.
func (m *Mem) Waiting() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.waiting
}

// await waits while the disk hangs. It returns an error if the machine crashes meanwhile.
// The caller holds m.mu; await releases it while it waits.
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

// CancelFaults cancels what Fail and CrashAt have planned.
func (m *Mem) CancelFaults() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults.planned, m.faults.crashAt = nil, 0
}

// Steps returns the number of changes so far.
func (m *Mem) Steps() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.faults.steps
}

// How much of the data without fsync a crash keeps.
const (
	LoseAll = iota // nothing
	// KeepAll: everything, because only the process was killed. Data that was not fsynced
	// is still only in the system's memory.
	KeepAll
	// Every larger number: the seed decides for each sector, length and name.
)

// Losses counts what power failures have lost.
type Losses struct {
	Torn  int // files that lost a sector, but not a later one
	Names int // changes of names
}

// Lost returns what the crashes so far have lost.
func (m *Mem) Lost() Losses {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lost
}

// Crash invalidates all handles and locks and restarts the machine with what the disk has
// kept. It cancels planned faults.
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

// Clone returns an independent copy without handles, locks and faults, which continues
// with another seed. The copy of a crashed machine must be restarted by Crash.
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
				copies[ino] = &memInode{ino.live.clone(), ino.disk.clone(), maps.Clone(ino.sinceFsync), ino.cut, ino.before, maps.Clone(ino.spoilt)}
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

// step counts a change and returns what is planned for it: err instead of the change, or
// crash after the change. The caller holds m.mu.
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
	return nil, m.faults.next(op)
}

func (m *Mem) readStep() error { return m.faults.next(OpRead) }

// next returns the error planned for this call, or nil.
func (f *faults) next(op Op) (err error) {
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

// room reports whether there is space for n more bytes.
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

// free releases sectors.
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
