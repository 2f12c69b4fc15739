package zab

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/wire"
)

// compared is a leader of the servers of lines, to which all others are connected, that has asked for all digests.
func compared(t *testing.T, leader ensemble.ServerID, lines string, proposed string) *Leader {
	t.Helper()
	members := func(text string) *ensemble.Membership {
		m, err := ensemble.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	m := members(lines)
	l := &Leader{opt: LeaderOptions{TermStart: TermStart{ID: leader, TickMS: 1000, InitLimit: 10, SyncLimit: 5}}, log: NewLog(9, 0), phase: serving, now: 1000,
		commitment: commitment{self: leader, committed: m, servers: map[ensemble.ServerID]*link{}}, links: map[LinkID]*link{}, trees: newTrees()}
	l.opt.defaults()
	all := m.Servers()
	if proposed != "" {
		l.lastSeen = members(proposed).WithVersion(77)
		for _, s := range l.lastSeen.Servers() {
			if _, known := m.Server(s.ID); !known {
				all = append(all, s)
			}
		}
	}
	for _, s := range all {
		if s.ID == leader {
			continue
		}
		k := &link{id: LinkID(s.ID), server: s.ID, state: linkServing, native: true, canTransfer: true, digests: true, observer: s.Role == ensemble.Observer, heard: l.now}
		k.adopted, k.durable = true, l.log.last
		l.links[k.id], l.servers[s.ID], l.order = k, k, append(l.order, k)
	}
	l.trees.own.report.Differs = 1
	l.compareTrees()
	return l
}

// serverLines returns the lines of voters with the ids 1 to voters, and of observers behind them.
func serverLines(voters, observers int, more ...string) string {
	var b strings.Builder
	for id := 1; id <= voters+observers; id++ {
		role := "participant"
		if id > voters {
			role = "observer"
		}
		fmt.Fprintf(&b, "server.%d=h:%d:%d:%s\n", id, id, 100+id, role)
	}
	return b.String() + strings.Join(more, "\n") + "\n"
}

// TestWhichTreeIsWrong: a quorum of equal trees decides, whichever servers have answered and in whichever order. Every
// other case changes nothing. The leader is the server with the largest id of the voters, unless the case says otherwise.
func TestWhichTreeIsWrong(t *testing.T) {
	three, five, groups := serverLines(3, 1), serverLines(5, 0), serverLines(9, 0, "group.1=1:2:3", "group.2=4:5:6", "group.3=7:8:9",
		"weight.1=1", "weight.2=1", "weight.3=1", "weight.4=1", "weight.5=1", "weight.6=1", "weight.7=1", "weight.8=1", "weight.9=1")
	weights := serverLines(3, 0, "group.1=1:2:3", "weight.1=3", "weight.2=1", "weight.3=1")
	for _, c := range []struct {
		name, lines, proposed string
		leader                ensemble.ServerID
		digests               string // by server in the order of the ids; a capital letter: a copy, -: no answer
		want                  string // the server whose tree is replaced, or "outvoted"; behind |: if the answers come in the order of falling ids
	}{
		{"all equal", three, "", 3, "aaaa", ""},
		{"one follower", three, "", 3, "baa-", "1"},
		{"the observer", three, "", 3, "aaab", "4"},
		{"the observer and a follower: one after the other", three, "", 3, "baab", "1|4"},
		{"the observer is no voter", three, "", 3, "b-aa", ""},
		{"the observer does not outvote", three, "", 3, "-bab", ""},
		{"nobody else has answered", three, "", 3, "b-a-", ""},
		{"two, in different ways", three, "", 3, "bca-", ""},
		{"the leader", three, "", 3, "bba-", "outvoted"},
		{"the leader has not answered", three, "", 3, "bb--", ""},
		{"the leader and an observer", three, "", 3, "bbaa", "outvoted"},
		{"the only other one is a copy", three, "", 3, "bAa-", ""},
		{"the leader is a copy", three, "", 3, "baA-", ""},
		{"the leader is a copy that both confirm", three, "", 3, "aaA-", ""},
		{"copies do not outvote", three, "", 3, "Bba-", ""},
		{"copies only, but all alike", three, "", 3, "AAA-", ""},
		{"copies only, but all alike, and an observer", three, "", 3, "AAAb", "4"},
		{"a wrong copy", three, "", 3, "Baa-", "1"},
		{"two of five: one after the other", five, "", 5, "bcaaa", "1|2"},
		{"two of five, alike", five, "", 5, "bbaaa", "1|2"},
		{"two of five, one copy among the others", five, "", 5, "bbAaa", ""},
		{"one of five, one copy among the others", five, "", 5, "baAaa", "1"},
		{"three of five, in different ways", five, "", 5, "bcdaa", ""},
		{"three of five, alike", five, "", 5, "bbbaa", "outvoted"},
		{"the leader and a follower of five", five, "", 5, "bbbca", "outvoted"},
		{"three of five are enough", five, "", 5, "b--aa", ""},
		{"three of five with the leader", five, "", 5, "b-aaa", "1"},
		{"groups: two groups", groups, "", 9, "bbbaa-aa-", ""},
		{"groups: two groups have quorums", groups, "", 9, "bbb-aa-aa", "1|3"},
		{"groups: five servers, but one group", groups, "", 9, "bbbbbbaaa", "outvoted"},
		{"groups: six servers in three groups are two quorums at most", groups, "", 9, "abbabbaba", "outvoted"},
		{"weights: the heavy one differs, alone", weights, "", 3, "baa", ""},
		{"weights: the heavy one and another one differ", weights, "", 3, "bba", "outvoted"},
		{"weights: a light one is wrong", weights, "", 3, "aba", "2"},
		{"weights: light ones only", weights, "", 3, "-ba", ""},
		{"weights: a heavy leader, alone", weights, "", 1, "abb", ""},
		{"weights: a heavy leader, with a copy", weights, "", 1, "aAb", ""},
		{"weights: a heavy leader and another one", weights, "", 1, "aab", "3"},
		{"one voter", serverLines(1, 3), "", 1, "aabb", ""},
		{"one voter, a copy", serverLines(1, 3), "", 1, "Aabb", ""},
		{"both memberships agree", three, serverLines(5, 0), 3, "baaaa", "1"},
		{"no quorum of the proposed membership", three, serverLines(5, 0), 3, "baa--", ""},
		{"no quorum of the committed membership", three, serverLines(5, 0), 3, "bca-aa", ""},
		{"outvoted in one membership only", three, serverLines(5, 0), 3, "bbaaa", ""},
		{"outvoted in both", three, serverLines(5, 0), 3, "bbaab", "outvoted"},
		{"an observer that is to get a vote has none yet", three, serverLines(5, 0), 3, "bbaba", ""},
	} {
		for _, backwards := range []bool{false, true} {
			l := compared(t, c.leader, c.lines, c.proposed)
			ids := make([]int, len(c.digests))
			for i := range ids {
				ids[i] = i
			}
			if backwards {
				slices.Reverse(ids)
			}
			for _, i := range ids {
				x := c.digests[i : i+1]
				id := ensemble.ServerID(i + 1)
				if x == "-" || id != c.leader && l.linkOf(id) == nil {
					continue
				}
				report := peerwire.TreeReport{Known: true, Version: record.DigestVersion, Digest: uint64(strings.ToLower(x)[0]), Copied: strings.ToUpper(x) == x}
				if id == c.leader {
					l.Step(l.now, TreeReport{9, report})
					continue
				}
				l.Step(l.now, Received{LinkID(id), &peerwire.QuorumPacket{Type: peerwire.PacketDigest, Zxid: 9, Data: wire.Append(nil, &report)}})
			}
			want, other, depends := strings.Cut(c.want, "|")
			if backwards && depends {
				want = other
			}
			if got := verdict(l); got != want {
				t.Errorf("%s, backwards %v: %q, want %q", c.name, backwards, got, want)
			}
		}
	}
}

// verdict describes what a leader has decided about trees.
func verdict(l *Leader) string {
	r := l.Ready()
	for _, o := range r.TreeOrders {
		if o.Task == TreeOutvoted {
			if r.GiveUp == "" && l.transfer == nil {
				return "outvoted, and goes on"
			}
			if s := r.Successor; s == nil || len(r.Close) == 0 {
				return "outvoted, without a successor"
			}
			return "outvoted"
		}
	}
	var ids []string
	for _, id := range l.Wrong() {
		if slices.Contains(r.Close, LinkID(id)) {
			ids = append(ids, fmt.Sprint(id))
		}
	}
	if len(r.Close) != len(ids) {
		return fmt.Sprintf("closes %v, owes snapshots to %v", r.Close, ids)
	}
	return strings.Join(ids, " ")
}

// orders returns what a leader says in its DIGEST packets to a server.
func orders(r *Ready, link LinkID) (all []peerwire.TreeTask) {
	for _, m := range r.Send {
		var o peerwire.TreeOrder
		if m.Link == link && m.Packet.Type == peerwire.PacketDigest && wire.Decode(m.Packet.Data, &o) == nil {
			all = append(all, o.Task)
		}
	}
	return all
}

// TestOnlyAnswersOfThisComparisonCount: an answer for another transaction, one of an earlier connection, and one that has no
// digest decide nothing. Nothing is decided while leadership is transferred.
func TestOnlyAnswersOfThisComparisonCount(t *testing.T) {
	say := func(l *Leader, id LinkID, z wire.Zxid, known bool, digest uint64) {
		l.Step(l.now, Received{id, &peerwire.QuorumPacket{Type: peerwire.PacketDigest, Zxid: z,
			Data: wire.Append(nil, &peerwire.TreeReport{Known: known, Version: record.DigestVersion, Digest: digest, Differs: 5})}})
	}
	start := func() *Leader {
		l := compared(t, 3, serverLines(3, 0), "")
		l.Step(l.now, TreeReport{9, peerwire.TreeReport{Known: true, Version: record.DigestVersion, Digest: 7}})
		say(l, 1, 9, true, 8)
		return l
	}
	for name, do := range map[string]func(*Leader){
		"another transaction": func(l *Leader) { say(l, 2, 8, true, 7) },
		"no digest":           func(l *Leader) { say(l, 2, 9, false, 7) },
		"an earlier question": func(l *Leader) { // server 1 has to answer again
			l.log.last = 10
			l.compareTrees()
			l.Step(l.now, TreeReport{10, peerwire.TreeReport{Known: true, Version: record.DigestVersion, Digest: 7}})
			say(l, 2, 10, true, 7)
		},
		"an earlier connection": func(l *Leader) {
			l.Step(l.now, Closed{1, "end of file"})
			say(l, 2, 9, true, 7)
		},
		"not serving yet": func(l *Leader) { l.servers[2].state = linkSynced; say(l, 2, 9, true, 7) },
		"a transfer":      func(l *Leader) { l.transfer = &transfer{to: 2, began: l.now}; l.log.applied = 8; say(l, 2, 9, true, 7) },
	} {
		l := start()
		do(l)
		if r := l.Ready(); len(r.Close) > 0 || len(l.Wrong()) > 0 || r.GiveUp != "" {
			t.Errorf("%s: closes %v, ends %q", name, r.Close, r.GiveUp)
		}
	}
	l := start()
	say(l, 2, 9, true, 7)
	say(l, 2, 9, true, 7) // the same answer once more is not answered
	if r := l.Ready(); !slices.Equal(r.Close, []LinkID{1}) || !slices.Equal(orders(&r, 1), []peerwire.TreeTask{peerwire.TreeReportDue, peerwire.TreeReplaced}) ||
		!slices.Equal(orders(&r, 2), []peerwire.TreeTask{peerwire.TreeReportDue, peerwire.TreeConfirmed}) {
		t.Errorf("closes %v, says %v and %v", r.Close, orders(&r, 1), orders(&r, 2))
	}
}

// TestTreesAreComparedOnDemand: a leader asks nobody as long as nobody doubts a tree. It asks those that can answer, and for its
// last proposal.
func TestTreesAreComparedOnDemand(t *testing.T) {
	w := servingWorld(false)
	l := w.nodes[2].leader
	asked := func() (ids []ensemble.ServerID) {
		l.compareTrees()
		r := l.Ready()
		for _, k := range l.order {
			if slices.Contains(orders(&r, k.id), peerwire.TreeReportDue) {
				ids = append(ids, k.server)
			}
		}
		if len(ids) > 0 != (len(r.TreeOrders) == 1 && r.TreeOrders[0].Zxid == l.log.last) {
			t.Errorf("asks itself %+v", r.TreeOrders)
		}
		return ids
	}
	if ids := asked(); len(ids) > 0 {
		t.Errorf("asks %v without a reason", ids)
	}
	z, _ := l.NextZxid()
	l.Step(w.now, Propose{w.txn(z)})
	for name, doubt := range map[string]func(*bool){
		"differs":       func(*bool) { l.servers[1].tree.report.Differs = 5 },
		"observer":      func(*bool) { l.servers[4].tree.report.Differs = 5 },
		"copied":        func(*bool) { l.servers[2].tree.report.Copied = true },
		"sent":          func(*bool) { l.trees.copied[2] = true },
		"own differs":   func(*bool) { l.trees.own.report.Differs = 5 },
		"own is a copy": func(*bool) { l.trees.own.report.Copied = true },
	} {
		doubt(nil)
		if ids := asked(); !slices.Equal(ids, []ensemble.ServerID{1, 2, 4}) {
			t.Errorf("%s: asks %v", name, ids)
		}
		for _, k := range l.order {
			k.tree = treeState{}
		}
		l.trees = newTrees()
	}
	l.servers[4].tree.report.Copied = true // if it differs later, the leader has to know whether it was right before
	if ids := asked(); !slices.Equal(ids, []ensemble.ServerID{1, 2, 4}) {
		t.Errorf("asks %v because an observer is a copy", ids)
	}
	l.servers[4].tree, l.trees.until = treeState{}, 0
	l.servers[1].tree.report.Differs, l.servers[2].digests = 5, false
	if ids := asked(); !slices.Equal(ids, []ensemble.ServerID{1, 4}) {
		t.Errorf("asks %v, of which server 2 does not know the packet", ids)
	}
	l.trees.until, l.servers[1].digests, l.servers[4].tree.report.Differs = 0, false, 5
	if ids := asked(); len(ids) > 0 {
		t.Errorf("asks %v, although no other voter can answer", ids)
	}
}

// TestDigestIsNegotiated: older leaders and observer masters get no report. A packet that cannot be read ends the link.
func TestDigestIsNegotiated(t *testing.T) {
	for _, c := range []struct {
		version int32
		master  ensemble.ServerID
		want    bool
	}{{peerwire.ExtensionDigest, 3, true}, {peerwire.ExtensionDigest - 1, 3, false}, {0, 3, false}, {peerwire.ExtensionDigest, 2, false}} {
		r := servingWorld(false).nodes[0].learner
		r.extension, r.opt.Master = c.version, c.master
		r.Step(r.now, TreeReport{TreeReport: peerwire.TreeReport{Copied: true}})
		out := r.Ready()
		if sent := len(out.Send) == 1 && out.Send[0].Packet.Type == peerwire.PacketDigest; sent != c.want || r.ComparesTrees() != c.want {
			t.Errorf("%+v: %v", c, out.Send)
		}
		r.Step(r.now, Received{r.opt.Link, &peerwire.QuorumPacket{Type: peerwire.PacketDigest, Zxid: 4, Data: wire.Append(nil, &peerwire.TreeOrder{Task: peerwire.TreeReportDue})}})
		if out := r.Ready(); len(out.TreeOrders) == 1 != c.want || out.GiveUp != "" {
			t.Errorf("%+v: %+v, ends %q", c, out.TreeOrders, out.GiveUp)
		}
		r.Step(r.now, Received{r.opt.Link, &peerwire.QuorumPacket{Type: peerwire.PacketDigest, Data: []byte{0}}})
		if out := r.Ready(); out.GiveUp != "" != c.want {
			t.Errorf("%+v: ends %q after a packet that cannot be read", c, out.GiveUp)
		}
	}
	l := servingWorld(false).nodes[2].leader
	link := l.servers[1].id
	if l.Step(l.now, Received{link, &peerwire.QuorumPacket{Type: peerwire.PacketDigest, Data: []byte{0}}}); l.links[link] != nil {
		t.Error("the link is open after a packet that cannot be read")
	}
}

// TestOwedSnapshot: a learner whose tree was found wrong gets a snapshot although its log is that of the leader, once, and only
// within initLimit.
func TestOwedSnapshot(t *testing.T) {
	for _, late := range []int64{0, 9_999, 10_000} {
		w := servingWorld(false)
		n := w.nodes[0]
		l := w.nodes[2].leader
		l.trees.owed[1] = w.now + 10_000
		w.leave(n)
		w.settle()
		w.now += late
		for round, want := range []bool{late < 10_000, false} {
			l.now = w.now
			for _, k := range l.order {
				k.heard = l.now
			}
			w.join(n, w.nodes[2])
			w.settle()
			if got := n.learner.how == Snap; got != want || n.learner.step != following {
				t.Errorf("%d ms later, attempt %d: %v", late, round, n.learner.how)
			}
			w.leave(n)
			w.settle()
		}
	}
}

// answer lets a server answer the present question. The leader says itself what its tree is.
func (l *Leader) answer(id ensemble.ServerID, report peerwire.TreeReport) {
	report.Known, report.Version = true, cmp.Or(report.Version, record.DigestVersion)
	if id == l.self {
		l.Step(l.now, TreeReport{l.trees.zxid, report})
		return
	}
	l.Step(l.now, Received{l.servers[id].id, &peerwire.QuorumPacket{Type: peerwire.PacketDigest, Zxid: l.trees.zxid, Data: wire.Append(nil, &report)}})
}

// returns lets a learner whose link was closed connect again, after a snapshot.
func (l *Leader) returns(id ensemble.ServerID, observer bool) *link {
	k := l.connects(id, observer)
	l.treeSent(k)
	l.treeArrived(k)
	return k
}

// connects adds the link of a learner.
func (l *Leader) connects(id ensemble.ServerID, observer bool) *link {
	k := &link{id: LinkID(100 + id), server: id, state: linkServing, native: true, canTransfer: true, digests: true, observer: observer, heard: l.now}
	k.adopted, k.durable = true, l.log.last
	l.links[k.id], l.servers[id], l.order = k, k, append(l.order, k)
	return k
}

// ask begins another comparison, which the servers answer with digests in the order of their ids; -: no answer.
func (l *Leader) ask(digests string) {
	l.trees.until = 0
	l.compareTrees()
	for i, x := range digests {
		if id := ensemble.ServerID(i + 1); x != '-' && (id == l.self || l.linkOf(id) != nil) {
			l.answer(id, peerwire.TreeReport{Digest: uint64(x), Differs: 5})
		}
	}
}

// TestOneSnapshotForEachServer: servers get a forced snapshot one after the other, and each gets one in a term. A copy of the leader's
// own tree is not replaced if it differs. A server stops only if its copy was confirmed before, and while a quorum has another tree.
func TestOneSnapshotForEachServer(t *testing.T) {
	l := compared(t, 5, serverLines(5, 1), "")
	last := func() (said []string) {
		for _, h := range l.Ready().Observations {
			if w, ok := h.(WrongTree); ok {
				said = append(said, w.Learner+": "+w.Then)
			}
		}
		return said
	}
	expect := func(step string, want string, wrong ...ensemble.ServerID) {
		t.Helper()
		said := strings.Join(last(), "; ")
		if got := l.Wrong(); !slices.Equal(got, wrong) || want == "" != (said == "") || !strings.Contains(said, want) {
			t.Errorf("%s: %v, says %q, want %q", step, got, said, want)
		}
	}
	l.ask("bcaaad")
	expect("three are wrong", "follower 1: that server gets a snapshot", 1)
	l.ask("-caaad")
	expect("the snapshot is owed", "", 1)
	l.returns(1, false)
	l.ask("ecaaad")
	expect("the copy differs", "follower 1: it comes from a snapshot of this server, whose memory may be the faulty one")
	l.ask("ecaaad")
	expect("the copy still differs", "")
	l.ask("acaaad")
	expect("the copy is confirmed", "follower 2: that server gets a snapshot", 2)
	l.returns(2, false)
	l.ask("baaaaa")
	expect("the first one is wrong again", "follower 1: a snapshot has replaced it before and was confirmed, so that server stops")
	if l.linkOf(1) != nil {
		t.Error("the link of a server that stops is open")
	}
	l.ask("-aaaad")
	expect("a server has just stopped", "")
	l.now = l.trees.pause
	l.ask("-aaaad")
	expect("the observer's turn", "observer 6: that server gets a snapshot", 6)
	l.returns(6, true)
	l.ask("-aaaaa")
	l.Ready()
	l.ask("-bbaaa")
	expect("another one is wrong again, but no quorum is right", "")
	if l.linkOf(2) == nil {
		t.Error("the link of a server is closed without a quorum")
	}
	l.ask("-baaaa")
	expect("another one is wrong again", "follower 2: a snapshot has replaced it before and was confirmed, so that server stops")
	l.now = l.trees.pause
	l.ask("--aaab")
	expect("the observer is wrong again, and no voter", "observer 6: a snapshot has replaced it before and was confirmed, so that server stops")
}

// TestSnapshotOfAMaster: an observer whose tree was replaced and confirmed is wrong again and says that its tree is a copy. Then an observer master has
// sent a wrong snapshot, and the observer gets another one. A voter gets snapshots only from the leader, and stops.
func TestSnapshotOfAMaster(t *testing.T) {
	for id, again := range map[ensemble.ServerID]bool{1: false, 4: true} {
		l := compared(t, 3, serverLines(3, 1), "")
		l.ask(map[ensemble.ServerID]string{1: "baa-", 4: "-aab"}[id])
		l.returns(id, id == 4)
		l.ask("aaaa")
		if !l.trees.forced[id] || l.trees.copied[id] {
			t.Fatalf("server %d: forced %v, copied %v", id, l.trees.forced, l.trees.copied)
		}
		l.ask("-aa-")
		l.answer(id, peerwire.TreeReport{Digest: 'b', Differs: 5, Copied: true})
		if got := slices.Contains(l.Wrong(), id); got != again || l.linkOf(id) != nil {
			t.Errorf("server %d gets a snapshot: %v", id, got)
		}
	}
}

// TestSnapshotThatDoesNotArrive: a server whose forced snapshot has broken off still says that its tree was found wrong, and gets another
// snapshot, also long after.
func TestSnapshotThatDoesNotArrive(t *testing.T) {
	for _, later := range []bool{false, true} {
		l := compared(t, 3, serverLines(3, 0), "")
		l.ask("baa")
		k := l.connects(1, false)
		l.treeSent(k)
		l.now += l.opt.InitLimit * l.opt.TickMS
		l.drop(k, "silent")
		if later {
			l.now += 2 * l.opt.InitLimit * l.opt.TickMS
		} else if !l.trees.owes(1, l.now) {
			t.Error("no snapshot is owed after one that did not arrive")
		}
		k = l.connects(1, false)
		l.treeArrived(k) // by DIFF
		l.trees.until = 0
		l.compareTrees()
		for id, digest := range map[ensemble.ServerID]uint64{2: 'a', 3: 'a'} {
			l.answer(id, peerwire.TreeReport{Digest: digest})
		}
		l.answer(1, peerwire.TreeReport{Digest: 'b', Differs: 5, Wrong: true})
		if got := l.Wrong(); !slices.Equal(got, []ensemble.ServerID{1}) || l.trees.forced[1] {
			t.Errorf("later %v: owed %v, forced %v", later, got, l.trees.forced)
		}
	}
}

// TestObserverThatGetsAVote: an observer that has got the tree of a wrong leader, restarts, and gets a vote, is still a copy.
func TestObserverThatGetsAVote(t *testing.T) {
	l := compared(t, 3, serverLines(3, 1), "") // 1 is right, 2 is down, 3 leads and is wrong
	l.treeSent(l.servers[4])
	l.drop(l.servers[2], "down")
	l.drop(l.servers[4], "restarts")
	m, err := ensemble.Parse("server.1=h:1:101:participant\nserver.3=h:3:103:participant\nserver.4=h:4:104:participant\n")
	if err != nil {
		t.Fatal(err)
	}
	l.committed = m.WithVersion(99)
	k := &link{id: 44, server: 4, state: linkServing, native: true, digests: true, heard: l.now}
	l.links[44], l.servers[4], l.order = k, k, append(l.order, k)
	l.ask("b-cc")
	if got := l.Wrong(); len(got) > 0 {
		t.Errorf("the tree of %v is replaced", got)
	}
	l = compared(t, 3, serverLines(3, 0), "")
	for id := ensemble.ServerID(1000); id < 1100; id++ {
		l.treeSent(&link{id: LinkID(id), server: id})
	}
	if n := len(l.trees.copied); n > 0 {
		t.Errorf("%d servers that are no members are remembered", n)
	}
}

// TestDigestsOfAnotherVersion: they prove nothing.
func TestDigestsOfAnotherVersion(t *testing.T) {
	for version, want := range map[int32]int{record.DigestVersion: 1, record.DigestVersion + 1: 0} {
		l := compared(t, 3, serverLines(3, 0), "")
		l.answer(3, peerwire.TreeReport{Digest: 7})
		l.answer(2, peerwire.TreeReport{Digest: 7})
		l.answer(1, peerwire.TreeReport{Digest: 8, Version: version})
		if got := l.Wrong(); len(got) != want {
			t.Errorf("version %d: %v", version, got)
		}
	}
}

// TestQuestionWaitsForAnswers: the leader asks for another transaction only when all have answered, also that they cannot tell, or after
// syncLimit. So a server that applies transactions late is compared too.
func TestQuestionWaitsForAnswers(t *testing.T) {
	start := func() *Leader {
		l := compared(t, 3, serverLines(3, 0), "")
		l.answer(3, peerwire.TreeReport{Digest: 7, Differs: 5})
		l.answer(2, peerwire.TreeReport{Digest: 7})
		l.log.last = 10
		l.now += 1000
		l.compareTrees()
		return l
	}
	l := start()
	if l.answer(1, peerwire.TreeReport{Digest: 8}); l.trees.zxid != 9 || !slices.Equal(l.Wrong(), []ensemble.ServerID{1}) {
		t.Errorf("asks for %v, wrong: %v", l.trees.zxid, l.Wrong())
	}
	l = start()
	l.Step(l.now, Received{1, &peerwire.QuorumPacket{Type: peerwire.PacketDigest, Zxid: 9, Data: wire.Append(nil, &peerwire.TreeReport{})}})
	if l.compareTrees(); l.trees.zxid != 10 {
		t.Error("waits for a server that cannot tell")
	}
	l = start()
	l.drop(l.servers[1], "down")
	if l.compareTrees(); l.trees.zxid != 10 {
		t.Error("waits for a server that does not follow")
	}
	l = start()
	l.now += 3999
	if l.compareTrees(); l.trees.zxid != 9 {
		t.Error("asks before syncLimit")
	}
	l.now++
	if l.compareTrees(); l.trees.zxid != 10 {
		t.Error("does not ask again after syncLimit")
	}
}

// TestOutvotedLeaderStaysWithLateFollowers: an outvoted leader that has tried all servers with the right tree stays also while they are late. It
// does not count an observer with the right tree, which cannot lead. If one was not tried, it ends its term.
func TestOutvotedLeaderStaysWithLateFollowers(t *testing.T) {
	for _, c := range []struct {
		tried []ensemble.ServerID
		stays bool
	}{{[]ensemble.ServerID{1, 2}, true}, {[]ensemble.ServerID{2}, false}, {nil, false}} {
		l := compared(t, 3, serverLines(3, 1), "")
		l.opt.Tried = map[ensemble.ServerID]bool{}
		for _, id := range c.tried {
			l.opt.Tried[id] = true
		}
		for _, k := range l.order {
			k.watched, k.watchedAt = l.log.last, l.now
		}
		l.now += transferMax + 1
		l.ask("aaba")
		if to := l.bestSuccessor(); to != peerwire.NoServer {
			t.Fatalf("server %d is not late", to)
		}
		if r := l.Ready(); r.GiveUp == "" != c.stays || l.transfer != nil {
			t.Errorf("%v were tried: ends %q", c.tried, r.GiveUp)
		}
	}
}

// TestOutvotedLeaderStays: an outvoted leader does not transfer leadership once more to a server that did not lead after that. If it has tried
// all, it stays and reports it once. It reports it again after a confirmation.
func TestOutvotedLeaderStays(t *testing.T) {
	for tried, want := range map[ensemble.ServerID]ensemble.ServerID{0: 2, 1: 2, 2: 1} {
		l := compared(t, 3, serverLines(3, 0), "")
		l.opt.Tried = map[ensemble.ServerID]bool{tried: true}
		l.ask("aab")
		if r := l.Ready(); r.Successor == nil || r.Successor.Leader != want {
			t.Errorf("server %d was tried: %+v, want server %d", tried, r.Successor, want)
		}
	}
	l := compared(t, 3, serverLines(3, 0), "")
	l.opt.Tried = map[ensemble.ServerID]bool{1: true, 2: true}
	for _, c := range []struct {
		digests string
		want    int
	}{{"aab", 1}, {"aab", 0}, {"aaa", 0}, {"aab", 1}} {
		l.ask(c.digests)
		r, n := l.Ready(), 0
		for _, o := range r.TreeOrders {
			if o.Task == TreeOutvoted {
				n++
			}
		}
		if r.GiveUp != "" || l.transfer != nil || n != c.want {
			t.Errorf("%s: ends %q, reported %d times, want %d", c.digests, r.GiveUp, n, c.want)
		}
	}
}
