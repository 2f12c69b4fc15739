package server

import (
	"sync"
	"time"

	"bellwether/internal/driver"
	"bellwether/internal/replica"
	"bellwether/wire"
)

// journal is the queue of duties between the loop and the log writer, and its
// lock. The bytes of its tasks are among those that stop the readers of other
// servers (inbox.go).
type journal struct {
	mu    sync.Mutex
	queue driver.Journal
	wake  chan struct{} // of one: there are tasks to take
}

func newJournal(alone bool) *journal {
	return &journal{queue: driver.Journal{Alone: alone}, wake: make(chan struct{}, 1)}
}

// push queues a task; false: it is void.
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

// take takes everything that is queued, for next.
func (j *journal) take() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.queue.Take()
}

// next returns the next action, and how many bytes of tasks are done since the last
// call.
func (j *journal) next() (a driver.Action, freed int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	a = j.queue.Next()
	return a, j.queue.Freed()
}

// full and refuse drop what is void after an action that the disk has refused. They
// return what the loop is to step.
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

// abandon drops everything: the server ends.
func (j *journal) abandon() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.queue.Abandon()
}

// roomProbe is how often the log writer asks a full disk whether there is room again.
const roomProbe = time.Second
