package driver

import (
	"fmt"

	"bellwether/internal/record"
	"bellwether/internal/replica"
	"bellwether/internal/tree"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// Task is a duty in a Journal.
type Task struct {
	replica.Duty
	Received *tree.Tree // the snapshot that Install means, as it arrived
	Size     int        // about how many bytes of memory the task keeps
	At       int64      // the driver's clock when the task was pushed
}

// appends reports whether a task only makes the log longer or durable.
func (t *Task) appends() bool {
	return t.SaveAccepted == 0 && t.Truncate == nil && !t.Rebuild && t.Install == nil && t.SaveCurrent == 0
}

// Journal is the queue of duties between the loop and the log writer. While the log
// writer does one action the next duties gather, so that commits are grouped without
// a timer.
//
// The loop calls Push and Reopen. The log writer calls Take, then Next until that
// returns Idle, and Full, Refuse or Abandon if an action has failed. If these are two goroutines, one lock guards all calls; the
// Action that Next returned is read without the lock.
//
// Invariants: queued is empty while void is set. The tasks of a group have the same
// generation, and a group of several tasks only appends.
type Journal struct {
	// Alone: the server is standalone. There is no Zab to refuse to; what is void is
	// found by its generation.
	Alone bool

	queued []Task // pushed and not taken yet
	taken  []Task // taken by the log writer and not done yet; the first group of them are the current group
	room   []Task // the memory of taken
	group  int    // tasks in the current group; 0 <= group <= len(taken)
	action Kind   // of the current group, that is being done
	txns   []*record.Txn
	freed  int // bytes of the tasks that were done or dropped since Freed was called

	// void: the disk has refused a duty and the replica has not been told yet.
	// Everything that it pushes until Reopen is based on duties that were not done.
	void bool
	// voided (Alone) is the last generation that ended with a full disk; its duties
	// are dropped. Generations start at 1.
	voided uint64
}

// Push queues a task. kept is false if it is void and was dropped; first is true if
// nothing was queued before, so that the log writer must be woken.
func (j *Journal) Push(t Task) (kept, first bool) {
	if j.void {
		return false, false
	}
	j.queued = append(j.queued, t)
	return true, len(j.queued) == 1
}

// Reopen accepts tasks again. The loop calls it when it steps zab.Refused, with
// everything carried out that came of earlier events (see Refuses).
func (j *Journal) Reopen() { j.void = false }

// Void reports whether everything that is pushed is dropped, until Reopen.
func (j *Journal) Void() bool { return j.void }

// Freed is how many bytes of tasks were done or dropped since it was called last.
func (j *Journal) Freed() int {
	n := j.freed
	j.freed = 0
	return n
}

// Oldest is when the oldest task that is not done was pushed; false: there is none.
func (j *Journal) Oldest() (at int64, ok bool) {
	switch {
	case len(j.taken) > 0:
		return j.taken[0].At, true
	case len(j.queued) > 0:
		return j.queued[0].At, true
	}
	return 0, false
}

// Kind is what the log writer does in one action.
type Kind uint8

// The actions of one duty, in their order. Each ends with what it did durable.
const (
	Idle         Kind = iota // there is none
	SaveAccepted             // save Epoch as acceptedEpoch
	Rebuild                  // truncate the log behind Truncate, unless that is nil; load it anew; make a tree of it if Anew is set
	Install                  // make Received, with the transactions of Snapshot, the whole history
	Append                   // append Txns, which may be none, and fsync the log
	SaveCurrent              // save Epoch as currentEpoch
)

// Action is one thing that the log writer does.
type Action struct {
	Kind       Kind
	Generation uint64
	At         int64 // when its first task was pushed
	Epoch      wire.Epoch
	Truncate   *zab.Truncate
	Anew       bool
	Snapshot   *zab.Install
	Received   *tree.Tree
	Txns       []*record.Txn
}

// Take takes everything that is queued for Next, and reports whether that is
// anything. Everything that was taken before is done: Next has returned Idle.
func (j *Journal) Take() bool {
	if len(j.taken) > 0 {
		panic(fmt.Sprintf("driver: Take with %d tasks not done", len(j.taken)))
	}
	j.taken, j.queued, j.room = j.queued, j.room[:0], j.queued
	return len(j.taken) > 0
}

// Next returns the next action. The one before is done, and its answers are on
// their way to the loop. Idle: everything that was taken is done.
func (j *Journal) Next() Action {
	if j.group == 0 && !j.takeGroup() {
		return Action{}
	}
	for {
		for j.action++; j.action <= SaveCurrent; j.action++ {
			if a := j.current(); a.Kind != Idle {
				return a
			}
		}
		j.endGroup()
		if !j.takeGroup() {
			return Action{}
		}
	}
}

// takeGroup makes the longest group at the front of what is taken the current one:
// a task, or several behind each other that only append, and share one fsync.
func (j *Journal) takeGroup() bool {
	for len(j.taken) > 0 && j.taken[0].Generation <= j.voided {
		j.drop(1)
	}
	t := j.taken
	if len(t) == 0 {
		return false
	}
	j.group = 1
	for t[0].appends() && j.group < len(t) && t[j.group].appends() && t[j.group].Generation == t[0].Generation {
		j.group++
	}
	for i := range t[:j.group] {
		j.txns = append(j.txns, t[i].Append...)
	}
	return true
}

// endGroup ends the current group: it is done.
func (j *Journal) endGroup() {
	j.drop(j.group)
	clear(j.txns) // the memory is kept, the transactions are not
	j.txns, j.action, j.group = j.txns[:0], Idle, 0
}

// drop forgets the first n tasks that were taken.
func (j *Journal) drop(n int) {
	for i := range j.taken[:n] {
		j.freed += j.taken[i].Size
	}
	clear(j.taken[:n])
	j.taken = j.taken[n:]
}

// current is the action of the kind j.action in the current group; Idle if the group
// has none.
func (j *Journal) current() Action {
	t := &j.taken[0]
	a := Action{Kind: j.action, Generation: t.Generation, At: t.At}
	due := false
	switch j.action {
	case SaveAccepted:
		a.Epoch, due = t.SaveAccepted, t.SaveAccepted != 0
	case Rebuild:
		a.Truncate, a.Anew, due = t.Truncate, t.Rebuild, t.Truncate != nil || t.Rebuild
	case Install:
		a.Snapshot, a.Received, due = t.Install, t.Received, t.Install != nil
	case Append:
		a.Txns, due = j.txns, len(j.txns) > 0
		for i := range j.taken[:j.group] {
			due = due || j.taken[i].Sync
		}
	case SaveCurrent:
		a.Epoch, due = t.SaveCurrent, t.SaveCurrent != 0
	}
	if !due {
		return Action{}
	}
	return a
}

// Answers adds to out what the loop steps once an action is done. last is the last
// zxid of the log, made the tree that Rebuild has made.
func (a *Action) Answers(out []replica.Event, last wire.Zxid, made *tree.Tree) []replica.Event {
	switch a.Kind {
	case SaveAccepted:
		return append(out, replica.Zab{Event: zab.Saved{Accepted: a.Epoch, Generation: a.Generation}})
	case Rebuild:
		if a.Anew {
			out = append(out, replica.Rebuilt{Tree: made})
		}
	case Install:
		// The tree comes before the news that it holds the whole history.
		return append(out, replica.Rebuilt{Tree: a.Received},
			replica.Zab{Event: zab.Installed{Zxid: a.Snapshot.Zxid, Generation: a.Generation}})
	case Append:
		return append(out, replica.Synced{Zxid: max(last, 0), Generation: a.Generation})
	case SaveCurrent:
		return append(out, replica.Zab{Event: zab.Saved{Current: a.Epoch, Generation: a.Generation}})
	}
	return out
}

// Full says that the disk has no room for the current action: the log ends at zxid
// again. It drops what is void and adds to out what the loop steps. In an ensemble
// the replica leaves the quorum before Zab hears of the refusal.
func (j *Journal) Full(out []replica.Event, zxid wire.Zxid, why string) []replica.Event {
	generation := j.generation()
	out = append(out, replica.LogFull{Zxid: zxid, Generation: generation})
	if !j.Alone {
		return j.Refuse(out, zxid, why)
	}
	j.voided = generation
	j.dropTaken()
	return out
}

// Refuse says that the current action cannot be done, and that the log ends at zxid.
// Everything that is queued is void, and everything that is pushed until Reopen. It
// adds to out what the loop steps.
func (j *Journal) Refuse(out []replica.Event, zxid wire.Zxid, why string) []replica.Event {
	refused := zab.Refused{Zxid: zxid, Generation: j.generation(), Why: why}
	j.Abandon()
	return append(out, replica.Zab{Event: refused})
}

// Abandon drops everything that is queued, and everything that is pushed until Reopen.
// The log writer calls it by itself when nothing is known about the disk any more and
// the server ends.
func (j *Journal) Abandon() {
	j.dropTaken()
	for i := range j.queued {
		j.freed += j.queued[i].Size
	}
	clear(j.queued)
	j.queued, j.void = j.queued[:0], true
}

// generation is that of the current group.
func (j *Journal) generation() uint64 { return j.taken[0].Generation }

// dropTaken drops the current group and everything that was taken with it.
func (j *Journal) dropTaken() {
	j.group = len(j.taken)
	j.endGroup()
}
