package sim

import (
	"errors"
	"slices"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// owner stands in the election of one part, bid after bid, until the part is to
// be let go; or until its task is done.
type owner struct {
	hands
	s       *sharer
	part    string
	line    *claim.Election // nil: it is over, or has not begun
	often   bool            // pings every tenth of the timeout
	stopped bool            // it is to let go
	done    bool            // its task is: it does not stand again
	kicked  bool            // a scenario has deleted its bid, of which it may not know yet
	task    *doer
}

// doer does the task of an owner, in one of its terms.
type doer struct {
	hands
	o   *owner
	m   *claim.Task
	due bool // it is being done, or done
	did bool // the latter
}

// What owners do, for the checkers.
type (
	// partOwned: an owner's term begins.
	partOwned struct {
		o     *owner
		token wire.Zxid
	}
	// partProven: its session is proven alive, so that it goes on.
	partProven struct{ o *owner }
	// taskBegan: a task is begun. taskDone: its doer says that it is over.
	taskBegan struct{ o *owner }
	taskDone  struct{ o *owner }
)

func newOwner(s *sharer, part string) *owner {
	o := &owner{s: s, part: part}
	o.hands = hands{c: s.c, step: o.step}
	o.task = &doer{o: o}
	o.task.hands = hands{c: s.c, step: o.task.step}
	return o
}

func (o *owner) parent() string { return claim.Join(shareParts, o.part) }

// holds reports whether it may take itself for the owner now.
func (o *owner) holds() bool { return o.line != nil && o.line.Left(o.now()) > 0 }

// stand makes a bid, once whoever stood for the part before has let go.
func (o *owner) stand() {
	for _, other := range o.s.owners {
		if other == o {
			break
		}
		if other.part == o.part {
			return // which sees to it when it is over
		}
	}
	if o.stopped {
		o.over()
		return
	}
	o.line = claim.NewElection(claim.Config{Parent: o.parent(), ID: o.s.id, Nonce: o.c.dice.nonce(), Rule: claim.Leadership, Leader: o.parent() + "/LEADER"})
	if o.s.session != 0 {
		o.step(claim.Attached{Session: o.s.session, Lease: o.s.lease})
	}
}

// stop has the owner let go: at once, or when its function has returned.
func (o *owner) stop() {
	if o.stopped {
		return
	}
	o.stopped = true
	switch {
	case o.line == nil:
		return // it has not begun: its turn will come, and it lets go
	case o.task.due: // a task that is begun is ended first
	default:
		o.task.end()
		o.soon(30*millisecond, func() { o.step(claim.Resign{}) })
	}
}

// over: it has let go. The next one here may stand.
func (o *owner) over() {
	s := o.s
	o.drop()
	o.task.end()
	o.line, o.often = nil, false
	s.owners = slices.DeleteFunc(s.owners, func(other *owner) bool { return other == o })
	if s.tasks && s.c.attached {
		s.c.send(requestOf(&claim.Op{Kind: claim.OpDelete, Path: o.parent(), Version: claim.AnyVersion}))
	}
	for _, next := range s.owners {
		if next.part == o.part {
			next.stand()
			break
		}
	}
	s.leaveIfFree()
}

// step hands an event to the bid and does what comes of it.
func (o *owner) step(ev claim.Event) {
	line := o.line
	if line == nil {
		return
	}
	line.Step(o.now(), ev)
	rd, st := line.Ready(), line.State()
	for _, h := range rd.Happenings {
		if h, leads := h.(claim.Leads); leads {
			o.c.sim.tell("member %s owns %s by %v", o.s.id, o.part, h.Token)
			o.c.sim.see(partOwned{o, h.Token})
			if o.s.tasks && !o.stopped {
				o.task.begin(claim.Join(o.parent(), h.Bid))
			}
		}
	}
	o.often = rd.KeepAlive
	o.ask(rd.Request)
	switch {
	case o.line != line:
		return
	case st.Phase != claim.Done:
		if st.Phase > claim.Leading {
			o.task.end()
		}
		o.wake(rd.Wake)
		return
	}
	o.line = nil
	o.task.end()
	if o.stopped || o.done {
		o.over()
		return
	}
	o.soon(20*millisecond, func() {
		if o.line == nil {
			o.stand()
		}
	})
}

// begin reads the task, under the bid by which it is owned.
func (k *doer) begin(bid string) {
	k.m = claim.NewTask(claim.TaskConfig{Path: claim.Join(shareTasks, k.o.part), Bid: bid, Session: k.c.session})
	k.step(claim.Attached{Session: k.c.session})
}

// end forgets the task: the term is over, or the part is to be let go.
func (k *doer) end() {
	k.drop()
	k.m, k.due, k.did = nil, false, false
}

// step hands an event to the state machine and does what comes of it.
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
	if _, due := m.Due(); due && !k.due {
		k.due = true
		o.c.sim.see(taskBegan{o})
		k.soon(200*millisecond, func() {
			k.did = true
			k.step(claim.Finish{})
		})
	}
	if !m.Over() {
		k.wake(rd.Wake)
		return
	}
	switch err := m.Err(); {
	case m.Outcome() == claim.Succeeded:
		o.c.sim.tell("member %s: %s is done", o.s.id, o.part)
		o.done = true
		o.c.sim.see(taskDone{o})
		k.end()
		o.soon(10*millisecond, func() { o.step(claim.Resign{}) })
	case errors.Is(err, claim.ErrTaskLost): // the term is about to end
		k.end()
		if o.stopped {
			o.step(claim.Resign{})
		}
	default:
		o.c.sim.fail("Shares", "member %s cannot end %s: %v", o.s.id, o.part, err)
	}
}
