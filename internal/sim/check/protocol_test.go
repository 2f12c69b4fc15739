package check

import (
	"slices"
	"testing"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/replica"
	"bellwether/internal/tree"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// a and b are two servers.
const a, b ensemble.ServerID = 1, 2

// setTxn returns a transaction that differs from others by its mark.
func setTxn(z wire.Zxid, mark string) *record.Txn {
	return &record.Txn{
		TxnHeader: record.TxnHeader{Session: 1, Cxid: int32(z.Counter()), Zxid: z, Type: wire.OpSetData},
		Body:      &record.SetDataTxn{Path: "/zookeeper", Data: []byte(mark)},
	}
}

func z(epoch wire.Epoch, counter uint32) wire.Zxid { return wire.MakeZxid(epoch, counter) }

// t0 is the version of a membership that no leader has confirmed.
const t0 wire.Zxid = 0

// members returns a membership of a version.
func members(version wire.Zxid) *ensemble.Membership {
	m, err := ensemble.Parse("server.1=h:1:2")
	if err != nil {
		panic(err)
	}
	return m.WithVersion(int64(version))
}

// broken is a sequence of observations of which the last one breaks a rule and no earlier
// one does.
type broken struct {
	rule  string
	rules func(h *History) Checker
	sees  func(h *History) []any
}

// brokenRules break each rule on purpose, because a checker that detects nothing is
// worthless.
var brokenRules = []broken{
	{"two leaders of one epoch", func(h *History) Checker { return newLeadership(h) }, func(_ *History) []any {
		return []any{Established{a, peerwire.Leading, 1, 0}, Established{b, peerwire.Following, 1, 0}, Established{b, peerwire.Leading, 1, 0}}
	}},
	{"a leader without what is committed", func(h *History) Checker { return newLeadership(h) }, func(h *History) []any {
		h.Add(setTxn(z(1, 1), "x"))
		return []any{Established{a, peerwire.Leading, 2, z(1, 1)}, Established{b, peerwire.Leading, 3, 0}}
	}},
	{"a committed membership that the history lacks", func(h *History) Checker { return newMemberships(h) }, func(h *History) []any {
		h.Add(setTxn(z(1, 2), "x"))
		return []any{Counts{Server: a, Committed: members(t0)}, Counts{Server: a, Committed: members(z(1, 1))}}
	}},
	{"a committed membership that the history lacks later", func(h *History) Checker { return newMemberships(h) }, func(h *History) []any {
		x := setTxn(z(1, 2), "x")
		h.Add(x)
		return []any{Counts{Server: a, Committed: members(z(1, 3))}, Committed{a, 1, x}, Committed{a, 1, setTxn(z(1, 4), "x")}}
	}},
	{"a membership that is not taken for committed although another one follows it", func(h *History) Checker { return newMemberships(h) }, func(*History) []any {
		logs := func(at wire.Zxid) Ordered {
			t := &record.Txn{TxnHeader: record.TxnHeader{Zxid: at, Type: wire.OpReconfig}, Body: &record.SetDataTxn{Data: []byte(members(at).String())}}
			return Ordered{Server: a, Duty: &replica.Duty{Append: []*record.Txn{t}}}
		}
		return []any{
			Counts{Server: a, Committed: members(t0), Proposed: members(z(1, 1))}, logs(z(1, 1)), logs(z(1, 2)),
			Counts{Server: a, Committed: members(t0), Proposed: members(z(1, 2))},
		}
	}},
	{"an older membership in one process", func(h *History) Checker { return newMemberships(h) }, func(h *History) []any {
		return []any{
			Counts{Server: a, Committed: members(z(2, 0))}, Restarted{Server: a}, Counts{Server: a, Committed: members(z(1, 0))},
			Counts{Server: a, Committed: members(z(3, 0))}, Counts{Server: a, Committed: members(z(2, 0))},
		}
	}},
	{"other content at the same zxid", func(h *History) Checker { return newPrefixConsistency(h) }, func(h *History) []any {
		t := setTxn(z(1, 1), "x")
		h.Add(t)
		return []any{Delivered{a, t, h.Sum(t)}, Delivered{b, setTxn(z(1, 1), "y"), h.Sum(setTxn(z(1, 1), "y"))}}
	}},
	{"a tree at a zxid of nobody", func(h *History) Checker { return newPrefixConsistency(h) }, func(h *History) []any {
		h.Add(setTxn(z(1, 1), "x"))
		return []any{Stands{a, z(1, 1), 0, 0}, Stands{b, z(2, 0), 0, 0}, Stands{b, z(1, 2), 0, 0}}
	}},
	{"delivered and never broadcast", func(*History) Checker { return newIntegrity() }, func(h *History) []any {
		t := setTxn(z(1, 1), "x")
		return []any{
			Established{a, peerwire.Leading, 1, 0}, Ordered{a, &replica.Duty{Append: []*record.Txn{t}}, false}, Delivered{b, t, h.Sum(t)},
			Delivered{b, setTxn(z(1, 2), "x"), 0},
		}
	}},
	{"broadcast by one that does not lead", func(*History) Checker { return newIntegrity() }, func(_ *History) []any {
		return []any{Established{a, peerwire.Leading, 1, 0}, Ordered{b, &replica.Duty{Append: []*record.Txn{setTxn(z(1, 1), "x")}}, false}}
	}},
	{"logged otherwise than broadcast", func(*History) Checker { return newIntegrity() }, func(_ *History) []any {
		return []any{
			Established{a, peerwire.Leading, 1, 0}, Ordered{a, &replica.Duty{Append: []*record.Txn{setTxn(z(1, 1), "x")}}, false},
			Ordered{b, &replica.Duty{Append: []*record.Txn{setTxn(z(1, 1), "y")}}, false},
		}
	}},
	{"one passed over", func(*History) Checker { return newAgreement() }, func(_ *History) []any {
		return []any{
			Delivered{a, setTxn(z(1, 1), "x"), 0}, Delivered{b, setTxn(z(1, 1), "x"), 0},
			Delivered{a, setTxn(z(1, 2), "x"), 0}, Delivered{a, setTxn(z(1, 3), "x"), 0}, Delivered{b, setTxn(z(1, 3), "x"), 0},
		}
	}},
	{"one that the others never delivered", func(*History) Checker { return newAgreement() }, func(_ *History) []any {
		return []any{Delivered{a, setTxn(z(1, 1), "x"), 0}, Delivered{a, setTxn(z(2, 1), "x"), 0}, Delivered{b, setTxn(z(1, 2), "x"), 0}}
	}},
	{"delivered out of order", func(*History) Checker { return newTotalOrder() }, func(_ *History) []any {
		return []any{Applies{a, setTxn(z(1, 2), "x")}, Applies{b, setTxn(z(1, 1), "x")}, Applies{a, setTxn(z(1, 1), "x")}}
	}},
	{"a gap in an epoch", func(*History) Checker { return newLocalPrimaryOrder() }, func(_ *History) []any {
		return []any{Applies{a, setTxn(z(1, 1), "x")}, Applies{a, setTxn(z(1, 3), "x")}}
	}},
	{"an epoch without its beginning", func(*History) Checker { return newLocalPrimaryOrder() }, func(_ *History) []any {
		return []any{Stands{a, z(1, 1), 0, 0}, Applies{a, setTxn(z(2, 2), "x")}}
	}},
	{"an earlier epoch behind a later one", func(*History) Checker { return newGlobalPrimaryOrder() }, func(_ *History) []any {
		return []any{Applies{a, setTxn(z(2, 1), "x")}, Applies{a, setTxn(z(1, 2), "x")}}
	}},
	{"a leader that did not deliver first", func(*History) Checker { return newPrimaryIntegrity() }, func(_ *History) []any {
		return []any{
			Stands{a, z(1, 1), 0, 0}, Ordered{a, &replica.Duty{Append: []*record.Txn{setTxn(z(2, 1), "x")}}, false},
			Committed{b, 1, setTxn(z(2, 1), "x")}, Committed{b, 2, setTxn(z(1, 2), "x")},
		}
	}},
	{"a hole in a log", func(*History) Checker { return newNoHole() }, func(_ *History) []any {
		return []any{
			Ordered{a, &replica.Duty{Append: []*record.Txn{setTxn(z(1, 1), "x"), setTxn(z(1, 2), "x")}}, false},
			Ordered{a, &replica.Duty{Truncate: &zab.Truncate{Zxid: z(1, 1)}, Append: []*record.Txn{setTxn(z(2, 1), "x")}}, false},
			Ordered{a, &replica.Duty{Append: []*record.Txn{setTxn(z(2, 3), "x")}}, false},
		}
	}},
	{"an epoch promised before it is saved", func(*History) Checker { return &durability{} }, func(_ *History) []any {
		disk := Durable{Accepted: 2, Current: 1}
		return []any{
			Promised{Server: a, Packet: &peerwire.QuorumPacket{Type: peerwire.PacketLeaderInfo, Zxid: z(2, 0)}, Disk: disk},
			Promised{Server: a, ByLearner: true, Packet: &peerwire.QuorumPacket{Type: peerwire.PacketAck, Zxid: z(1, 0)}, Disk: disk},
			Promised{Server: a, ByLearner: true, Packet: &peerwire.QuorumPacket{Type: peerwire.PacketAck, Zxid: z(2, 0)}, Disk: disk},
		}
	}},
	{"a transaction acknowledged before it is durable", func(*History) Checker { return &durability{} }, func(_ *History) []any {
		ack := &peerwire.QuorumPacket{Type: peerwire.PacketAck, Zxid: z(1, 1)}
		return []any{
			Promised{Server: a, ByLearner: true, Packet: ack, Disk: Durable{Zxid: z(1, 1)}},
			Promised{Server: a, ByLearner: true, Packet: ack},
		}
	}},
	{"logged behind a transfer of leadership", func(*History) Checker { return newLeadershipTransfers() }, func(_ *History) []any {
		return []any{transfers(a, b, 0), Ordered{a, &replica.Duty{Append: []*record.Txn{setTxn(z(1, 1), "x")}}, false}}
	}},
	{"pings behind a transfer of leadership", func(*History) Checker { return newLeadershipTransfers() }, func(_ *History) []any {
		ping := func(e wire.Epoch) Promised {
			return Promised{Server: a, Packet: &peerwire.QuorumPacket{Type: peerwire.PacketPing, Zxid: z(e, 0)}}
		}
		snapshot, waited := packetOf(0, false, peerwire.PacketSnap, z(1, 0), nil), ping(1)
		waited.Link = snapshot.Link
		return []any{ping(1), transfers(a, b, 0), ping(2), snapshot, waited, ping(1)}
	}},
	{"leadership transferred to one that lacks something", func(*History) Checker { return newLeadershipTransfers() }, func(_ *History) []any {
		other, wiped, named := transfers(a, b, 5), transfers(a, b, 5), transfers(a, b, 5)
		other.To.Server = a
		wiped.To.Wiped = true
		return []any{other, wiped, named}
	}},
	{"logged behind the beginning of a transfer of leadership", func(*History) Checker { return newLeadershipTransfers() }, func(_ *History) []any {
		logs := func(at wire.Zxid) Ordered {
			return Ordered{a, &replica.Duty{Append: []*record.Txn{setTxn(at, "x")}}, false}
		}
		return []any{TransferBegan{a, 1, z(1, 2)}, logs(z(1, 2)), logs(z(2, 1)), logs(z(1, 3))}
	}},
	{"leadership transferred to a silent server", func(*History) Checker { return newLeadershipTransfers() }, func(_ *History) []any {
		other, named := transfers(a, b, 0), transfers(a, b, 0)
		other.To.Server, other.SilentMS, named.SilentMS = 3, LeaseMS+1, LeaseMS+1
		return []any{transfers(a, b, 0), other, named}
	}},
	{"another tree", func(h *History) Checker { return equalDigest{h} }, func(h *History) []any {
		h.Add(setTxn(z(1, 1), "x"))
		return []any{Stands{a, z(1, 1), h.Last().Digest, 0}, Stands{b, z(1, 1), h.Last().Digest + 1, 0}}
	}},
	{"back behind what was shown", func(h *History) Checker { return nothingUndone{h} }, func(h *History) []any {
		h.Add(setTxn(z(1, 1), "x"))
		return []any{Stands{a, z(1, 1), 0, z(2, 0)}, Stands{a, 0, 0, z(2, 0)}}
	}},
	{"an ephemeral of nobody", func(h *History) Checker { return newEphemerals(h) }, func(_ *History) []any {
		create := &record.Txn{TxnHeader: record.TxnHeader{Session: 7, Zxid: z(1, 2), Type: wire.OpCreate}, Body: &record.CreateTxn{Path: "/e", Ephemeral: true}}
		return []any{Committed{a, 1, create}}
	}},
	{"an ephemeral that outlives its session", func(h *History) Checker { return newEphemerals(h) }, func(h *History) []any {
		open := &record.Txn{TxnHeader: record.TxnHeader{Session: 7, Zxid: z(1, 1), Type: wire.OpCreateSession}, Body: &record.CreateSessionTxn{TimeoutMS: 1}}
		create := &record.Txn{TxnHeader: record.TxnHeader{Session: 7, Zxid: z(1, 2), Type: wire.OpCreate}, Body: &record.CreateTxn{Path: "/e", Ephemeral: true, ACL: wire.OpenACL()}}
		end := &record.Txn{TxnHeader: record.TxnHeader{Session: 7, Zxid: z(1, 3), Type: wire.OpCloseSession}, Body: &record.CloseSessionTxn{}}
		h.Add(open)
		h.Add(create) // the end of the session is never applied
		return []any{Committed{a, 1, open}, Committed{a, 2, create}, Committed{a, 3, end}}
	}},
}

// transfers returns a packet with which a leader of epoch 1 names its successor.
func transfers(leader, to ensemble.ServerID, end wire.Zxid) Promised {
	named := &peerwire.QuorumPacket{Type: peerwire.PacketHandOver, Zxid: end, Data: wire.Append(nil, &peerwire.Handover{Leader: to})}
	return Promised{Server: leader, Packet: named, Epoch: 1, To: Receiver{Server: to}}
}

func TestEachRuleCanBeBroken(t *testing.T) {
	for _, b := range slices.Concat(brokenRules, brokenRequests, brokenClaims, brokenCommits, brokenBarriers, brokenWork, brokenCaches, brokenTreeWatches,
		brokenAnnouncements, brokenShares, brokenMultiLocks, brokenRegistrations, brokenLocals, brokenLeases, brokenExpiry, brokenFresh, brokenPromises, brokenElections, brokenMoves, brokenRemovals, brokenTerms, brokenReadOnly) {
		t.Run(b.rule, func(t *testing.T) {
			h := NewHistory(tree.New(tree.Options{Seed: 1, ExtendedTypes: true}))
			c := b.rules(&h)
			all := b.sees(&h)
			for i, o := range all {
				wrong := c.See(o)
				if last := i == len(all)-1; (wrong != "") != last {
					t.Errorf("%s says %q of observation %d of %d", c.Name(), wrong, i+1, len(all))
				}
			}
		})
	}
}
