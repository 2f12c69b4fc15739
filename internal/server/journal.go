package server

import (
	"sync"
	"time"

	"bellwether/internal/replica"
	"bellwether/internal/tree"
)

// journal is the queue in front of the log writer. While one sync runs the
// next duties gather, so that commits are grouped without any timer. Its bytes
// are among those that hold up who reads from other servers (inbox.go).
type journal struct {
	mu    sync.Mutex
	tasks []task
	// refused: a duty could not be done, and the replica has not heard of it
	// yet. Whatever it asks for until then is void.
	refused bool
	since   int64         // the server's clock when the first of tasks came
	wake    chan struct{} // of one
}

// task is a duty of the log writer. received is the tree behind an Install,
// size about what the duty keeps in memory.
type task struct {
	replica.Duty
	received *tree.Tree
	size     int
}

// sizes are those of tasks together.
func sizes(tasks []task) (n int) {
	for i := range tasks {
		n += tasks[i].size
	}
	return n
}

// appends reports whether a task only makes the log longer or durable.
func (t *task) appends() bool {
	return t.SaveAccepted == 0 && t.Truncate == nil && !t.Rebuild && t.Install == nil && t.SaveCurrent == 0
}

func newJournal() *journal { return &journal{wake: make(chan struct{}, 1)} }

// push queues a duty; false: it is void.
func (j *journal) push(t task, now int64) bool {
	j.mu.Lock()
	if j.refused {
		j.mu.Unlock()
		return false
	}
	first := len(j.tasks) == 0
	if first {
		j.since = now
	}
	j.tasks = append(j.tasks, t)
	j.mu.Unlock()
	if first {
		select {
		case j.wake <- struct{}{}:
		default:
		}
	}
	return true
}

// take returns what is queued, in room's memory next time.
func (j *journal) take(room []task) (tasks []task, since int64) {
	clear(room)
	j.mu.Lock()
	defer j.mu.Unlock()
	tasks = j.tasks
	j.tasks = room[:0]
	return tasks, j.since
}

// refuse makes everything void that is queued, or is until reopen. It returns
// the size of what was queued.
func (j *journal) refuse() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := sizes(j.tasks)
	clear(j.tasks)
	j.tasks, j.refused = j.tasks[:0], true
	return n
}

// reopen is called by the loop when the replica hears of what was refused.
func (j *journal) reopen() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.refused = false
}

// roomProbe is how often a full disk is asked whether there is room again.
const roomProbe = time.Second
