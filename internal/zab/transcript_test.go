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
// are commands, lines with # comments; what stands below a command is what it
// brought about: packets as they arrive (pings are left out), happenings in
// the words of the log. -update writes them anew.
//
//	ensemble VOTERS OBSERVERS [plain] [short]  plain: no extensions; short: epochs of 3 transactions
//	lead N                 N won an election
//	join N L               N connects to L
//	propose N [TIMES]
//	sync N
//	touch N SESSION
//	settle                 everything that can happen without time passing
//	deliver N L            the next packet from N to L
//	disk N [TIMES]         the log writer of N does the next duty
//	part N                 N ends its role, what is on its way is lost
//	crash N [KEEP], start N, wipe N
//	pass MS
//	state
func TestTranscripts(t *testing.T) { transcript.Play(t, play) }

// play runs the commands of a transcript and returns it with what they brought about.
func play(t *testing.T, text string) []byte {
	w := newWorld(1, 3, 0)
	var out bytes.Buffer
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			out.WriteString(line)
			continue
		}
		if !strings.HasPrefix(line, ">") {
			continue
		}
		out.WriteString(line)
		f := strings.Fields(line[1:])
		if f[0] == "ensemble" {
			w = newEnsemble(f[1:])
			continue
		}
		w.story = nil
		w.command(f)
		for _, s := range w.story {
			fmt.Fprintln(&out, s)
		}
		if w.wrong != "" {
			t.Fatalf("%s: %s", strings.TrimSpace(line), w.wrong)
		}
	}
	return out.Bytes()
}

func newEnsemble(f []string) *world {
	voters, _ := strconv.Atoi(f[0])
	observers, _ := strconv.Atoi(f[1])
	w := newWorld(1, voters, observers)
	for _, word := range f[2:] {
		switch word {
		case "plain":
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
	if f[0] != "pass" {
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
		w.step(n, Touched{[]peerwire.TouchedSession{{Session: wire.SessionID(arg(2, 1)), TimeoutMS: 4000}}, n.confirmed + 1})
	case "settle":
		w.settle()
	case "deliver":
		w.deliverBetween(n, w.nodes[arg(2, 1)-1])
	case "disk":
		for range arg(2, 1) {
			w.diskStep(n)
		}
	case "part":
		w.part(n)
	case "crash":
		w.crash(n, arg(2, 0))
	case "start":
		w.start(n)
	case "wipe":
		n.disk = disk{}
	case "pass":
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
