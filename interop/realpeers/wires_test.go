package realpeers

import (
	"net"
	"sync"
	"testing"
	"time"
)

// waitMax bounds every wait for ZooKeeper. A run that has no new difference never waits that
// long, even on a busy machine.
const waitMax = 3 * time.Minute

// wires are the connections between ZooKeeper and the peers that the replay plays. One lock
// guards everything, and each change wakes all that wait.
type wires struct {
	wait sync.WaitGroup

	mu      sync.Mutex
	changed sync.Cond
	over    bool
	conns   map[net.Conn]bool
}

func newWires(t testing.TB) *wires {
	w := &wires{conns: map[net.Conn]bool{}}
	w.changed.L = &w.mu
	t.Cleanup(w.end)
	return w
}

// set changes something and wakes all that wait.
func (w *wires) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
	w.changed.Broadcast()
}

// await waits until a condition holds, and returns false if it never does. The condition may
// change what the lock guards.
func (w *wires) await(holds func() bool) bool {
	end := time.Now().Add(waitMax)
	alarm := time.AfterFunc(waitMax, func() { w.set(func() {}) })
	defer alarm.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	for !holds() {
		if w.over || !time.Now().Before(end) {
			return false
		}
		w.changed.Wait()
	}
	return true
}

// hold keeps a connection until drop. It returns false if the test is over.
func (w *wires) hold(c net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns[c] = true
	return !w.over
}

func (w *wires) drop(c net.Conn) {
	_ = c.Close()
	w.set(func() { delete(w.conns, c) })
}

// end closes all connections and waits for the goroutines.
func (w *wires) end() {
	w.set(func() {
		w.over = true
		for c := range w.conns {
			_ = c.Close()
		}
	})
	w.wait.Wait()
}

// dial connects to an address of ZooKeeper as soon as it listens there. It returns nil if
// wanted returns false first.
func (w *wires) dial(addr string, wanted func() bool) net.Conn {
	for end := time.Now().Add(waitMax); time.Now().Before(end); <-time.After(dialPause) {
		w.mu.Lock()
		goOn := wanted() && !w.over
		w.mu.Unlock()
		if !goOn {
			return nil
		}
		if c, err := net.Dial("tcp", addr); err == nil {
			if w.hold(c) {
				return c
			}
			w.drop(c)
			return nil
		}
	}
	return nil
}

// dialPause is the time between two attempts.
const dialPause = 5 * time.Millisecond
