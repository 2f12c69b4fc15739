package election

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/transcript"
	"bellwether/wire"
)

// TestTranscripts plays each conversation of testdata. Lines that begin with >
// are commands, and lines that begin with # are comments. Below a command are its
// effects. -update writes the transcripts again.
//
//	add-servers VOTERS [OBSERVERS [GROUPS [WEIGHTS]]]   1,2,3 4 1:2/3:4 4=0; not started
//	members VERSION ID VOTERS [OBSERVERS]   what a server has as membership when it starts,
//	                    or from now on if it runs; ID - for all
//	history ID ZXID EPOCH   what a server has on disk
//	measured            connections measure their round trip as 1 ms
//	start ID...         start processes, which look for a leader
//	look ID WHY         look again
//	deliver [FROM TO]   the oldest message between two; without them, all that is under way
//	tick MS             time passes; deadlines fire, nothing is delivered
//	run MS              time passes with deliveries, and leaders are established
//	crash ID            the process ends; others see a reset or are refused
//	cut A B, heal       silence between two; the end of all silence
//	sever A B           the connection is lost unnoticed; the next message makes another
//	inject TO FROM STATE LEADER ZXID ROUND EPOCH [first]   a message that FROM did not send
//	linked ID, joined ID, established ID EPOCH
//	appointed ID LEADER ZXID
//	transferred ID FROM LEADER ZXID EPOCH [HELD]
//	state, record ID, explain ID
func TestTranscripts(t *testing.T) { transcript.Play(t, play) }

// play begins a transcript, and returns the function that runs a command.
func play(t *testing.T, out *bytes.Buffer) func([]string) {
	w := newWorld()
	return func(words []string) {
		w.output = nil
		if err := w.command(words); err != nil {
			t.Fatalf("%s: %v", strings.Join(words, " "), err)
		}
		for _, s := range w.output {
			fmt.Fprintln(out, s)
		}
		for _, s := range w.wrong {
			t.Errorf("%s: %s", strings.Join(words, " "), s)
		}
		w.wrong = nil
	}
}

// command runs one command.
func (w *world) command(f []string) error {
	arg := func(i int) string {
		if i < len(f) {
			return f[i]
		}
		return ""
	}
	id := sid(arg(1))
	s := w.servers[id]
	switch f[0] {
	case "add-servers":
		m := membership(0, sids(arg(1)), sids(arg(2)), groupsOf(arg(3)), weightsOf(arg(4)))
		for _, id := range append(sids(arg(1)), sids(arg(2))...) {
			w.add(id, m)
		}
		return nil
	case "members":
		return w.setMembers(arg(1), arg(2), membership(number(arg(1)), sids(arg(3)), sids(arg(4)), nil, nil))
	case "measured":
		w.trips = true
		return nil
	case "deliver":
		if len(f) == 1 {
			w.settle()
		} else if !w.deliver(id, sid(arg(2))) {
			return fmt.Errorf("nothing is under way")
		}
		return nil
	case "tick":
		w.pass(number(arg(1)))
		return nil
	case "run":
		w.converge(number(arg(1)))
		return nil
	case "start":
		for _, a := range f[1:] {
			w.start(sid(a))
		}
		return nil
	case "cut":
		w.partition(id, sid(arg(2)))
		return nil
	case "sever":
		w.sever(id, sid(arg(2)))
		return nil
	case "heal":
		w.heal()
		return nil
	case "state":
		w.output = append(w.output, strings.TrimRight(w.states(), "\n"))
		return nil
	}
	if s == nil {
		return fmt.Errorf("no command %s, or no server %s", f[0], arg(1))
	}
	return w.serverCommand(s, f[0], arg)
}

// serverCommand runs a command about one server.
func (w *world) serverCommand(s *server, name string, arg func(int) string) error {
	switch name {
	case "history":
		s.look.Zxid, s.look.Epoch = wire.Zxid(number(arg(2))), wire.Epoch(number(arg(3)))
	case "look":
		w.lookAgain(s, strings.ReplaceAll(arg(2), "_", " "))
	case "crash":
		w.crash(s.id)
	case "inject":
		n := peerwire.Notification{Leader: sid(arg(4)), Zxid: wire.Zxid(number(arg(5))), ElectionEpoch: wire.Epoch(number(arg(6))),
			PeerEpoch: wire.Epoch(number(arg(7))), Version: peerwire.NotificationPlain}
		for n.State = peerwire.Looking; n.State.String() != arg(3); n.State++ {
			if n.State > peerwire.Observing {
				return fmt.Errorf("no state %s", arg(3))
			}
		}
		if from := w.servers[sid(arg(2))]; from != nil {
			w.note(from, n.ElectionEpoch, voteOf(&n), true)
		}
		w.step(s, Heard{From: sid(arg(2)), First: arg(8) == "first", Notification: n})
	case "linked":
		w.step(s, Linked{})
	case "joined":
		w.step(s, Joined{})
	case "established":
		w.step(s, Established{wire.Epoch(number(arg(2)))})
	case "appointed":
		w.step(s, Appointed{sid(arg(2)), wire.Zxid(number(arg(3)))})
	case "transferred":
		w.step(s, Transferred{sid(arg(2)), sid(arg(3)), wire.Zxid(number(arg(4))), wire.Epoch(number(arg(5))), number(arg(6))})
	case "record":
		for _, r := range s.e.(*Election).Records() {
			w.output = append(w.output, r.String())
		}
	case "explain":
		records := s.e.(*Election).Records()
		w.output = append(w.output, strings.TrimRight(records[len(records)-1].Explain(), "\n"))
	default:
		return fmt.Errorf("no command %s", name)
	}
	return nil
}

// setMembers gives one server or all another membership.
func (w *world) setMembers(version, id string, m *ensemble.Membership) error {
	for _, s := range w.servers {
		if id == "-" || s.id == sid(id) {
			s.members = m
		}
	}
	for _, one := range w.ids() {
		if s := w.servers[one]; s.members == m && s.alive {
			w.step(s, Configured{Committed: m})
		}
	}
	return nil
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 0, 64)
	return n
}

func sid(text string) ensemble.ServerID {
	if text == "nobody" {
		return peerwire.NoServer
	}
	return ensemble.ServerID(number(text))
}

func sids(text string) []ensemble.ServerID {
	var out []ensemble.ServerID
	for _, f := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '-' }) {
		out = append(out, sid(f))
	}
	return out
}

func groupsOf(text string) map[ensemble.GroupID][]ensemble.ServerID {
	if text == "" {
		return nil
	}
	out := map[ensemble.GroupID][]ensemble.ServerID{}
	for i, g := range strings.Split(text, "/") {
		for _, id := range strings.Split(g, ":") {
			out[ensemble.GroupID(i+1)] = append(out[ensemble.GroupID(i+1)], ensemble.ServerID(number(id)))
		}
	}
	return out
}

func weightsOf(text string) map[ensemble.ServerID]int64 {
	out := map[ensemble.ServerID]int64{}
	for _, f := range strings.Split(text, ",") {
		if id, w, ok := strings.Cut(f, "="); ok {
			out[ensemble.ServerID(number(id))] = number(w)
		}
	}
	return out
}
