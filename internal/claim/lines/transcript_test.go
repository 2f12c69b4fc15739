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

// TestTranscripts plays each conversation of testdata against the model. Lines
// that begin with > are commands, and lines that begin with # are comments.
// Below a command are its effects. -update writes the transcripts again.
//
//	join NAMING         a new candidate, not connected
//	join NAMING RULE N  a new candidate for a lock (exclusive, shared), or for one of N leases
//	campaign C          a new bid of a candidate
//	try C               a new bid, which does not wait for other bids
//	connect C [R]       attach to replica R
//	cut C               end the connection; nothing on its way arrives
//	serve C [N]         the server carries out operations; their replies have not arrived yet
//	deliver C           the candidate gets what has arrived
//	settle              everything that can happen without time passing
//	heal                90 s without faults
//	pass D              time passes for all candidates, and none of them pings
//	ping C              an answered ping
//	suspend C D         time passes as with pass, but C's monotonic clock stops
//	resign C, tick C, close C
//	expire C            the server ends C's session, if its timeout has passed
//	put PATH DATA [C]   create or replace a znode: persistent, or an ephemeral of C's session or of a new one
//	counter N           the parent's counter of creates
//	delete PATH
//	refuse CODE         the next operation is answered with this code
//	state C, tree
func TestTranscripts(t *testing.T) { transcript.Play(t, play) }

// play begins a transcript, and returns the function that runs a command.
func play(t *testing.T, out *bytes.Buffer) func([]string) {
	w := newWorld(func(int) int { return 0 }, broken{})
	w.manual = true
	return func(words []string) {
		w.trace = nil
		if err := w.command(words); err != nil {
			t.Fatalf("%s: %v", strings.Join(words, " "), err)
		}
		w.check()
		for _, s := range w.trace {
			fmt.Fprintln(out, strings.TrimRight(s, " "))
		}
		if w.wrong != "" {
			t.Fatalf("%s: %s", strings.Join(words, " "), w.wrong)
		}
	}
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

// put creates or replaces a znode. owner is empty for a persistent znode, the number of a candidate for an
// ephemeral of its session, or any other text for an ephemeral of a new session.
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
