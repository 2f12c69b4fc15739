package client

import (
	"errors"
	"fmt"
	"slices"

	"bellwether/internal/claim"
	"bellwether/internal/claim/lines"
	"bellwether/internal/claim/share"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/machine"
)

// Owner is one bid in the election of a part. Its term lasts until the owner loses the
// part, must release it, or has done its task.
type Owner struct {
	Runner
	s           *Sharer
	Part        string
	line        *lines.Election // nil: the bid is over
	keepAlive   bool            // it pings every tenth of the timeout
	mustRelease bool            // the state machine has told it to release the part
	taskDone    bool            // its task is done
	BidDeleted  bool            // a scenario has deleted its bid, and the owner may not know it yet
	task        *taskRunner
	attempt     int // its number among the owners of the member
}

// taskRunner does the task of an owner, in one of its terms. did is only true if due is.
type taskRunner struct {
	Runner
	o   *Owner
	m   *share.Task
	due bool // the task is being done, or is done
	did bool // the task is done
}

func newOwner(s *Sharer, part string) *Owner {
	s.ownersMade++
	o := &Owner{s: s, Part: part, attempt: s.ownersMade}
	o.Runner = Runner{c: s.c, step: o.step}
	o.task = &taskRunner{o: o}
	o.task.Runner = Runner{c: s.c, step: o.task.step}
	return o
}

func (o *Owner) parent() string { return claim.Join(check.ShareParts, o.Part) }

// Bid returns the path of the owner's bid.
func (o *Owner) Bid() string { return claim.Join(o.parent(), o.line.State().Bid) }

// holds reports whether the owner may consider the part its own now.
func (o *Owner) holds() bool { return o.line != nil && o.line.Left(o.now()) > 0 }

// proof reports whether it is proven that the session lives as long as the term.
func (o *Owner) proof() bool { return o.line.Proof() == nil }

// observed returns the owner as the checkers see it.
func (o *Owner) observed() check.Owner {
	return check.Owner{Member: o.s.id, Session: o.c.Session, Part: o.Part, Proven: o.proof(), Deleted: o.BidDeleted, Attempt: o.attempt}
}

// bid makes the bid.
func (o *Owner) bid() {
	o.line = lines.NewElection(lines.Config{Parent: o.parent(), ID: o.s.id, Nonce: o.c.random.Nonce(), Rule: lines.Leadership, Leader: o.parent() + "/LEADER"})
	if o.s.session != 0 {
		o.step(claim.Attached{Session: o.s.session, Lease: o.s.lease})
	}
}

// release resigns as soon as the work of the term has returned.
func (o *Owner) release() {
	o.mustRelease = true
	if o.task.m != nil {
		o.task.step(claim.Resign{})
	} else {
		o.resign()
	}
}

// resign gives the bid up after a while.
func (o *Owner) resign() {
	o.soon(30*machine.Millisecond, func() { o.step(claim.Resign{}) })
}

// step passes an event to the bid and carries out what the bid asks for.
func (o *Owner) step(ev claim.Event) {
	line := o.line
	if line == nil {
		return
	}
	line.Step(o.now(), ev)
	rd, st := line.Ready(), line.State()
	for _, h := range rd.Observations {
		if h, leads := h.(lines.Leads); leads {
			o.c.group.Tell("member %s owns %s by %v", o.s.id, o.Part, h.Token)
			o.c.group.owned[o.Part] = o.s.id
			o.c.group.See(check.PartOwned{Owner: o.observed(), Token: h.Token})
			if o.s.doesTasks && !o.mustRelease {
				o.task.begin(claim.Join(o.parent(), h.Bid))
			}
		}
	}
	o.keepAlive = rd.KeepAlive
	o.request(rd.Request)
	switch {
	case o.line != line:
	case st.Phase != lines.Done:
		if st.Phase > lines.Leading {
			o.task.end()
		}
		o.wake(rd.Wake)
	default:
		o.over(st)
	}
}

// over handles the end of the bid, and drops the work of its term.
func (o *Owner) over(st lines.State) {
	o.line = nil
	o.task.end()
	o.soon(20*machine.Millisecond, func() {
		end := share.BidOver{Part: o.Part, Resigned: o.mustRelease, TermEnd: claim.TermEnd{Returned: o.taskDone}}
		if !o.mustRelease && !o.taskDone && !claim.Passing(st.Reason) {
			end.Err = fmt.Errorf("%s: %v: %w", o.parent(), st.Reason, st.Err)
		}
		o.drop()
		o.s.owners = slices.DeleteFunc(o.s.owners, func(other *Owner) bool { return other == o })
		o.s.step(end)
	})
}

// begin reads the task. Its requests are guarded by the owner's bid.
func (k *taskRunner) begin(bid string) {
	k.m = share.NewTask(share.TaskConfig{Path: claim.Join(check.ShareTasks, k.o.Part), Bid: bid, Session: k.c.Session})
	k.step(claim.Attached{Session: k.c.Session})
}

// end drops the task, because the term is over or the part must be released.
func (k *taskRunner) end() {
	k.drop()
	k.m, k.due, k.did = nil, false, false
}

// step passes an event to the state machine and carries out what the machine asks for.
func (k *taskRunner) step(ev claim.Event) {
	m, o := k.m, k.o
	if m == nil {
		return
	}
	m.Step(k.now(), ev)
	rd := m.Ready()
	k.request(rd.Request)
	if k.m != m {
		return
	}
	if _, due := m.Due(); due {
		k.due = true
		o.c.group.See(check.TaskBegan{Member: o.s.id, Task: o.Part})
		k.step(share.Begin{})
		k.soon(200*machine.Millisecond, func() {
			k.did = true
			k.step(share.Finish{})
		})
	}
	if !m.Over() {
		k.wake(rd.Wake)
		return
	}
	k.end()
	switch err := m.Err(); {
	case m.Outcome() == claim.Succeeded:
		o.c.group.Tell("member %s: %s is done", o.s.id, o.Part)
		o.taskDone = true
		o.c.group.See(check.TaskDone{Member: o.s.id, Task: o.Part})
	case err != nil && !errors.Is(err, share.ErrTaskLost): // after this error the term is about to end
		o.c.group.Fail("Shares", "member %s cannot end %s: %v", o.s.id, o.Part, err)
	}
	if o.mustRelease || o.taskDone {
		o.resign()
	}
}
