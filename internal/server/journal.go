package server

import (
	"sync"
	"time"

	"bellwether/internal/driver"
	"bellwether/internal/replica"
	"bellwether/wire"
)

// journal is the queue of duties between the loop and the log writer, with its lock. The
// bytes of its tasks count toward the limit at which the readers of other servers stop
// (inbox.go).
type journal struct {
	mu    sync.Mutex
	queue driver.Journal
	wake  chan struct{} // has capacity one; a value says that there are tasks to take
}

func newJournal(alone bool) *journal {
	return &journal{queue: driver.Journal{Standalone: alone}, wake: make(chan struct{}, 1)}
}

// push queues a task. It returns false if the task is void.
func (j *journal) push(t driver.Task) bool {
	j.mu.Lock()
	kept, first := j.queue.Push(t)
	j.mu.Unlock()
	if first {
		select {
		case j.wake <- struct{}{}:
		default:
		}
	}
	return kept
}

// reopen accepts tasks again after a refusal.
func (j *journal) reopen() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.queue.Reopen()
}

// take takes all queued tasks, and next returns them as actions.
func (j *journal) take() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.queue.Take()
}

// next returns the next action, and the number of bytes of the tasks done since the last
// call.
func (j *journal) next() (a driver.Action, freed int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	a = j.queue.Next()
	return a, j.queue.Freed()
}

// full and refuse drop the tasks that are void after the disk has refused an action. They
// return the events that the loop must step.
func (j *journal) full(zxid wire.Zxid, why string) []replica.Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.queue.Full(nil, zxid, why)
}

func (j *journal) refuse(zxid wire.Zxid, why string) []replica.Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.queue.Refuse(nil, zxid, why)
}

// abandon drops all tasks, because the server ends.
func (j *journal) abandon() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.queue.Abandon()
}

// roomProbe is the time between two checks of the log writer: whether the data directory is
// still in its place, and whether a full disk has space again.
const roomProbe = time.Second
