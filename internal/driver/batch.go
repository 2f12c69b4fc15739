package driver

import (
	"slices"

	"bellwether/internal/replica"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// Core is what a Batch needs of a replica. *replica.Replica is one.
type Core interface {
	Step(now replica.Time, e replica.Event)
	Ready() replica.Ready
	Unsettled() bool
	Ending(id wire.SessionID) bool
}

// Stage is what the loop does next in a batch.
type Stage uint8

// The stages of a batch. Step is repeated for each event. Then come Tick if time has
// passed, Stepped, and Log to Connect, which are repeated until the replica has
// nothing more to hand out. Log to Connect also come directly before and directly after
// an event that reports a refusal of the disk.
const (
	// Rest: the batch is over.
	Rest Stage = iota
	// Step: step the event with the number Index.
	Step
	// Tick: call Hear for each connection with a session, then call Tick.
	Tick
	// Stepped: everything in this batch is stepped, a Wake included if it was due.
	// Nothing is to be done; the loop may look at what the steps have come to.
	Stepped
	// Log: push Ready.Duties to the journal. This comes before Send, so that the
	// disk works while packets travel. It does not wait for the disk: a message that
	// promises durability (ACK) is in the Ready of a later batch, the one that steps
	// the journal's answer.
	Log
	// Send: send Ready.Votes, and those messages of Ready.Send that Hold does not
	// keep. Nothing in them depends on what Apply does.
	Send
	// Apply: call the replica's Next until it returns false, and carry out each
	// Output before the next call. The tree queues the watch events of a
	// transaction before Next returns the reply to it.
	Apply
	// SendHeld: send Held, in order. The snapshots among them are of the tree after
	// Apply, so they contain everything that the replica has committed.
	SendHeld
	// Connect: end the links in Ready.Close, behind everything that was sent to
	// them; then do what Ready.ReadLog, Listen and Dial ask for, and report
	// Ready.Happenings.
	Connect
)

// String names the stage.
func (s Stage) String() string {
	return [...]string{"rest", "step", "tick", "stepped", "log", "send", "apply", "send held", "connect"}[s]
}

// Batch says in which order the loop carries out a batch of events. The loop calls
// Begin, then Next until it returns Rest, and does what each Stage says. All methods
// belong to the loop. The loop may pause between two calls of Next.
type Batch struct {
	core    Core
	refuses func(i int) bool

	// Ready is what the replica has handed out last. It is valid from Log to Connect.
	Ready replica.Ready

	stage   Stage
	now     replica.Time
	events  int  // of this batch
	next    int  // the event to step next; 0 <= next <= events
	refused bool // the event before next reports a refusal
	settled bool // everything that came of the events before next is carried out
	ticked  bool // a Tick is to come
	ending  bool // Stepped has come: after Connect the batch is over
	wake    int64

	// held are the messages that wait for SendHeld. The first one of each link is a
	// snapshot. It is empty outside of Send to SendHeld.
	held []zab.Message

	touches []replica.Touch
	sealed  []sealed
}

// NewBatch returns the batches of a replica. refuses reports whether an event of the
// batch that is under way reports a refusal of the disk (see Refuses).
func NewBatch(core Core, refuses func(i int) bool) *Batch {
	return &Batch{core: core, refuses: refuses}
}

// Refuses reports whether an event says that the disk has refused a duty. The
// Journal accepts no duties until the replica has been told of it: duties that came
// of earlier events must reach the Journal before that (they are void), duties that
// come of this event after it (they are not). So a Batch settles before and after it.
func Refuses(e replica.Event) bool {
	z, ok := e.(replica.Zab)
	if !ok {
		return false
	}
	_, ok = z.Event.(zab.Refused)
	return ok
}

// Begin begins a batch of some events. Now is read after the events were taken: a
// ping in the batch is then never newer than now, which bounds the lease. ticked asks
// for a Tick behind them. The batch before must be over.
func (b *Batch) Begin(now replica.Time, events int, ticked bool) {
	b.now, b.events, b.next, b.ticked = now, events, 0, ticked
	b.refused, b.settled, b.ending, b.stage = false, false, false, Step
}

// Again goes back from Rest to Log: the loop has stepped more events by itself.
func (b *Batch) Again() { b.stage = Stepped }

// Now is the time of the batch.
func (b *Batch) Now() replica.Time { return b.now }

// Index is the number of the event that Step means, from 0 on.
func (b *Batch) Index() int { return b.next - 1 }

// WakeAt is the Mono time at which a batch must begin at the latest. It is valid at Rest.
func (b *Batch) WakeAt() int64 { return b.wake }

// Next says what to do next. What it said before has been done.
func (b *Batch) Next() Stage {
	switch b.stage {
	case Rest:
		return Rest
	case Step, Tick:
		b.stage = b.input()
	case Stepped:
		b.stage = b.settle()
	case Connect:
		b.wake = b.Ready.Wake
		switch {
		case b.core.Unsettled():
			b.stage = b.settle()
		case b.ending:
			b.stage = Rest
		default:
			b.settled = true
			b.stage = b.input()
		}
	default:
		if b.stage == SendHeld {
			clear(b.held)
			b.held = b.held[:0]
		}
		b.stage++
	}
	return b.stage
}

// input finds the next event to step, or what comes instead.
func (b *Batch) input() Stage {
	switch {
	case b.refused:
		b.refused = false
		return b.settle()
	case b.next < b.events:
		refused := b.refuses(b.next)
		if refused && !b.settled {
			return b.settle()
		}
		b.refused, b.settled = refused, false
		b.next++
		return Step
	case b.ticked:
		b.ticked = false
		return Tick
	}
	if b.now.Mono >= b.wake {
		b.core.Step(b.now, replica.Wake{})
	}
	b.ending = true
	return Stepped
}

// settle takes what the replica hands out.
func (b *Batch) settle() Stage {
	b.Ready = b.core.Ready()
	return Log
}

// Hold keeps a message for SendHeld and reports that: a snapshot, because it is of
// the tree after Apply, and everything behind a snapshot on its link, because a link
// keeps its order. It is called for all messages to other servers in order, those of
// replica.Beat included.
func (b *Batch) Hold(m zab.Message) bool {
	if !m.Snapshot && !slices.ContainsFunc(b.held, func(o zab.Message) bool { return o.Link == m.Link }) {
		return false
	}
	b.held = append(b.held, m)
	return true
}

// Held are the messages that SendHeld means.
func (b *Batch) Held() []zab.Message { return b.held }
