package share

import (
	"errors"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// ErrTaskLost means that the bid by which the member owned the task is gone, so the task was not removed.
var ErrTaskLost = errors.New("the task no longer belongs to this member")

// TaskConfig describes a Task.
type TaskConfig struct {
	Path    string         // path of the task
	Bid     string         // path of the bid by which the member owns the task
	Session wire.SessionID // session of the bid
}

// Begin reports that the caller begins to work on the task. A later Resign has no effect.
type Begin struct{}

// Finish reports that the caller has completed the task.
type Finish struct{}

func (Begin) Event()  {}
func (Finish) Event() {}

// Task carries out one task that this member owns. It then removes the task, in one transaction with a
// check that the member still owns it. It reads the task first, because an earlier owner may have
// completed it.
//
//	read ▸ gone: nothing to do
//	     ▸ exists: the caller works on it ▸ check the bid, delete the task ▸ answer lost: does this task still exist?
type Task struct {
	claim.Requester
	cfg   TaskConfig
	read  bool
	data  []byte
	czxid wire.Zxid // distinguishes the task from a later one of the same name
	begun bool
	done  bool
}

// NewTask returns the state machine. It does nothing until Attached is stepped.
func NewTask(cfg TaskConfig) *Task { return &Task{cfg: cfg} }

// Due returns the data of the task. awaited reports whether the caller must step Begin, work on the task,
// and then step Finish.
func (k *Task) Due() (data []byte, awaited bool) { return k.data, k.read && !k.begun && !k.Over() }

// Step processes one event, which happened at now.
func (k *Task) Step(now claim.Moment, ev claim.Event) {
	switch ev.(type) {
	case Begin:
		k.begun = k.read
	case Finish:
		k.done = k.begun
	case claim.Resign:
		if k.begun { // work that has begun is completed
			return
		}
	}
	k.Advance(now, ev, k.plan)
	switch {
	case k.Over():
	case k.Leaving:
		k.End(claim.Withdrawn, nil)
	case k.Asked == 0 && k.Current != 0 && k.Current != k.cfg.Session:
		k.InDoubt = 0
		k.End(claim.Failed, ErrTaskLost)
	}
}

func (k *Task) plan() {
	switch {
	case k.Current != k.cfg.Session || k.Leaving:
	case !k.read:
		k.Ask(k.tookTask, claim.Get(k.cfg.Path))
	case k.InDoubt != 0:
		k.Ask(k.tookAgain, claim.Sync(k.cfg.Path), claim.Get(k.cfg.Path))
	case k.done:
		k.Attempt(k.tookEnd, claim.Multi(k.cfg.Path, claim.Check(k.cfg.Bid), claim.Delete(k.cfg.Path)))
	}
}

func (k *Task) tookTask(res []claim.Result) {
	switch r := res[0]; {
	case r.Err == nil:
		k.read, k.data, k.czxid = true, r.Data, r.Stat.Czxid
	case errors.Is(r.Err, wire.ErrNoNode):
		k.End(claim.Succeeded, nil)
	default:
		k.End(claim.Failed, r.Err)
	}
}

// tookAgain finds out whether a deletion whose answer was lost was carried out.
func (k *Task) tookAgain(res []claim.Result) {
	k.InDoubt = 0
	switch err, r := res[0].Err, res[1]; {
	case err != nil:
		k.End(claim.Failed, err)
	case errors.Is(r.Err, wire.ErrNoNode), r.Err == nil && r.Stat.Czxid != k.czxid:
		k.End(claim.Succeeded, nil)
	case r.Err != nil:
		k.End(claim.Failed, r.Err)
	}
}

func (k *Task) tookEnd(res []claim.Result) {
	switch r := res[0]; {
	case r.Err == nil, r.Failed == 1 && errors.Is(r.Err, wire.ErrNoNode):
		k.End(claim.Succeeded, nil)
	case r.Failed == 0 && errors.Is(r.Err, wire.ErrNoNode):
		k.End(claim.Failed, ErrTaskLost)
	default:
		k.End(claim.Failed, r.Err)
	}
}
