package driver

import (
	"slices"

	"bellwether/internal/replica"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// Core is the part of a replica that a Batch uses. *replica.Replica implements it.
type Core interface {
	Step(now replica.Time, e replica.Event)
	Ready() replica.Ready
	Unsettled() bool
	Ending(id wire.SessionID) bool
}

// Stage is the step that the loop takes next in a batch.
type Stage uint8

// The stages of a batch. Step is repeated for each event. Then come Tick if time has
// passed, AllStepped, and Log to Connect, which are repeated until the replica has
// nothing more to hand out. Log to Connect also come directly before and directly after
// an event that reports a refusal of the disk.
const (
	// BatchDone: the batch is over.
	BatchDone Stage = iota
	// Step: step the event with the number Index.
	Step
	// Tick: call Hear for each connection with a session, then call Tick.
	Tick
	// AllStepped: everything in this batch is stepped, including a Wake if one was due. The loop need not
	// do anything, but may use the state that the steps have led to.
	AllStepped
	// Log: push Ready.Duties to the journal. This comes before Send, so that the disk works while packets
	// travel. The loop does not wait for the disk: a message that promises durability (ACK) is in the
	// Ready of a later batch, in which the journal's answer is stepped.
	Log
	// Send: send Ready.Votes, and those messages of Ready.Send that Hold does not
	// keep. Nothing in them depends on what Apply does.
	Send
	// Apply: call the replica's Next until it returns false, and carry out each
	// Output before the next call. The tree queues the watch events of a
	// transaction before Next returns the reply to it.
	Apply
	// SendHeld: send Held, in order. The snapshots among these messages are made of the tree after Apply,
	// so they contain everything that the replica has committed.
	SendHeld
	// Connect: end the links in Ready.Close, after everything that was sent to them. Then do what
	// Ready.ReadLog, Listen and Dial request, and report Ready.Observations.
	Connect
)

// String returns the name of the stage.
func (s Stage) String() string {
	return [...]string{"rest", "step", "tick", "stepped", "log", "send", "apply", "send held", "connect"}[s]
}

// Batch says in which order the loop carries out a batch of events. The loop calls
// Begin, then Next until it returns BatchDone, and does what each Stage says. All methods
// belong to the loop. The loop may pause between two calls of Next.
type Batch struct {
	core    Core
	refuses func(i int) bool

	// Ready is the replica's last Ready. It is valid from Log to Connect.
	Ready replica.Ready

	stage   Stage
	now     replica.Time
	events  int  // number of events of this batch
	next    int  // the event to step next; 0 <= next <= events
	refused bool // the event before next reports a refusal
	settled bool // everything that follows from the events before next is carried out
	ticked  bool // a Tick is still to come
	ending  bool // the stage AllStepped was reached: the batch ends after the stage Connect
	wake    int64

	// held are the messages that wait for SendHeld. The first one of each link is a snapshot. held is
	// empty except from Send to SendHeld.
	held []zab.Message

	touches []replica.Touch
	sealed  []sealed
}

// NewBatch returns a Batch for a replica. refuses reports whether an event of the present batch reports a
// refusal of the disk (see Refuses).
func NewBatch(core Core, refuses func(i int) bool) *Batch {
	return &Batch{core: core, refuses: refuses}
}

// Refuses reports whether an event says that the disk has refused a duty. The Journal accepts no duties
// until the replica has been told about the refusal. Duties that follow from earlier events must reach
// the Journal before that, because they are void. Duties that follow from this event must reach it
// afterwards, because they are not. So a Batch settles before and after this event.
func Refuses(e replica.Event) bool {
	z, ok := e.(replica.Zab)
	if !ok {
		return false
	}
	_, ok = z.Event.(zab.Refused)
	return ok
}

// Begin begins a batch of some events. The previous batch must be over. The caller reads now after it has
// taken the events: a ping in the batch is then never newer than now, which bounds the lease. ticked asks
// for a Tick after the events.
func (b *Batch) Begin(now replica.Time, events int, ticked bool) {
	b.now, b.events, b.next, b.ticked = now, events, 0, ticked
	b.refused, b.settled, b.ending, b.stage = false, false, false, Step
}

// Repeat goes back from BatchDone to Log. The loop calls it after it has stepped more events itself.
func (b *Batch) Repeat() { b.stage = AllStepped }

// Now returns the time of the batch.
func (b *Batch) Now() replica.Time { return b.now }

// Index returns the number of the event that the stage Step is about, counted from 0.
func (b *Batch) Index() int { return b.next - 1 }

// WakeAt returns the Mono time at which a batch must begin at the latest. It is valid at BatchDone.
func (b *Batch) WakeAt() int64 { return b.wake }

// Next returns the next stage. The caller has done everything that the previous stage requires.
func (b *Batch) Next() Stage {
	switch b.stage {
	case BatchDone:
		return BatchDone
	case Step, Tick:
		b.stage = b.input()
	case AllStepped:
		b.stage = b.settle()
	case Connect:
		b.wake = b.Ready.Wake
		switch {
		case b.core.Unsettled():
			b.stage = b.settle()
		case b.ending:
			b.stage = BatchDone
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

// input returns the stage that steps the next event or, after the last event, the stage that follows.
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
	return AllStepped
}

// settle takes the replica's next Ready.
func (b *Batch) settle() Stage {
	b.Ready = b.core.Ready()
	return Log
}

// Hold reports whether a message must wait for SendHeld, and keeps it if so. A snapshot must wait because
// it is made of the tree after Apply. Everything after a snapshot on the same link must wait because a
// link keeps its order. The loop calls Hold for all messages to other servers in order, including those
// of replica.Heartbeat.
func (b *Batch) Hold(m zab.Message) bool {
	if !m.Snapshot && !slices.ContainsFunc(b.held, func(o zab.Message) bool { return o.Link == m.Link }) {
		return false
	}
	b.held = append(b.held, m)
	return true
}

// Held returns the messages for SendHeld.
func (b *Batch) Held() []zab.Message { return b.held }
