package zab

import (
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"bellwether/internal/record"
	"bellwether/wire"
)

// zx parses a dotted zxid: 1.5 is epoch 1, counter 5.
func zx(s string) wire.Zxid {
	if s == "0" {
		return 0
	}
	e, c, _ := strings.Cut(s, ".")
	return wire.MakeZxid(wire.Epoch(num(e)), uint32(num(c)))
}

func num(s string) int {
	n := 0
	for _, r := range s {
		n = n*10 + int(r-'0')
	}
	return n
}

func txns(zxids string) []*record.Txn {
	var out []*record.Txn
	for _, s := range strings.Fields(zxids) {
		out = append(out, &record.Txn{TxnHeader: record.TxnHeader{Zxid: zx(s), Type: wire.OpError}, Body: &record.ErrorTxn{}})
	}
	return out
}

// short prints a plan with zxids as the specification writes them.
func short(p plan) string {
	if p.ask {
		return "ask"
	}
	s := p.how.String() + "(" + dotted(p.zxid) + ")"
	for _, t := range p.txns {
		s += " " + dotted(t.Zxid)
	}
	return s
}

func dotted(z wire.Zxid) string {
	if z == 0 || z == -1 {
		return strconv.Itoa(int(z))
	}
	digits := func(n uint64) (s string) {
		for ; n > 0 || s == ""; n /= 10 {
			s = string(rune('0'+n%10)) + s
		}
		return s
	}
	return digits(uint64(z.Epoch())) + "." + digits(uint64(z.Counter()))
}

// TestChoiceOfSynchronisation contains the examples of the specification and of
// ZooKeeper's tests.
func TestChoiceOfSynchronisation(t *testing.T) {
	for _, c := range []struct {
		name, log, newest, last, peer string
		disk                          string // transactions in the log on disk; empty: the leader does not read the disk
		want                          string
	}{
		{"equal", "1.5 1.6 1.7", "1.7", "1.7", "1.7", "", "DIFF(1.7)"},
		{"behind", "1.5 1.6 1.7", "1.7", "1.7", "1.5", "", "DIFF(1.7) 1.6 1.7"},
		{"has what was never committed here", "1.5 1.7", "1.7", "1.7", "1.6", "", "TRUNC(1.5) 1.7"},
		{"ahead", "1.5 1.6 1.7", "1.7", "1.7", "1.8", "", "TRUNC(1.7)"},
		{"synchronised in an epoch before its first", "1.9 2.1", "2.1", "2.1", "2.0", "", "DIFF(2.1) 2.1"},
		{"of an epoch not known here", "1.5 1.6 1.7", "1.7", "1.7", "2.0", "", "SNAP(1.7)"},
		{"too far behind", "1.5 1.6 1.7", "1.7", "1.7", "1.4", "", "SNAP(1.7)"},
		{"far behind, the disk helps", "1.5 1.6 1.7", "1.7", "1.7", "1.4", "1.2 1.3 1.4 1.5 1.6 1.7", "DIFF(1.7) 1.5 1.6 1.7"},
		{"further behind, the disk helps", "1.5 1.6 1.7", "1.7", "1.7", "1.2", "1.2 1.3 1.4 1.5", "DIFF(1.7) 1.3 1.4 1.5 1.6 1.7"},
		{"ZOOKEEPER-2418: the disk ends too early", "1.5 1.6 1.7", "1.7", "1.7", "1.2", "1.2 1.3", "SNAP(1.7)"},
		{"a gap in the disk's log", "1.5 1.6 1.7", "1.7", "1.7", "1.1", "1.1 1.3 1.4", "SNAP(1.7)"},
		{"the disk begins too late", "1.5 1.6 1.7", "1.7", "1.7", "1.1", "1.3 1.4", "SNAP(1.7)"},
		{"ZOOKEEPER-2846: another history on the disk than the peer's", "2.1 2.2", "2.2", "2.2", "1.9", "1.7 1.8 2.1", "SNAP(2.2)"},
		{"fresh ensemble", "", "0", "0", "0", "", "DIFF(0)"},
		{"fresh ensemble, leader serves", "", "0", "1.0", "0", "", "SNAP(1.0)"},
		{"fresh ensemble, leader serves, disk allowed", "", "0", "1.0", "0", "1.1", "SNAP(1.0)"},
		{"ZOOKEEPER-4352: empty peer, leader remembers one epoch", "2.1 2.2", "2.2", "2.2", "0", "", "SNAP(2.2)"},
		{"a truncation would cross an epoch", "1.9 2.1", "2.1", "2.1", "1.12", "", "SNAP(2.1)"},
		{"behind across an epoch", "1.9 2.1", "2.1", "2.1", "1.9", "", "DIFF(2.1) 2.1"},
		{"one logged, never committed", "1.7", "1.7", "1.7", "1.8", "", "TRUNC(1.7)"},
		{"the same, new epoch without a transaction", "1.7", "1.7", "2.0", "1.8", "", "TRUNC(1.7)"},
		{"tail of a later epoch that was never committed", "1.8 1.9", "1.9", "1.9", "2.3", "", "SNAP(1.9)"},
		{"nothing remembered, equal", "", "1.7", "1.7", "1.7", "", "DIFF(1.7)"},
		{"nothing remembered, equal, new epoch", "", "1.7", "2.0", "1.7", "", "DIFF(1.7)"},
		{"nothing remembered, ahead", "", "1.7", "2.0", "2.2", "", "SNAP(2.0)"},
		{"nothing remembered, behind", "", "1.7", "1.7", "1.6", "", "SNAP(1.7)"},
		{"ZOOKEEPER-3526: a zxid of nowhere", "1.5 1.6", "1.6", "1.6", "7.0", "", "SNAP(1.6)"},
	} {
		h := history{committed: txns(c.log), newest: zx(c.newest), last: zx(c.last), tree: zx(c.last), disk: c.disk != ""}
		p := choose(&h, zx(c.peer))
		if p.ask {
			var read []*record.Txn
			ok := false
			for _, t := range txns(c.disk) {
				if ok {
					read = append(read, t)
				}
				ok = ok || t.Zxid == zx(c.peer)
			}
			p = chooseRead(&h, zx(c.peer), read, ok)
		}
		if got := short(p); got != c.want {
			t.Errorf("%s: leader has [%s], peer %s: %s, want %s", c.name, c.log, c.peer, got, c.want)
		}
	}
	h := history{committed: txns("1.5 1.6"), before: zx("1.4"), newest: zx("1.6"), last: zx("1.6"), tree: zx("1.6")}
	if got := short(choose(&h, zx("1.4"))); got != "DIFF(1.6) 1.5 1.6" {
		t.Errorf("learner whose log ends directly before the oldest transaction in memory: %s", got)
	}
	h = history{committed: txns("1.5"), newest: zx("1.5"), last: zx("1.5"), tree: zx("1.5"), force: true}
	if got := short(choose(&h, zx("1.5"))); got != "SNAP(1.5)" {
		t.Errorf("forced: %s", got)
	}
}

