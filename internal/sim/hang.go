package sim

import (
	"fmt"
	"time"

	"bellwether/internal/driver"
	"bellwether/internal/replica"
	"bellwether/internal/sim/machine"
)

// hangDisk makes a disk answer nothing, not even an error. Calls that arrive in the
// meantime wait until freeDisk.
func (v *server) hangDisk() { v.hung = true }

func (v *server) freeDisk() {
	v.hung = false
	waiting := v.hungTasks
	v.hungTasks = nil
	for _, do := range waiting {
		v.later(0, do)
	}
}

// whenDiskAnswers runs do as soon as the disk answers, if the process still lives then.
func (v *server) whenDiskAnswers(do func()) {
	if !v.hung {
		do()
		return
	}
	life := v.life
	v.hungTasks = append(v.hungTasks, func() {
		if v.up && v.life == life {
			v.whenDiskAnswers(do)
		}
	})
}

// stallLimit is diskStallLimit of the simulated servers.
const stallLimit = time.Second

// diskWatch measures the actions of a log writer. It tells the replica when the disk has
// not answered for longer than driver.StallBound allows.
type diskWatch struct {
	began   int64 // Mono ms at which the oldest unanswered duty was pushed; 0: there is none
	normal  driver.StallBound
	stalled bool
}

// exceeds reports whether a duty that was pushed at began (Mono ms) is stalled now.
func (w *diskWatch) exceeds(began, now int64) bool {
	return ms(now-began) > w.normal.Bound(int64(ms(now)), stallLimit)
}

// ms converts a number of milliseconds to a duration.
func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// mono returns the server's monotonic clock in ms.
func (v *server) mono() int64 { return v.Clock.Mono(v.sim.now) / machine.Millisecond }

// watchDisk tells the replica that a stall has begun. answered tells it that the stall has ended.
func (v *server) watchDisk() {
	w := &v.writer.watch
	if w.began == 0 || w.stalled || !w.exceeds(w.began, v.mono()) {
		return
	}
	w.stalled = true
	v.sim.reach(situationStalled)
	v.push(replica.DiskStalled{Since: w.began, Duty: fmt.Sprintf("a duty that was handed out at %d ms", w.began)})
}

// answered measures a duty that is done. next is the time at which the oldest remaining
// duty was pushed; 0: there is none.
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
