package sim

import (
	"bellwether/internal/claim/registry"
	"bellwether/internal/record"
	"bellwether/internal/sim/check"
	"bellwether/wire"
)

// brokenPlaces are sequences of observations that break the rule of registrations. Clients
// 1 and 3 are registrants of the first place, and client 2 is a registrant of the other. A
// client's session has the client's number.
var brokenPlaces = []broken{
	{"two who stand", placeRule, func(_ *check.History, s *Sim, a, _ *server) []any {
		return []any{
			lodges(a, 1, 5), standsBy(s, 1, 5, 1),
			sweeps(a, 2, 6), lodges(a, 3, 7), standsBy(s, 3, 7, 1), // the first registrant does not know yet
			ends(a, 3), lodges(a, 1, 8), standsBy(s, 1, 8, 1), // nor does the other
			sweeps(a, 1, 9), lodges(a, 4, 10), standsIn(s, 3, 4, 10, 1),
		}
	}},
	{"one who stands by another's znode", placeRule, func(_ *check.History, s *Sim, a, _ *server) []any {
		return []any{lodges(a, 3, 5), standsBy(s, 1, 5, 1)}
	}},
	{"one who stands with what was never written", placeRule, func(_ *check.History, s *Sim, a, _ *server) []any {
		return []any{lodges(a, 1, 5), standsBy(s, 1, 5, 1), redoes(a, 1, 6, 2), standsBy(s, 1, 5, 2), standsBy(s, 1, 5, 3)}
	}},
	{"another's znode deleted", placeRule, func(_ *check.History, s *Sim, a, _ *server) []any {
		return []any{
			lodges(a, 3, 5), sees(s, 3, 3, 0), sweeps(a, 2, 6), lodges(a, 1, 7), sweeps(a, 3, 8), // it had the same version
			lodges(a, 1, 9), redoes(a, 1, 10, 2), sweeps(a, 3, 11),
		}
	}},
	{"another's znode set", placeRule, func(_ *check.History, s *Sim, a, _ *server) []any {
		return []any{lodges(a, 1, 5), sees(s, 3, 1, 0), redoes(a, 3, 6, 1)}
	}},
	{"a znode of who has left", placeRule, func(_ *check.History, s *Sim, a, _ *server) []any {
		left := registrantLeft{s.registrants()[0], registry.RegistrantState{Session: 1}}
		expired := left
		expired.Err = wire.ErrSessionExpired
		return []any{lodges(a, 1, 5), expired, left}
	}},
}

func placeRule(_ *check.History, s *Sim) check.Checker {
	for i := range 3 {
		c := &client{sim: s, id: i + 1}
		t := newRegistrant(c, places[i%2])
		t.lives, t.mine = 1, []wire.SessionID{wire.SessionID(i + 1)}
		c.player = t
		s.clients = append(s.clients, c)
	}
	return newRegistrations(s)
}

// lodges, redoes and sweeps return the transactions by which a session creates, sets or
// deletes the znode of the first place. Session 4 is the next session of client 3.
func lodges(v *server, session wire.SessionID, at wire.Zxid) check.Committed {
	return placed(v, session, at, &record.CreateTxn{Path: places[0], Data: dataOf(session, 1), Ephemeral: true})
}

func redoes(v *server, session wire.SessionID, at wire.Zxid, n int) check.Committed {
	return placed(v, session, at, &record.SetDataTxn{Path: places[0], Data: dataOf(session, n), Version: int32(n) - 1})
}

func sweeps(v *server, session wire.SessionID, at wire.Zxid) check.Committed {
	return placed(v, session, at, &record.DeleteTxn{Path: places[0]})
}

func ends(v *server, session wire.SessionID) check.Committed {
	return placed(v, session, 0, &record.CloseSessionTxn{Paths: places[:1]})
}

func placed(v *server, session wire.SessionID, at wire.Zxid, body record.TxnBody) check.Committed {
	c := wrote(v, session, body)
	c.Txn.Zxid = at
	return c
}

func dataOf(session wire.SessionID, n int) []byte {
	t := &registrant{runner: runner{c: &client{id: int(min(session, 3))}}, lives: 1}
	return []byte(t.data(n))
}

// standsIn says that a client believes its registration stands in a session.
func standsIn(s *Sim, client int, session wire.SessionID, token wire.Zxid, n int) tenure {
	return tenure{s.registrants()[client-1], registry.RegistrantState{Stands: true, Session: session, Token: token, Have: n}}
}

func standsBy(s *Sim, client int, token wire.Zxid, n int) tenure {
	return standsIn(s, client, wire.SessionID(client), token, n)
}

// sees says that a client reads the stat of the znode of its place.
func sees(s *Sim, client int, owner wire.SessionID, version int32) answered {
	return answered{&call{client: s.clients[client-1], op: wire.OpExists, path: places[0],
		record: &wire.StatResponse{Stat: wire.Stat{EphemeralOwner: owner, Version: version}}}, response{}}
}
