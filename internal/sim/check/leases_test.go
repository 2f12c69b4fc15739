package check

import (
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// three returns what the checkers see of an ensemble of three voters: a, b and 3.
func three(disks ...Disk) *present {
	m, err := ensemble.Parse("server.1=h:1:2\nserver.2=h:3:4\nserver.3=h:5:6\n")
	if err != nil {
		panic(err)
	}
	return &present{disks: disks, servers: []Server{{ID: a, Members: m, Up: true}, {ID: b, Members: m, Up: true}, {ID: 3, Members: m, Up: true}}}
}

// leasesOf and quorumsOf are rules over three voters.
func leasesOf(*History) Checker { return newLeases(three()) }

func quorumsOf(disks ...Disk) func(*History) Checker {
	return func(*History) Checker { return newQuorums(three(disks...)) }
}

const ms = int64(1000) // µs

// packetOf returns a packet of the leader a to b, or of b to a, on link 1.
func packetOf(at int64, byLearner bool, kind peerwire.PacketType, z wire.Zxid, data wire.Record) Promised {
	p := Promised{Server: a, To: Receiver{Server: b}, ByLearner: byLearner, Link: 1, At: at, Since: at, Packet: &peerwire.QuorumPacket{Type: kind, Zxid: z}}
	if byLearner {
		p.Server, p.To.Server = b, a
	}
	if data != nil {
		p.Packet.Data = wire.Append(nil, data)
	}
	return p
}

// beats returns a heartbeat of a that confirms this many answers of b, and answers returns the answer of b.
func beats(at, confirmed int64) Promised {
	return packetOf(at, false, peerwire.PacketPing, 0, &peerwire.PingInfo{Confirmed: confirmed})
}

func answers(at int64) Promised { return packetOf(at, true, peerwire.PacketPing, 0, nil) }

// touches returns a TOUCH of b, and confirms a TOUCH of a that confirms this many reports of b.
func touches(at int64) Promised { return packetOf(at, true, peerwire.PacketTouch, 0, nil) }

func confirms(at, confirmed int64) Promised {
	return packetOf(at, false, peerwire.PacketTouch, 0, &peerwire.PingInfo{Confirmed: confirmed})
}

// followed returns the observations until b follows a, and more.
func followed(more ...any) []any {
	return append([]any{
		packetOf(0, true, peerwire.PacketFollowerInfo, 0, nil), packetOf(0, false, peerwire.PacketUpToDate, 0, nil),
		Established{Server: a, Role: peerwire.Leading, Epoch: 1}, Established{Server: b, Role: peerwire.Following, Epoch: 1},
	}, more...)
}

func asks(v ensemble.ServerID, op wire.OpCode, at int64) Asked { return Asked{v, 7, op, at} }

// brokenLeases are sequences of observations that break the rules of heartbeats and quorums.
var brokenLeases = []broken{
	{"an answer to a heartbeat that was not sent", leasesOf, func(*History) []any {
		return followed(beats(1, 0), answers(2), answers(3))
	}},
	{"sessions confirmed without a lease", leasesOf, func(*History) []any {
		return followed(beats(1*ms, 0), answers(2*ms), beats(400*ms, 1), answers(401*ms), beats(1000*ms, 2))
	}},
	{"sessions confirmed by a TOUCH without a lease", leasesOf, func(*History) []any {
		return followed(beats(1*ms, 0), answers(2*ms), touches(3*ms), confirms(4*ms, 2), touches(1000*ms), confirms(1001*ms, 3))
	}},
	{"a ping answered by a follower because of an earlier TOUCH", leasesOf, func(*History) []any {
		return followed(beats(1*ms, 0), answers(2*ms), asks(b, wire.OpPing, 2*ms), touches(3*ms), confirms(4*ms, 2), Replied{b, 7, 0, wire.OpPing, wire.OK},
			touches(5*ms), asks(b, wire.OpPing, 6*ms), confirms(7*ms, 3), Replied{b, 7, 0, wire.OpPing, wire.OK})
	}},
	{"a TOUCH taken for an answer to a heartbeat", leasesOf, func(*History) []any {
		return followed(beats(1*ms, 0), answers(2*ms), beats(1000*ms, 0), touches(1001*ms), confirms(1002*ms, 2))
	}},
	{"a ping answered by a leader without a lease", leasesOf, func(*History) []any {
		return followed(beats(1*ms, 0), answers(2*ms), asks(a, wire.OpPing, 400*ms), Replied{a, 7, 0, wire.OpPing, wire.OK},
			asks(a, wire.OpPing, 600*ms), Replied{a, 7, 0, wire.OpPing, wire.OK})
	}},
	{"a ping answered by a follower before its leader knows of it", leasesOf, func(*History) []any {
		return followed(beats(1*ms, 0), asks(b, wire.OpPing, 2*ms), answers(3*ms), beats(4*ms, 1), Replied{b, 7, 0, wire.OpPing, wire.OK},
			asks(b, wire.OpPing, 5*ms), Replied{b, 7, 0, wire.OpPing, wire.OK})
	}},
	{"a sync answered because of an earlier heartbeat", leasesOf, func(*History) []any {
		answer := packetOf(3*ms, false, peerwire.PacketSync, 0, nil)
		return followed(asks(b, wire.OpSync, 0), beats(1*ms, 0), answers(2*ms), answer, Replied{b, 7, 0, wire.OpSync, wire.OK},
			asks(b, wire.OpSync, 4*ms), beats(5*ms, 0), answer, answers(6*ms), Replied{b, 7, 0, wire.OpSync, wire.OK})
	}},
	{"a sync answered because of what a leader that has ended had confirmed later", leasesOf, func(*History) []any {
		answer := packetOf(3*ms, false, peerwire.PacketSync, 0, nil)
		return followed(asks(b, wire.OpSync, 0), beats(1*ms, 0), answers(2*ms), answer, Restarted{Server: a}, Replied{b, 7, 0, wire.OpSync, wire.OK},
			asks(b, wire.OpSync, 4*ms), Replied{b, 7, 0, wire.OpSync, wire.OK})
	}},
	{"a commit before the answer to an earlier sync", leasesOf, func(*History) []any {
		commit := func(at wire.Zxid) Promised { return packetOf(3*ms, false, peerwire.PacketCommit, at, nil) }
		answer := packetOf(3*ms, false, peerwire.PacketSync, 0, nil)
		return followed(SyncsTaken{1, 2, z(1, 5)}, commit(z(1, 5)), answer, answer, commit(z(1, 6)), answer, SyncsTaken{1, 2, z(1, 6)}, commit(z(1, 6)), commit(z(1, 7)))
	}},
	{"a connection kept over a term that was missed", func(*History) Checker { return newKeptConnections(three()) }, func(*History) []any {
		leads := func(e wire.Epoch) Established { return Established{Server: a, Role: peerwire.Leading, Epoch: e} }
		return []any{leads(1), Kept{b, 1, 2, 7}, leads(2), Kept{b, 1, 2, 7}, leads(3), Kept{b, 1, 3, 7}}
	}},
	{"a connection kept under a leader of ZooKeeper", func(*History) Checker {
		p := three()
		p.servers[0].Compatible = true
		return newKeptConnections(p)
	}, func(*History) []any {
		return []any{Established{Server: b, Role: peerwire.Leading, Epoch: 1}, Kept{3, 1, 1, 7}, Established{Server: a, Role: peerwire.Leading, Epoch: 2}, Kept{3, 1, 2, 7}}
	}},
	{"an epoch that a member of the quorum has accepted", quorumsOf(), func(*History) []any {
		joins := func(accepted wire.Epoch) Promised {
			return packetOf(0, true, peerwire.PacketFollowerInfo, z(accepted, 0), nil)
		}
		info := func(e wire.Epoch) Promised { return packetOf(0, false, peerwire.PacketLeaderInfo, z(e, 0), nil) }
		return []any{joins(1), info(2), joins(3), info(3)}
	}},
	{"an epoch without a quorum", quorumsOf(), func(*History) []any {
		return []any{packetOf(0, false, peerwire.PacketLeaderInfo, z(1, 0), nil)}
	}},
	{"an epoch promised to two leaders", quorumsOf(), func(*History) []any {
		promise := func(to ensemble.ServerID, link zab.LinkID) []any {
			p := packetOf(0, true, peerwire.PacketAckEpoch, 0, &peerwire.EpochAck{CurrentEpoch: 1})
			info := packetOf(0, false, peerwire.PacketLeaderInfo, z(2, 0), nil)
			p.To.Server, p.Link, info.Link = to, link, link
			return []any{info, p}
		}
		again := append([]any{packetOf(0, true, peerwire.PacketFollowerInfo, 0, nil)}, append(promise(a, 1), promise(a, 2)...)...)
		return append(append(again, append([]any{Forgot{b}}, promise(3, 3)...)...), promise(a, 4)...)
	}},
	{"a term that a quorum has not promised", quorumsOf(disk(a, 2, 1), disk(b, 1, 1), Disk{ID: 3, Durable: Durable{Known: true, Accepted: 1}}), func(*History) []any {
		return []any{packetOf(0, false, peerwire.PacketNewLeader, z(1, 0), nil), packetOf(0, false, peerwire.PacketNewLeader, z(2, 0), nil)}
	}},
	{"a term that no quorum of the proposed membership has promised", func(*History) Checker {
		p := three(disk(a, 2, 1), disk(b, 2, 1), disk(3, 1, 1))
		m, err := ensemble.Parse("server.1=h:1:2\nserver.3=h:5:6\n")
		if err != nil {
			panic(err)
		}
		p.servers[0].Proposed = m
		return newQuorums(p)
	}, func(*History) []any {
		return []any{packetOf(0, false, peerwire.PacketNewLeader, z(1, 0), nil), packetOf(0, false, peerwire.PacketNewLeader, z(2, 0), nil)}
	}},
	{"a leader that a quorum has not acknowledged", quorumsOf(disk(a, 2, 2), Disk{ID: b}, disk(3, 2, 1)), func(*History) []any {
		return []any{Established{Server: a, Role: peerwire.Leading, Epoch: 2}, Established{Server: 3, Role: peerwire.Leading, Epoch: 3}}
	}},
	{"a transaction that no quorum has", quorumsOf(disk(a, 1, 1), disk(b, 1, 1), disk(3, 1, 1)), func(*History) []any {
		all := []any{Established{Server: a, Role: peerwire.Leading, Epoch: 1}}
		for i := range commitsEvery {
			all = append(all, Committed{a, i, &record.Txn{TxnHeader: record.TxnHeader{Zxid: z(1, uint32(i+1))}}})
		}
		return all
	}},
}

// disk returns a disk with an empty history.
func disk(id ensemble.ServerID, accepted, current wire.Epoch) Disk {
	return Disk{ID: id, Durable: Durable{Known: true, Accepted: accepted, Current: current}}
}

// TestTheNextLeaderCommits: a transaction that a leader has only proposed is committed by a quorum of the next leader's list, which can be
// another one than the first leader's.
func TestTheNextLeaderCommits(t *testing.T) {
	p := three(disk(a, 2, 2), Disk{ID: b}, disk(3, 2, 2))
	m, err := ensemble.Parse("server.2=h:3:4\n")
	if err != nil {
		t.Fatal(err)
	}
	p.servers[1].Members = m
	for _, by := range []ensemble.ServerID{a, b} {
		c := newQuorums(p)
		wrong := c.See(Established{Server: a, Role: peerwire.Leading, Epoch: 1}) + c.See(Established{Server: b, Role: peerwire.Leading, Epoch: 2})
		for i := range commitsEvery {
			wrong += c.See(Committed{by, i, &record.Txn{TxnHeader: record.TxnHeader{Zxid: z(1, uint32(i+1))}}})
		}
		if (wrong == "") != (by == b) {
			t.Errorf("committed by leader %d: %q", by, wrong)
		}
	}
}

// TestLaterListsDoNotCount: a commit needs a quorum of a proposed list only if the proposal comes before the transaction or is it.
func TestLaterListsDoNotCount(t *testing.T) {
	full := func(id ensemble.ServerID) Disk {
		return Disk{ID: id, Durable: Durable{Known: true, Accepted: 1, Current: 1, Zxid: z(1, commitsEvery)}}
	}
	proposed, err := ensemble.Parse("server.3=h:5:6\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []wire.Zxid{z(1, commitsEvery), z(1, commitsEvery+1)} {
		p := three(full(a), full(b), disk(3, 1, 1))
		p.servers[0].Proposed = proposed.WithVersion(int64(version))
		c := newQuorums(p)
		wrong := c.See(Established{Server: a, Role: peerwire.Leading, Epoch: 1})
		for i := range commitsEvery {
			wrong += c.See(Committed{a, i, &record.Txn{TxnHeader: record.TxnHeader{Zxid: z(1, uint32(i+1))}}})
		}
		if (wrong == "") != (version > z(1, commitsEvery)) {
			t.Errorf("a list of version %v: %q", version, wrong)
		}
	}
}

// TestRefusedSyncNeedsNoQuorum: a leader that no quorum answers refuses the sync of a session whose end it has proposed. Only the answer that
// a sync succeeded says that the leader still leads. The refusal belongs to the oldest sync, as an answer does.
func TestRefusedSyncNeedsNoQuorum(t *testing.T) {
	for _, code := range []wire.Code{wire.ErrSessionExpired, wire.OK} {
		c := newLeases(three())
		wrong := ""
		for _, o := range followed(beats(1*ms, 0), answers(2*ms), asks(a, wire.OpSync, 3*ms), Replied{a, 7, 0, wire.OpSync, code},
			asks(a, wire.OpSync, 4*ms), beats(5*ms, 0), answers(6*ms), Replied{a, 7, 0, wire.OpSync, wire.OK}) {
			if why := c.See(o); wrong == "" {
				wrong = why
			}
		}
		if (wrong == "") != (code != wire.OK) {
			t.Errorf("answered with %v: %q", code, wrong)
		}
	}
}
