package sim

import (
	"fmt"
	"time"

	"bellwether/internal/driver"
	"bellwether/internal/replica"
)

// hangDisk has a disk answer nothing any more, without an error. What is asked
// of it meanwhile waits until freeDisk.
func (v *server) hangDisk() { v.hung = true }

func (v *server) freeDisk() {
	v.hung = false
	waiting := v.hungTasks
	v.hungTasks = nil
	for _, do := range waiting {
		v.later(0, do)
	}
}

// onDisk does something as soon as the disk answers, in this life of the process.
func (v *server) onDisk(do func()) {
	if !v.hung {
		do()
		return
	}
	life := v.life
	v.hungTasks = append(v.hungTasks, func() {
		if v.up && v.life == life {
			v.onDisk(do)
		}
	})
}

// stallLimit is diskStallLimit of the simulated servers.
const stallLimit = time.Second

// diskWatch measures the actions of a log writer, and tells the replica of a disk that
// does not answer within driver.StallBound.
type diskWatch struct {
	began   int64 // Mono ms at which the oldest unanswered duty was pushed; 0: there is none
	normal  driver.StallBound
	stalled bool
}

// exceeds reports whether a duty that was pushed at the Mono ms began stalls now.
func (w *diskWatch) exceeds(began, now int64) bool {
	return ms(now-began) > w.normal.Bound(int64(ms(now)), stallLimit)
}

// ms is a time or a duration in ms as one in ns.
func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// mono is the server's clock in ms.
func (v *server) mono() int64 { return v.clock.mono(v.sim.now) / millisecond }

// watchDisk reports a stall.
func (v *server) watchDisk() {
	w := &v.writer.watch
	if w.began == 0 || w.stalled || !w.exceeds(w.began, v.mono()) {
		return
	}
	w.stalled = true
	v.sim.reach(situationStalled)
	v.push(replica.DiskStalled{Since: w.began, Duty: fmt.Sprintf("a duty that was handed out at %d ms", w.began)})
}

// answered measures a duty that is done; next is when the oldest of the others
// was taken, 0: there is none.
func (w *writer) answered(next int64) {
	k := &w.watch
	now := w.v.mono()
	k.normal.Note(int64(ms(now)), ms(now-k.began), stallLimit)
	k.began = next
	if k.stalled && (next == 0 || !k.exceeds(next, now)) {
		k.stalled = false
		w.v.push(replica.DiskAnswered{})
	}
}
