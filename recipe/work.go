package recipe

import (
	"context"
	"errors"
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/claim/share"
	"bellwether/zk"
)

// Task is one task of a Work.
type Task struct {
	ID   string
	Data []byte
	Path string // path of the task's znode
}

// Work is a set of tasks that the members of a group do. Each task is assigned to one of
// the present members, and has an election of its own, like a part of a
// Partitioner. When a member has done a task, it deletes the task's znode in a transaction that checks
// that the member still owns the task. If a member fails, another member does its tasks again
// from the start.
type Work struct {
	c      *zk.Client
	parent string
	opt    PartitionerOptions
}

// NewWork prepares the tasks at parent. The caller still owns the client.
func NewWork(c *zk.Client, parent string, o *PartitionerOptions) (*Work, error) {
	w := &Work{c: c, parent: parent, opt: optionsOr(o)}
	if w.opt.Parallel <= 0 {
		w.opt.Parallel = 1
	}
	return w, checkClient("work", c, parent)
}

// cfg returns the settings of the machine of the member with this id.
func (w *Work) cfg(id string) share.SharingConfig {
	return share.SharingConfig{Parent: w.parent, ID: id, Tasks: true, Most: w.opt.Parallel}
}

func (w *Work) tasks() string { return w.cfg("").TasksAt() }

// Submit adds a task with this id. If a task with the id exists, Submit
// returns zk.ErrNodeExists. So a program may call Submit again after a lost reply.
func (w *Work) Submit(ctx context.Context, id string, data []byte) (err error) {
	if err := checkName("work "+w.parent, id); err != nil {
		return err
	}
	b := newAgent(w.c, "work", w.parent, w.opt.Election.ACL, w.opt.Election.Logger, w.opt.Election.Observer)
	start := time.Now()
	defer func() { b.observed("submit", claim.Join(w.tasks(), id), start, err) }()
	for _, op := range w.cfg("").Submission(id, data) {
		if r, _ := b.runPlan(ctx, op); r.Err != nil {
			return r.Err
		}
	}
	return nil
}

// Run makes this client a member with this id, and does tasks until the context ends. It calls do with
// each task that the member owns. The context of do ends when the member no longer owns the task. When do
// returns nil, Run deletes the task. If the member loses the task before that, another member does it
// again. If do returns an error, the task stays for other members, and Run ends with that error, unless it
// is one of those after which [Election.Lead] campaigns again: then this member makes a bid for the task
// again after a pause.
func (w *Work) Run(ctx context.Context, id string, do func(ctx context.Context, t Task, h *Handle) error) error {
	if do == nil {
		return errNil("work", w.parent, "function do")
	}
	own := func(ctx context.Context, part string, h *Handle) error { return w.do(ctx, part, h, do) }
	return newSharing(w.c, w.cfg(id), w.opt.Election, own).run(ctx)
}

// do does one task and then deletes it, even if the task was assigned to another member while do
// ran.
func (w *Work) do(ctx context.Context, id string, h *Handle, do func(context.Context, Task, *Handle) error) error {
	if h.t.cfg.Naming == PlainNames {
		return ErrNoGuard
	}
	t := Task{ID: id, Path: claim.Join(w.tasks(), id)}
	b := h.t.b
	m := share.NewTask(share.TaskConfig{Path: t.Path, Bid: h.bid, Session: h.t.session})
	d := b.newDriver(m)
	inner, cancel := context.WithCancel(h.Context())
	defer cancel()
	stop := context.AfterFunc(ctx, func() { d.tell(inner, claim.Resign{}) })
	defer stop()
	var failed error
	d.afterStep = func(driven context.Context, _ claim.Event) {
		data, due := m.Due()
		if !due || ctx.Err() != nil {
			return
		}
		d.step(driven, share.Begin{})
		t.Data = data
		if failed = do(ctx, t, h); failed == nil {
			d.step(driven, share.Finish{})
		} else {
			cancel()
		}
	}
	err := d.run(inner)
	if err == nil {
		err = b.verdict(ctx, "work", t.Path, m) // the caller's context, not the term's, says why the task was withdrawn
	}
	if failed != nil {
		return failed // ends Run, unless it says only that the term is over
	}
	return taskError(ctx, h, err)
}

// taskError returns the error of a task that err ended. If the member has lost the task with its bid, the error is that
// of the context, which has ended or ends as soon as the handle learns of the loss.
func taskError(ctx context.Context, h *Handle, err error) error {
	var lost *LostError
	var stopped *stopError
	switch {
	case errors.As(err, &stopped):
	case h.Lost() != nil, errors.Is(err, share.ErrTaskLost), errors.As(err, &lost) && lost.Parent == h.t.cfg.Parent:
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}
