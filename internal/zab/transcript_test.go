package zab

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"bellwether/internal/peerwire"
	"bellwether/internal/transcript"
	"bellwether/wire"
)

// TestTranscripts plays each conversation of testdata. Lines that begin with >
// are commands, and lines that begin with # are comments. Below a command are its
// effects: packets as they arrive (without pings), and observations as the log
// prints them. -update writes the transcripts again.
//
//	ensemble VOTERS OBSERVERS [compatible] [short]  compatible: no extensions; short: epochs of 3 transactions
//	lead N                 N has won an election
//	join N L               N connects to L
//	propose N [TIMES]
//	sync N
//	touch N SESSION
//	settle                 everything happens that needs no time
//	deliver N L            the next packet from N to L
//	disk N [TIMES]         the log writer of N does the next duty
//	end-role N             N ends its role; packets on their way are lost
//	crash N [KEEP], start N, wipe N
//	tick MS                time passes
//	state
func TestTranscripts(t *testing.T) { transcript.Play(t, play) }

// play begins a transcript, and returns the function that runs a command.
func play(t *testing.T, out *bytes.Buffer) func([]string) {
	w := newWorld(1, 3, 0)
	return func(words []string) {
		if words[0] == "ensemble" {
			w = newEnsemble(words[1:])
			return
		}
		w.output = nil
		w.command(words)
		for _, s := range w.output {
			fmt.Fprintln(out, s)
		}
		if w.wrong != "" {
			t.Fatalf("%s: %s", strings.Join(words, " "), w.wrong)
		}
	}
}

func newEnsemble(f []string) *world {
	voters, _ := strconv.Atoi(f[0])
	observers, _ := strconv.Atoi(f[1])
	w := newWorld(1, voters, observers)
	for _, word := range f[2:] {
		switch word {
		case "compatible":
			w.plain = true
		case "short":
			w.keep = func(o *LeaderOptions) { o.CounterMax = 3 }
		}
	}
	w.trace = true
	return w
}

func (w *world) command(f []string) {
	arg := func(i, otherwise int) int {
		if i >= len(f) {
			return otherwise
		}
		n, _ := strconv.Atoi(f[i])
		return n
	}
	n := w.nodes[0]
	if f[0] != "tick" {
		n = w.nodes[arg(1, 1)-1]
	}
	switch f[0] {
	case "lead":
		w.lead(n)
	case "join":
		w.join(n, w.nodes[arg(2, 1)-1])
	case "propose":
		for range arg(2, 1) {
			w.propose(n)
		}
	case "sync":
		w.sync(n)
	case "touch":
		w.step(n, Touched{Sessions: []peerwire.TouchedSession{{Session: wire.SessionID(arg(2, 1)), TimeoutMS: 4000}}, Token: n.confirmed + 1})
	case "settle":
		w.settle()
	case "deliver":
		w.deliverBetween(n, w.nodes[arg(2, 1)-1])
	case "disk":
		for range arg(2, 1) {
			w.diskStep(n)
		}
	case "end-role":
		w.part(n)
	case "crash":
		w.crash(n, arg(2, 0))
	case "start":
		w.start(n)
	case "wipe":
		n.disk = disk{}
	case "tick":
		w.pass(int64(arg(1, 0)))
	case "state":
		w.state()
	}
}

func (w *world) deliverBetween(from, to *node) {
	for _, c := range w.links {
		if c.lrn == from && c.ldr == to {
			w.deliver(c, true)
			return
		}
		if c.ldr == from && c.lrn == to {
			w.deliver(c, false)
			return
		}
	}
}

// state shows every server.
func (w *world) state() {
	for _, n := range w.nodes {
		role := "looks"
		switch {
		case !n.up:
			role = "is down"
		case n.leader != nil:
			role = "leads"
		case n.learner != nil:
			role = fmt.Sprintf("follows %d", n.under)
		}
		if n.serving {
			role += ", serves"
		}
		w.tell(n, "%s; epochs %d/%d, disk %s to %s, shown %d, syncs %d, confirmed %d", role, n.disk.accepted, n.disk.current,
			dotted(n.disk.base), dotted(n.disk.durable()), n.shown, len(n.syncs), n.confirmed)
	}
}
