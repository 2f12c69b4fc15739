package driver

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"bellwether/internal/peerwire"
	"bellwether/internal/replica"
	"bellwether/internal/transcript"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// TestTranscripts plays the transcripts of testdata: the stages of batches, and the actions of a journal.
func TestTranscripts(t *testing.T) {
	transcript.Play(t, func(t *testing.T, out *bytes.Buffer) func([]string) {
		p := &player{out: out, core: &fakeCore{out: out}}
		p.batch = NewBatch(p.core, func(i int) bool { return strings.HasPrefix(p.events[i], "refused") })
		return p.command
	})
}

// player has a journal, and a batch over a core that plays given Readys.
type player struct {
	out     *bytes.Buffer
	core    *fakeCore
	batch   *Batch
	events  []string
	journal Journal
	action  Action
}

// fakeCore is a Core that returns given Readys, and prints what is stepped.
type fakeCore struct {
	out    *bytes.Buffer
	readys []replica.Ready
	ends   map[wire.SessionID]bool
}

func (c *fakeCore) Step(_ replica.Time, e replica.Event) {
	switch e := e.(type) {
	case replica.Touched:
		fmt.Fprintf(c.out, "    replica: touched %v\n", e.Sessions)
	default:
		fmt.Fprintf(c.out, "    replica: %s\n", strings.TrimPrefix(fmt.Sprintf("%T", e), "replica."))
	}
}

func (c *fakeCore) Ready() (rd replica.Ready) {
	rd.Wake = replica.Never
	if len(c.readys) > 0 {
		rd, c.readys = c.readys[0], c.readys[1:]
	}
	return rd
}

func (c *fakeCore) Unsettled() bool { return len(c.readys) > 0 }

func (c *fakeCore) Ending(id wire.SessionID) bool { return c.ends[id] }

func (p *player) command(words []string) {
	switch name, args := words[0], words[1:]; name {
	case "ready":
		p.core.readys = append(p.core.readys, ready(args))
	case "batch":
		p.begin(args)
		p.run()
	case "repeat":
		p.batch.Repeat()
		p.run()
	default:
		p.journalCommand(name, args)
	}
}

// ready parses a Ready from words such as "duty send=1 snap=1 wake=50".
func ready(args []string) replica.Ready {
	rd := replica.Ready{Wake: replica.Never}
	for _, a := range args {
		key, value, _ := strings.Cut(a, "=")
		n, _ := strconv.ParseInt(value, 10, 64)
		switch key {
		case "duty":
			rd.Duties = append(rd.Duties, replica.Duty{Sync: true})
		case "send", "snap":
			packet := &peerwire.QuorumPacket{Type: peerwire.PacketProposal, Zxid: wire.Zxid(len(rd.Send) + 1)}
			rd.Send = append(rd.Send, zab.Message{Link: zab.LinkID(n), Snapshot: key == "snap", Packet: packet})
		case "close":
			rd.Close = append(rd.Close, zab.LinkID(n))
		case "wake":
			rd.Wake = n
		}
	}
	return rd
}

// begin begins a batch of the named events at a given time.
func (p *player) begin(args []string) {
	var now replica.Time
	ticked := false
	p.events = nil
	for _, a := range args {
		if at, ok := strings.CutPrefix(a, "now="); ok {
			now.Mono, _ = strconv.ParseInt(at, 10, 64)
		} else if a == "tick" {
			ticked = true
		} else {
			p.events = append(p.events, a)
		}
	}
	p.batch.Begin(now, len(p.events), ticked)
}

// run prints the stages of a batch until it is over.
func (p *player) run() {
	for b := p.batch; ; {
		stage := b.Next()
		if stage == BatchDone {
			return
		}
		fmt.Fprintf(p.out, "    %v", stage)
		switch stage {
		case Step:
			fmt.Fprintf(p.out, " %s", p.events[b.Index()])
		case Log:
			fmt.Fprintf(p.out, " %d", len(b.Ready.Duties))
		case Send:
			for _, m := range b.Ready.Send {
				if !b.Hold(m) {
					fmt.Fprintf(p.out, " %d on link %d,", int64(m.Packet.Zxid), m.Link)
				}
			}
		case SendHeld:
			for _, m := range b.Held() {
				fmt.Fprintf(p.out, " %d on link %d,", int64(m.Packet.Zxid), m.Link)
			}
		case Connect:
			for _, l := range b.Ready.Close {
				fmt.Fprintf(p.out, " close link %d", l)
			}
		}
		p.out.WriteString("\n")
		if stage == Tick {
			b.Tick()
		}
	}
}
