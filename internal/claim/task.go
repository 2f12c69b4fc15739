package claim

import (
	"errors"

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

func (Begin) event()  {}
func (Finish) event() {}

// Task does one task that is owned, and ends it by removing it, in one
// transaction with the check that it is still owned. What is there is read
// first, as it may have been done by an owner before.
//
//	read ▸ gone: nothing to do
//	     ▸ due: the caller does it ▸ check the bid, delete the task ▸ answer lost: is it this task that is there?
type Task struct {
	asker
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
func (k *Task) Step(now Moment, ev Event) {
	switch ev.(type) {
	case Begin:
		k.begun = k.read
	case Finish:
		k.done = k.begun
	case Resign:
		if k.begun { // what is begun is brought to its end
			return
		}
	}
	k.step(now, ev, k.plan)
	switch {
	case k.Over():
	case k.leaving:
		k.end(Withdrawn, nil)
	case k.asked == 0 && k.session != 0 && k.session != k.cfg.Session:
		k.doubt = 0
		k.end(Failed, ErrTaskLost)
	}
}

// Ready hands out what has come of the steps since the last call.
func (k *Task) Ready() Ready { return k.ready() }

func (k *Task) plan() {
	switch {
	case k.session != k.cfg.Session || k.leaving:
	case !k.read:
		k.ask(k.tookTask, Op{Kind: OpGet, Path: k.cfg.Path})
	case k.doubt != 0:
		k.ask(k.tookAgain, Op{Kind: OpSync, Path: k.cfg.Path}, Op{Kind: OpGet, Path: k.cfg.Path})
	case k.done:
		k.attempt(k.tookEnd, Op{Kind: OpMulti, Path: k.cfg.Path, Ops: []Op{
			{Kind: OpCheck, Path: k.cfg.Bid, Version: AnyVersion}, {Kind: OpDelete, Path: k.cfg.Path, Version: AnyVersion},
		}})
	}
}

func (k *Task) tookTask(res []Result) {
	switch r := res[0]; {
	case r.Err == nil:
		k.read, k.data, k.czxid = true, r.Data, r.Stat.Czxid
	case errors.Is(r.Err, wire.ErrNoNode):
		k.end(Succeeded, nil)
	default:
		k.end(Failed, r.Err)
	}
}

// tookAgain: whose end was in doubt.
func (k *Task) tookAgain(res []Result) {
	k.doubt = 0
	switch err, r := res[0].Err, res[1]; {
	case err != nil:
		k.end(Failed, err)
	case errors.Is(r.Err, wire.ErrNoNode), r.Err == nil && r.Stat.Czxid != k.czxid:
		k.end(Succeeded, nil)
	case r.Err != nil:
		k.end(Failed, r.Err)
	}
}

func (k *Task) tookEnd(res []Result) {
	switch r := res[0]; {
	case r.Err == nil, r.Failed == 1 && errors.Is(r.Err, wire.ErrNoNode):
		k.end(Succeeded, nil)
	case r.Failed == 0 && errors.Is(r.Err, wire.ErrNoNode):
		k.end(Failed, ErrTaskLost)
	default:
		k.end(Failed, r.Err)
	}
}
