package check

import (
	"fmt"

	"bellwether/internal/claim/registry"
	"bellwether/internal/ensemble"
	"bellwether/internal/record"
	"bellwether/wire"
)

// brokenRegistrations are sequences of observations that break the rule of registrations. Clients
// 1 and 3 are registrants of the first place, and client 2 is a registrant of the other. A
// client's session has the client's number.
var brokenRegistrations = []broken{
	{"two who stand", placeRule, func(_ *History) []any {
		return []any{
			lodges(a, 1, 5), standsBy(1, 5, 1),
			sweeps(a, 2, 6), lodges(a, 3, 7), standsBy(3, 7, 1), // the first registrant does not know yet that its znode is gone
			ends(a, 3), lodges(a, 1, 8), standsBy(1, 8, 1), // the other registrant does not know it either
			sweeps(a, 1, 9), lodges(a, 4, 10), standsIn(3, 4, 10, 1),
		}
	}},
	{"one who stands by another's znode", placeRule, func(_ *History) []any {
		return []any{lodges(a, 3, 5), standsBy(1, 5, 1)}
	}},
	{"one who stands with what was never written", placeRule, func(_ *History) []any {
		return []any{lodges(a, 1, 5), standsBy(1, 5, 1), redoes(a, 1, 6, 2), standsBy(1, 5, 2), standsBy(1, 5, 3)}
	}},
	{"another's znode deleted", placeRule, func(_ *History) []any {
		return []any{
			lodges(a, 3, 5), sees(3, 3, 0), sweeps(a, 2, 6), lodges(a, 1, 7), sweeps(a, 3, 8), // it had the same version
			lodges(a, 1, 9), redoes(a, 1, 10, 2), sweeps(a, 3, 11),
		}
	}},
	{"another's znode set", placeRule, func(_ *History) []any {
		return []any{lodges(a, 1, 5), sees(3, 1, 0), redoes(a, 3, 6, 1)}
	}},
	{"a znode of who has left", placeRule, func(_ *History) []any {
		left := RegistrationOver{1, Places[0], registry.RegistrantState{Session: 1}}
		expired := left
		expired.Err = wire.ErrSessionExpired
		return []any{lodges(a, 1, 5), expired, left}
	}},
}

func placeRule(*History) Checker {
	var all []Registrant
	for i := range 3 {
		all = append(all, Registrant{i + 1, Places[i%2], []wire.SessionID{wire.SessionID(i + 1)}})
	}
	return newRegistrations(&present{registrants: all})
}

// lodges, redoes and sweeps return the transactions by which a session creates, sets or
// deletes the znode of the first place. Session 4 is the next session of client 3.
func lodges(v ensemble.ServerID, session wire.SessionID, at wire.Zxid) Committed {
	return placed(v, session, at, &record.CreateTxn{Path: Places[0], Data: dataOf(session, 1), Ephemeral: true})
}

func redoes(v ensemble.ServerID, session wire.SessionID, at wire.Zxid, n int) Committed {
	return placed(v, session, at, &record.SetDataTxn{Path: Places[0], Data: dataOf(session, n), Version: int32(n) - 1})
}

func sweeps(v ensemble.ServerID, session wire.SessionID, at wire.Zxid) Committed {
	return placed(v, session, at, &record.DeleteTxn{Path: Places[0]})
}

func ends(v ensemble.ServerID, session wire.SessionID) Committed {
	return placed(v, session, 0, &record.CloseSessionTxn{Paths: Places[:1]})
}

func placed(v ensemble.ServerID, session wire.SessionID, at wire.Zxid, body record.TxnBody) Committed {
	c := wrote(v, session, body)
	c.Txn.Zxid = at
	return c
}

func dataOf(session wire.SessionID, n int) []byte {
	return fmt.Appendf(nil, "%d.1.%d", min(session, 3), n)
}

// standsIn says that a client believes its registration stands in a session.
func standsIn(client int, session wire.SessionID, token wire.Zxid, n int) RegistrationState {
	return RegistrationState{client, Places[(client-1)%2], string(dataOf(session, n)), registry.RegistrantState{Stands: true, Session: session, Token: token, Have: n}}
}

func standsBy(client int, token wire.Zxid, n int) RegistrationState {
	return standsIn(client, wire.SessionID(client), token, n)
}

// sees says that a client reads the stat of the znode of its place.
func sees(client int, owner wire.SessionID, version int32) Answered {
	return Answered{Request: Request{Client: client, Op: wire.OpExists, Path: Places[0]}, Record: &wire.StatResponse{Stat: wire.Stat{EphemeralOwner: owner, Version: version}}}
}