// TestSynchronisationMakesHistoriesEqual: for any two histories with the same committed part, the choice
// turns the peer's history into the leader's.
func TestSynchronisationMakesHistoriesEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// An epoch has only one leader, so the two tails share no epoch, and at most one of them
		// continues the epoch in which the common part ends.
		grow := func(base []*record.Txn, n int, parity wire.Epoch, goOn bool) []*record.Txn {
			out, last := append([]*record.Txn(nil), base...), wire.Zxid(0)
			if len(base) > 0 {
				last = base[len(base)-1].Zxid
			}
			for i := range n {
				if last.Epoch() == 0 || i == 0 && !goOn || rapid.IntRange(0, 3).Draw(t, "new epoch") == 0 {
					e := last.Epoch() + 1
					last = wire.MakeZxid(e+(e+parity)%2, 0)
				}
				last++
				out = append(out, &record.Txn{TxnHeader: record.TxnHeader{Zxid: last}})
			}
			return out
		}
		goOn := rapid.Bool().Draw(t, "leader goes on")
		shared := grow(nil, rapid.IntRange(0, 6).Draw(t, "shared"), 0, true)
		leader := grow(shared, rapid.IntRange(0, 6).Draw(t, "leader"), 0, goOn)
		peer := grow(shared, rapid.IntRange(0, 3).Draw(t, "peer"), 1, !goOn)
		forget := rapid.IntRange(0, len(leader)).Draw(t, "forget")
		h := history{committed: leader[forget:], disk: rapid.Bool().Draw(t, "disk")}
		if len(leader) > 0 {
			h.newest = leader[len(leader)-1].Zxid
		}
		if forget > 0 {
			h.before = leader[forget-1].Zxid
		}
		h.last, h.tree = h.newest, h.newest
		var end wire.Zxid
		if len(peer) > 0 {
			end = peer[len(peer)-1].Zxid
		}
		p := choose(&h, end)
		if p.ask {
			p = readAll(&h, leader, end)
		}
		if got := carryOut(p, peer, leader); !sameZxids(got, leader) {
			t.Fatalf("leader %v, peer %v, remembered from %d: %s gives %v", zxids(leader), zxids(peer), forget, short(p), zxids(got))
		}
	})
}

func readAll(h *history, leader []*record.Txn, peer wire.Zxid) plan {
	for i, t := range leader {
		if t.Zxid == peer {
			return chooseRead(h, peer, leader[i+1:], true)
		}
	}
	return chooseRead(h, peer, nil, false)
}

// carryOut returns the log that results when a learner carries out a plan.
func carryOut(p plan, log, leader []*record.Txn) []*record.Txn {
	var out []*record.Txn
	for _, t := range map[SyncMode][]*record.Txn{Diff: log, Trunc: log, Snap: leader}[p.how] {
		if p.how == Diff || t.Zxid <= p.zxid {
			out = append(out, t)
		}
	}
	return append(out, p.txns...)
}

func zxids(log []*record.Txn) []string {
	var out []string
	for _, t := range log {
		out = append(out, dotted(t.Zxid))
	}
	return out
}

func sameZxids(a, b []*record.Txn) bool {
	return strings.Join(zxids(a), " ") == strings.Join(zxids(b), " ")
}
