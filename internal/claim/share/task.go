package share

import (
	"errors"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// ErrTaskLost: the bid is gone by which the task was owned, so it is not ended.
var ErrTaskLost = errors.New("the task is not this member's any more")

// TaskConfig is what a Task is about.
type TaskConfig struct {
	Path    string         // of the task
	Bid     string         // path of the bid by which it is owned
	Session wire.SessionID // of the bid
}

// Begin: a task that is due is being done from here on, and a Resign comes too late.
type Begin struct{}

// Finish ends a Task that has been done.
type Finish struct{}

func (Begin) Event()  {}
func (Finish) Event() {}

// Task does one task that is owned, and ends it by removing it, in one
// transaction with the check that it is still owned. What is there is read
// first, as it may have been done by an owner before.
//
//	read ▸ gone: nothing to do
//	     ▸ due: the caller does it ▸ check the bid, delete the task ▸ answer lost: is it this task that is there?
type Task struct {
	claim.Requester
	cfg   TaskConfig
	read  bool
	data  []byte
	czxid wire.Zxid // tells it from one of the same name that was submitted since
	begun bool
	done  bool
}

// NewTask makes the state machine, which waits for Attached.
func NewTask(cfg TaskConfig) *Task { return &Task{cfg: cfg} }

// Due is the data of a task that is to be done, if it is: a Begin is awaited, and then a Finish.
func (k *Task) Due() (data []byte, awaited bool) { return k.data, k.read && !k.begun && !k.Over() }

// Step takes one event, which happened at now.
func (k *Task) Step(now claim.Moment, ev claim.Event) {
	switch ev.(type) {
	case Begin:
		k.begun = k.read
	case Finish:
		k.done = k.begun
	case claim.Resign:
		if k.begun { // what is begun is brought to its end
			return
		}
	}
	k.Advance(now, ev, k.plan)
	switch {
	case k.Over():
	case k.Leaving:
		k.End(claim.Withdrawn, nil)
	case k.Asked == 0 && k.Current != 0 && k.Current != k.cfg.Session:
		k.Unsure = 0
		k.End(claim.Failed, ErrTaskLost)
	}
}

// Ready hands out what has come of the steps since the last call.
func (k *Task) Ready() claim.Ready { return k.Collect() }

func (k *Task) plan() {
	switch {
	case k.Current != k.cfg.Session || k.Leaving:
	case !k.read:
		k.Ask(k.tookTask, claim.Op{Kind: claim.OpGet, Path: k.cfg.Path})
	case k.Unsure != 0:
		k.Ask(k.tookAgain, claim.Op{Kind: claim.OpSync, Path: k.cfg.Path}, claim.Op{Kind: claim.OpGet, Path: k.cfg.Path})
	case k.done:
		k.Attempt(k.tookEnd, claim.Op{Kind: claim.OpMulti, Path: k.cfg.Path, Ops: []claim.Op{
			{Kind: claim.OpCheck, Path: k.cfg.Bid, Version: claim.AnyVersion}, {Kind: claim.OpDelete, Path: k.cfg.Path, Version: claim.AnyVersion},
		}})
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

// tookAgain: whose end was in doubt.
func (k *Task) tookAgain(res []claim.Result) {
	k.Unsure = 0
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
