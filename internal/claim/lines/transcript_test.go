package lines

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/transcript"
	"bellwether/wire"
)

// TestTranscripts plays each conversation of testdata against the model.
// Lines that begin with > are commands, lines with # comments; what stands
// below a command is what it brought about. -update writes them anew.
//
//	join NAMING         a new candidate, not connected
//	join NAMING RULE N  one for a lock (exclusive, shared), or for one of N leases
//	campaign C          a new bid of a candidate
//	try C               the same, which does not wait for others
//	connect C [R]       attach to replica R
//	cut C               end the connection; nothing on its way arrives
//	serve C [N]         the server carries out operations, their replies stay on the way
//	deliver C           the candidate gets what has arrived
//	settle              everything that can happen without time passing
//	heal                90 s without faults
//	pass D              time passes for all, nobody pings
//	ping C              an answered ping
//	suspend C D         the same, but C's monotonic clock stops
//	resign C, tick C, close C
//	expire C            the server ends C's session, if its time has come
//	put PATH DATA [C]   create or replace a znode, an ephemeral of C's session or of another
//	counter N           the parent's counter of creates
//	delete PATH
//	refuse CODE         the next operation is answered with this code
//	state C, tree
func TestTranscripts(t *testing.T) { transcript.Play(t, play) }

// play runs the commands of a transcript and returns it with what they brought about.
func play(t *testing.T, text string) []byte {
	w := newWorld(func(int) int { return 0 }, broken{})
	w.manual = true
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
		w.story = nil
		if err := w.command(strings.Fields(line[1:])); err != nil {
			t.Fatalf("%s: %v", strings.TrimSpace(line), err)
		}
		w.check()
		for _, s := range w.story {
			fmt.Fprintln(&out, strings.TrimRight(s, " "))
		}
	}
	if w.wrong != "" {
		t.Errorf("%s", w.wrong)
	}
	return out.Bytes()
}

func (w *world) command(f []string) error {
	arg := func(i int) string {
		if i < len(f) {
			return f[i]
		}
		return ""
	}
	n, _ := strconv.Atoi(arg(1))
	var c *candidate
	if n >= 0 && n < len(w.candidates) {
		c = w.candidates[n]
	}
	d, _ := time.ParseDuration(f[len(f)-1])
	switch f[0] {
	case "join":
		i := slices.Index(claim.NamingNames[:], arg(1))
		leases, _ := strconv.Atoi(arg(3))
		w.joinAs(claim.Naming(i), ruleNames[arg(2)], leases).rate = 1
	case "campaign":
		w.campaign(c)
	case "try":
		w.bid(c, true)
	case "connect":
		r, _ := strconv.Atoi(arg(2))
		w.connect(c, w.replicas[r])
		w.drain(c)
	case "cut":
		w.cut(c)
		w.drain(c)
	case "serve":
		ops, _ := strconv.Atoi(arg(2))
		for range max(ops, 1) {
			w.serve(c)
		}
	case "deliver":
		w.drain(c)
	case "settle":
		w.settle()
	case "heal":
		w.manual = false
		w.heal()
		w.checkProgress()
		w.manual = true
	case "pass":
		w.now += d
	case "suspend":
		w.now += d
		c.suspended += d
	case "ping":
		w.ping(c)
		w.drain(c)
	case "resign":
		w.step(c, claim.Resign{})
	case "tick":
		w.step(c, claim.Tick{})
	case "close":
		w.step(c, claim.Closed{})
	case "expire":
		w.expire(w.sessions[c.session])
	case "put":
		w.put(arg(1), arg(2), arg(3))
	case "counter":
		w.counts[modelParent] = int32(n)
	case "delete":
		w.write(0, claim.Op{Kind: claim.OpDelete, Path: arg(1), Version: claim.AnyVersion})
	case "refuse":
		w.refuse = wire.Code(n)
	case "state":
		w.tellf("%+v", c.e.State())
	case "tree":
		for _, p := range slices.Sorted(maps.Keys(w.leader)) {
			w.tellf("%s owner %v czxid %v: %q", p, w.leader[p].Owner, w.leader[p].Czxid, w.leader[p].Data)
		}
	default:
		return fmt.Errorf("no command %s", f[0])
	}
	return nil
}

var ruleNames = map[string]Rule{"": Leadership, "exclusive": Exclusive, "shared": Shared, "leases": Leases}

func (w *world) drain(c *candidate) {
	for len(c.inbox) > 0 {
		w.deliver(c)
	}
}

// put sets a znode as an operator would, or an ephemeral of a candidate's session.
func (w *world) put(p, data, owner string) {
	var s wire.SessionID
	if i, err := strconv.Atoi(owner); err == nil {
		s = w.candidates[i].session
	} else if owner != "" {
		s = w.newSession().id
	}
	if w.leader[p] != nil {
		w.write(0, claim.Op{Kind: claim.OpDelete, Path: p, Version: claim.AnyVersion})
	}
	w.parents(p[:strings.LastIndexByte(p, '/')])
	w.write(s, claim.Op{Kind: claim.OpCreate, Path: p, Data: []byte(strings.ReplaceAll(data, "_", " "))})
}
