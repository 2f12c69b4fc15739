package check

import (
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// termsOf is the rule over three voters, of which the third one is ZooKeeper's.
func termsOf(*History) Checker {
	p := three()
	p.servers[0].Current, p.servers[2].Compatible = 1, true
	return newTerms(p)
}

// joins says that b has accepted an epoch and joins a on link 1, and promisesTo that it promises epoch 2 with a history of an epoch.
func joins(kind peerwire.PacketType, accepted wire.Epoch) Promised {
	return packetOf(0, true, kind, z(accepted, 0), nil)
}

func promisesTo(current wire.Epoch, last wire.Zxid) Promised {
	p := packetOf(0, true, peerwire.PacketAckEpoch, last, &peerwire.EpochAck{CurrentEpoch: int32(current)})
	p.Term = 2
	return p
}

// beginsTerm says that a, whose log ends at 1.5, begins the term of epoch 2.
func beginsTerm() Promised {
	p := packetOf(0, false, peerwire.PacketNewLeader, z(2, 0), nil)
	p.Log = z(1, 5)
	return p
}

// leading says that a leads epoch 2 at the end of a batch.
func leading(mono int64, linked, ticked bool) Standing {
	return Standing{Server: a, Mono: mono, Serves: true, Leads: 2, Linked: linked, Ticked: ticked}
}

// brokenTerms are sequences of observations that break the rules of terms.
var brokenTerms = []broken{
	{"a leader of an earlier epoch is followed", termsOf, func(*History) []any {
		return []any{joins(peerwire.PacketFollowerInfo, 2), promisesTo(1, 0), joins(peerwire.PacketObserverInfo, 3), promisesTo(-1, 0)}
	}},
	{"a term begins with a promise of nobody", termsOf, func(*History) []any {
		return []any{promisesTo(-1, z(1, 5)), beginsTerm()}
	}},
	{"a term begins with the promise of a longer history", termsOf, func(*History) []any {
		return []any{promisesTo(1, z(1, 6)), beginsTerm()}
	}},
	{"a term begins with the promise of a history of a later epoch", termsOf, func(*History) []any {
		return []any{promisesTo(2, z(1, 4)), beginsTerm()}
	}},
	{"a term begins in a later epoch than was promised", termsOf, func(*History) []any {
		later := beginsTerm()
		later.Packet.Zxid = z(3, 0)
		return []any{promisesTo(1, z(1, 5)), beginsTerm(), later}
	}},
	{"a truncation crosses an epoch", termsOf, func(*History) []any {
		return []any{promisesTo(1, z(1, 5)), packetOf(0, false, peerwire.PacketTrunc, z(1, 3), nil), packetOf(0, false, peerwire.PacketTrunc, z(0, 3), nil)}
	}},
	{"a truncation at the end of an epoch", termsOf, func(*History) []any {
		cut, goesOn := packetOf(0, false, peerwire.PacketTrunc, z(1, 3), nil), packetOf(0, false, peerwire.PacketProposal, z(2, 1), nil)
		return []any{promisesTo(1, z(1, 5)), cut, packetOf(0, false, peerwire.PacketProposal, z(1, 4), nil), goesOn, cut, beginsTerm(), goesOn, cut, goesOn}
	}},
	{"an observer acknowledges a transaction", termsOf, func(*History) []any {
		ack, compatible := packetOf(0, true, peerwire.PacketAck, z(2, 1), nil), packetOf(0, true, peerwire.PacketAck, z(2, 1), nil)
		compatible.Server = 3
		return []any{joins(peerwire.PacketFollowerInfo, 1), ack, joins(peerwire.PacketObserverInfo, 1), packetOf(0, true, peerwire.PacketAck, z(2, 0), nil), compatible, ack}
	}},
	{"a leader goes on behind its replacement", termsOf, func(*History) []any {
		named := func(epoch wire.Epoch, p Promised) Promised { p.Epoch = epoch; return p }
		return []any{
			named(1, packetOf(0, false, peerwire.PacketCommitActivate, z(1, 1), &peerwire.Activation{Leader: b})), leading(0, true, true),
			named(2, packetOf(0, false, peerwire.PacketCommitActivate, z(2, 1), &peerwire.Activation{Leader: a})), leading(0, true, true),
			named(2, packetOf(0, false, peerwire.PacketCommitActivate, z(2, 2), &peerwire.Activation{Leader: b})), leading(0, true, true),
		}
	}},
	{"a leader goes on without a quorum of links", termsOf, func(*History) []any {
		return []any{
			leading(0, false, true), leading(100, true, false), leading(200, false, true), leading(300, false, true),
			leading(400, false, false), Standing{Server: a}, leading(500, false, true), leading(651, false, true),
		}
	}},
	{"a learner leaves a leader that was not silent", termsOf, func(*History) []any {
		return []any{LeftSilent{b, a, silenceLeast}, LeftSilent{b, a, silenceLeast - 1}}
	}},
}
