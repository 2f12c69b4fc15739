package sim

import (
	"errors"
	"fmt"
	"slices"

	"bellwether/internal/claim"
	"bellwether/internal/claim/lines"
	"bellwether/internal/claim/share"
	"bellwether/wire"
)

// owner is one bid in the election of a part. Its term lasts until the owner loses the
// part, must release it, or has done its task.
type owner struct {
	runner
	s      *sharer
	part   string
	line   *lines.Election // nil: the bid is over
	often  bool            // it pings every tenth of the timeout
	told   bool            // the state machine has told it to release the part
	done   bool            // its task is done
	kicked bool            // a scenario has deleted its bid, and the owner may not know it yet
	task   *doer
}

// doer does the task of an owner, in one of its terms. did is only true if due is.
type doer struct {
	runner
	o   *owner
	m   *share.Task
	due bool // the task is being done, or is done
	did bool // the task is done
}

// Observations of owners, for the checkers.
type (
	// partOwned says that an owner's term begins.
	partOwned struct {
		o     *owner
		token wire.Zxid
	}
	// partProven says that the owner's session was proven alive, which prolongs its term.
	partProven struct{ o *owner }
	// taskBegan says that a task is begun. taskDone says that its doer reports it as over.
	taskBegan struct{ o *owner }
	taskDone  struct{ o *owner }
)

func newOwner(s *sharer, part string) *owner {
	o := &owner{s: s, part: part}
	o.runner = runner{c: s.c, step: o.step}
	o.task = &doer{o: o}
	o.task.runner = runner{c: s.c, step: o.task.step}
	return o
}

func (o *owner) parent() string { return claim.Join(shareParts, o.part) }

// holds reports whether the owner may consider the part its own now.
func (o *owner) holds() bool { return o.line != nil && o.line.Left(o.now()) > 0 }

// stand makes the bid.
func (o *owner) stand() {
	o.line = lines.NewElection(lines.Config{Parent: o.parent(), ID: o.s.id, Nonce: o.c.random.nonce(), Rule: lines.Leadership, Leader: o.parent() + "/LEADER"})
	if o.s.session != 0 {
		o.step(claim.Attached{Session: o.s.session, Lease: o.s.lease})
	}
}

// letGo resigns as soon as the work of the term has returned.
func (o *owner) letGo() {
	o.told = true
	if o.task.m != nil {
		o.task.step(claim.Resign{})
	} else {
		o.resign()
	}
}

// resign gives the bid up after a while.
func (o *owner) resign() {
	o.soon(30*millisecond, func() { o.step(claim.Resign{}) })
}

// step passes an event to the bid and carries out what the bid asks for.
func (o *owner) step(ev claim.Event) {
	line := o.line
	if line == nil {
		return
	}
	line.Step(o.now(), ev)
	rd, st := line.Ready(), line.State()
	for _, h := range rd.Happenings {
		if h, leads := h.(lines.Leads); leads {
			o.c.sim.tell("member %s owns %s by %v", o.s.id, o.part, h.Token)
			o.c.sim.owned[o.part] = o.s.id
			o.c.sim.see(partOwned{o, h.Token})
			if o.s.tasks && !o.told {
				o.task.begin(claim.Join(o.parent(), h.Bid))
			}
		}
	}
	o.often = rd.KeepAlive
	o.ask(rd.Request)
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
func (o *owner) over(st lines.State) {
	o.line = nil
	o.task.end()
	o.soon(20*millisecond, func() {
		end := share.BidOver{Part: o.part, Told: o.told, TermEnd: claim.TermEnd{Returned: o.done}}
		if !o.told && !o.done && !st.Reason.Passing() {
			end.Err = fmt.Errorf("%s: %v: %w", o.parent(), st.Reason, st.Err)
		}
		o.drop()
		o.s.owners = slices.DeleteFunc(o.s.owners, func(other *owner) bool { return other == o })
		o.s.step(end)
	})
}

// begin reads the task. Its requests are guarded by the owner's bid.
func (k *doer) begin(bid string) {
	k.m = share.NewTask(share.TaskConfig{Path: claim.Join(shareTasks, k.o.part), Bid: bid, Session: k.c.session})
	k.step(claim.Attached{Session: k.c.session})
}

// end drops the task, because the term is over or the part must be released.
func (k *doer) end() {
	k.drop()
	k.m, k.due, k.did = nil, false, false
}

// step passes an event to the state machine and carries out what the machine asks for.
func (k *doer) step(ev claim.Event) {
	m, o := k.m, k.o
	if m == nil {
		return
	}
	m.Step(k.now(), ev)
	rd := m.Ready()
	k.ask(rd.Request)
	if k.m != m {
		return
	}
	if _, due := m.Due(); due {
		k.due = true
		o.c.sim.see(taskBegan{o})
		k.step(share.Begin{})
		k.soon(200*millisecond, func() {
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
		o.c.sim.tell("member %s: %s is done", o.s.id, o.part)
		o.done = true
		o.c.sim.see(taskDone{o})
	case err != nil && !errors.Is(err, share.ErrTaskLost): // after this error the term is about to end
		o.c.sim.fail("Shares", "member %s cannot end %s: %v", o.s.id, o.part, err)
	}
	if o.told || o.done {
		o.resign()
	}
}
