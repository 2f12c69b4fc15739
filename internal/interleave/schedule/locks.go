package schedule

import (
	"reflect"
	"runtime"
	"strings"
	"sync"
)

// These types of sync need no stand-in. A Cond waits without holding anything, and then
// takes its lock, which is a stand-in. A Pool and a Map call nothing under their locks.
type (
	Cond   = sync.Cond
	Locker = sync.Locker
	Pool   = sync.Pool
	Map    = sync.Map
)

// Mutex stands for sync.Mutex.
type Mutex struct{ held bool }

// Lock waits until the lock is free, and takes it.
func (m *Mutex) Lock() {
	stop("Lock", func() bool { return !m.held }, func() { m.held = true })
}

// TryLock takes the lock if it is free.
func (m *Mutex) TryLock() (ok bool) {
	stop("TryLock", nil, func() { ok, m.held = !m.held, true })
	return ok
}

// Unlock releases the lock.
func (m *Mutex) Unlock() {
	state.Lock()
	defer state.Unlock()
	if !m.held {
		panic("schedule: Unlock of a Mutex that is not held")
	}
	m.held = false
}

// RWMutex stands for sync.RWMutex. As there, a writer that waits keeps new readers out.
type RWMutex struct {
	held    bool // by a writer
	readers int
	writers int // that wait
}

// Lock waits until nobody holds the lock, and takes it for writing.
func (m *RWMutex) Lock() {
	stop("Lock", nil, func() { m.writers++ })
	stop("Lock, announced", func() bool { return !m.held && m.readers == 0 }, func() { m.held, m.writers = true, m.writers-1 })
}

// Unlock releases the lock of a writer.
func (m *RWMutex) Unlock() {
	state.Lock()
	defer state.Unlock()
	if !m.held {
		panic("schedule: Unlock of a RWMutex that is not held for writing")
	}
	m.held = false
}

// RLock waits until no writer holds the lock or waits for it, and takes it for reading.
func (m *RWMutex) RLock() {
	stop("RLock", func() bool { return !m.held && m.writers == 0 }, func() { m.readers++ })
}

// RUnlock releases the lock of a reader.
func (m *RWMutex) RUnlock() {
	state.Lock()
	defer state.Unlock()
	if m.readers == 0 {
		panic("schedule: RUnlock of a RWMutex that is not held for reading")
	}
	m.readers--
}

// TryRLock takes the lock for reading if no writer holds it or waits for it.
func (m *RWMutex) TryRLock() (ok bool) {
	stop("TryRLock", nil, func() {
		if ok = !m.held && m.writers == 0; ok {
			m.readers++
		}
	})
	return ok
}

// Once stands for sync.Once.
type Once struct {
	mu   Mutex
	done bool
}

// Do calls f, unless an earlier call has done so.
func (o *Once) Do(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.done {
		defer func() { o.done = true }()
		f()
	}
}

// WaitGroup stands for sync.WaitGroup.
type WaitGroup struct{ n int }

// Add adds to the counter.
func (g *WaitGroup) Add(n int) {
	stop("Add", nil, func() {
		if g.n += n; g.n < 0 {
			panic("schedule: the counter of a WaitGroup is negative")
		}
	})
}

// Done subtracts one from the counter.
func (g *WaitGroup) Done() { g.Add(-1) }

// Wait waits until the counter is zero.
func (g *WaitGroup) Wait() { stop("Wait", func() bool { return g.n == 0 }, nil) }

// Go starts a goroutine that the group counts.
func (g *WaitGroup) Go(f func()) {
	g.Add(1)
	Go(nameOf(f), func() {
		defer g.Done()
		f()
	})
}

// nameOf returns the name of a function without its package's folders.
func nameOf(f func()) string {
	name := runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()
	return strings.TrimSuffix(name[strings.LastIndexByte(name, '/')+1:], "-fm")
}
