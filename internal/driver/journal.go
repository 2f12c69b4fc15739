package driver

import (
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/internal/record"
	"bellwether/internal/replica"
	"bellwether/internal/tree"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// Task is a duty in a Journal.
type Task struct {
	replica.Duty
	Received *tree.Tree // the received snapshot that Install refers to, as a tree
	Size     int        // approximate memory of the task, in bytes
	At       int64      // time of the driver's clock at which the task was pushed
}

// appends reports whether a task only makes the log longer or durable.
func (t *Task) appends() bool {
	return t.SaveAccepted == 0 && t.Truncate == nil && !t.Rebuild && t.Install == nil && t.SaveCurrent == 0 && t.Proposed == nil && t.Committed == nil
}

// Journal is the queue of duties between the loop and the log writer. While the log writer does one
// action, the next duties gather, so that commits are grouped without a timer. The loop calls Push and
// Reopen. The log writer calls Take, and then Next until it returns Idle. If an action fails, it calls
// Full, Refuse or Abandon. If the loop and the log writer are two goroutines, one lock guards all calls;
// the Action that Next returned is read without the lock.
//
// Invariants: queued is empty while void is set. The tasks of a group have the same generation. A group
// of several tasks only appends.
type Journal struct {
	// Standalone says that the server is standalone. It has no Zab that could be told about a refusal, so void
	// duties are recognised by their generation.
	Standalone bool

	queued []Task // pushed, and not taken yet
	taken  []Task // taken by the log writer, and not done yet; they begin with the tasks of the current group
	room   []Task // memory that taken can use again
	group  int    // number of tasks in the current group; 0 <= group <= len(taken)
	action Kind   // the action of the current group that is being done
	txns   []*record.Txn
	freed  int // bytes of the tasks that were done or dropped since the last call of Freed

	// void says that the disk has refused a duty, and that the replica has not been told yet. Every duty
	// that the replica hands out before Reopen relies on duties that were not done.
	void bool
	// voided is the last generation that ended with a full disk, on a standalone server; the
	// duties of that generation are dropped. Generations start at 1.
	voided uint64
}

// Push queues a task. kept is false if the task is void and was dropped. first is true if nothing was
// queued before, so that the log writer must be woken.
func (j *Journal) Push(t Task) (kept, first bool) {
	if j.void {
		return false, false
	}
	j.queued = append(j.queued, t)
	return true, len(j.queued) == 1
}

// Reopen accepts tasks again. The loop calls it when it steps zab.Refused, after it has carried out
// everything that follows from earlier events (see Refuses).
func (j *Journal) Reopen() { j.void = false }

// Void reports whether every task that is pushed is dropped, until Reopen.
func (j *Journal) Void() bool { return j.void }

// Freed returns how many bytes of tasks were done or dropped since its last call.
func (j *Journal) Freed() int {
	n := j.freed
	j.freed = 0
	return n
}

// Oldest returns when the oldest task that is not done was pushed. It returns false if there is none.
func (j *Journal) Oldest() (at int64, ok bool) {
	switch {
	case len(j.taken) > 0:
		return j.taken[0].At, true
	case len(j.queued) > 0:
		return j.queued[0].At, true
	}
	return 0, false
}

// Kind is the kind of an action of the log writer.
type Kind uint8

// The actions of one duty, in their order. When an action has ended, its effect is durable.
const (
	Idle          Kind = iota // there is no action
	SaveAccepted              // save Epoch as acceptedEpoch
	Rebuild                   // truncate the log after Truncate, unless that is nil; load the log again; make a tree from it if Anew is set
	Install                   // replace the history by the snapshot Received and the transactions of Snapshot
	SaveProposed              // write the file of the membership Proposed
	Append                    // append Txns, which may be none, and fsync the log
	SaveCurrent               // save Epoch as currentEpoch
	SaveCommitted             // write the files of the membership Committed
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
	Proposed   *ensemble.Membership
	Committed  *replica.Memberships
}

// Take takes all queued tasks for Next, and reports whether there are any. Everything that was taken
// before is done: Next has returned Idle.
func (j *Journal) Take() bool {
	if len(j.taken) > 0 {
		panic(fmt.Sprintf("driver: Take with %d tasks not done", len(j.taken)))
	}
	j.taken, j.queued, j.room = j.queued, j.room[:0], j.queued
	return len(j.taken) > 0
}

// Next returns the next action. The previous action is done, and its answers are on their way to the
// loop. Idle means that everything that was taken is done.
func (j *Journal) Next() Action {
	if j.group == 0 && !j.takeGroup() {
		return Action{}
	}
	for {
		for j.action++; j.action <= SaveCommitted; j.action++ {
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

// takeGroup makes the longest group at the front of taken the current group. A group is one task, or
// several successive tasks that only append and so share one fsync.
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

// endGroup ends the current group, which is done.
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

// current returns the action of the kind j.action in the current group, or Idle if the group has none.
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
	case SaveProposed:
		a.Proposed, due = t.Proposed, t.Proposed != nil
	case SaveCommitted:
		a.Committed, due = t.Committed, t.Committed != nil
	}
	if !due {
		return Action{}
	}
	return a
}

// Answers appends to out the events that the loop must step when an action is done. last is the last zxid
// of the log, and made is the tree that Rebuild has made.
func (a *Action) Answers(out []replica.Event, last wire.Zxid, made *tree.Tree) []replica.Event {
	switch a.Kind {
	case SaveAccepted:
		return append(out, replica.Zab{Event: zab.Saved{Accepted: a.Epoch, Generation: a.Generation}})
	case Rebuild:
		if a.Anew {
			out = append(out, replica.Rebuilt{Tree: made})
		}
	case Install:
		// The tree comes before the event that reports the whole history.
		return append(out, replica.Rebuilt{Tree: a.Received},
			replica.Zab{Event: zab.Installed{Zxid: a.Snapshot.Zxid, Generation: a.Generation}})
	case Append:
		return append(out, replica.Synced{Zxid: max(last, 0), Generation: a.Generation})
	case SaveCurrent:
		return append(out, replica.Zab{Event: zab.Saved{Current: a.Epoch, Generation: a.Generation}})
	}
	return out
}

// Full reports that the disk has no room for the current action, so that the log ends at zxid again. It
// drops void tasks and appends to out the events that the loop must step. In an ensemble the replica
// leaves the quorum before Zab is told about the refusal.
func (j *Journal) Full(out []replica.Event, zxid wire.Zxid, why string) []replica.Event {
	generation := j.generation()
	out = append(out, replica.LogFull{Zxid: zxid, Generation: generation})
	if !j.Standalone {
		return j.Refuse(out, zxid, why)
	}
	j.voided = generation
	j.dropTaken()
	return out
}

// Refuse reports that the current action cannot be done, and that the log ends at zxid. All queued tasks
// are void, and so are all that are pushed before Reopen. Refuse appends to out the events that the loop
// must step.
func (j *Journal) Refuse(out []replica.Event, zxid wire.Zxid, why string) []replica.Event {
	refused := zab.Refused{Zxid: zxid, Generation: j.generation(), Why: why}
	j.Abandon()
	return append(out, replica.Zab{Event: refused})
}

// Abandon drops everything that is queued, and everything that is pushed before Reopen. The log writer
// calls it when the state of the disk is unknown and the server ends.
func (j *Journal) Abandon() {
	j.dropTaken()
	for i := range j.queued {
		j.freed += j.queued[i].Size
	}
	clear(j.queued)
	j.queued, j.void = j.queued[:0], true
}

// generation returns the generation of the current group.
func (j *Journal) generation() uint64 { return j.taken[0].Generation }

// dropTaken drops the current group and everything that was taken with it.
func (j *Journal) dropTaken() {
	j.group = len(j.taken)
	j.endGroup()
}
