package sim

import (
	"fmt"

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

// Bounds on how long a duty may be unanswered, as the server's log writer has
// them: at least stallMin, and stallTimes as long as any that was answered in
// time.
const (
	stallMin   = 1000 // ms
	stallTimes = 3
)

// diskWatch measures the duties of a log writer and tells the replica of a disk
// that does not answer.
type diskWatch struct {
	began   int64 // Mono ms at which the oldest unanswered duty was taken; 0: there is none
	worst   int64 // ms that a duty took which was answered in time
	stalled bool
}

func (w *diskWatch) bound() int64 { return max(stallMin, stallTimes*w.worst) }

// mono is the server's clock in ms.
func (v *server) mono() int64 { return v.clock.mono(v.sim.now) / millisecond }

// watchDisk reports a stall.
func (v *server) watchDisk() {
	w := &v.writer.watch
	if w.began == 0 || w.stalled || v.mono()-w.began <= w.bound() {
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
	if took := w.v.mono() - k.began; took <= k.bound() {
		k.worst = max(k.worst, took)
	}
	k.began = next
	if k.stalled && (next == 0 || w.v.mono()-next <= k.bound()) {
		k.stalled = false
		w.v.push(replica.DiskAnswered{})
	}
}
