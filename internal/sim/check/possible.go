package check

import (
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/internal/replica"
	"bellwether/wire"
)

// possibleLeaders checks that, as long as a proven deadline of a claim has not passed, every
// server that could be elected now has the claim's session, and that its log contains no
// end of that session, committed or not.
type possibleLeaders struct{ present Present }

func (possibleLeaders) Name() string { return "PossibleLeaders" }

func (c possibleLeaders) See(o any) string {
	switch e := o.(type) {
	case Ordered:
		return c.logged(e.Server, e.Duty)
	case TermBegan:
		if e.Proven {
			return c.everywhere(e.Holder)
		}
	case TermProven:
		if e.Proven && e.Left > 0 {
			return c.everywhere(e.Holder)
		}
	}
	return ""
}

// logged checks a server that logs the end of a session.
func (c possibleLeaders) logged(id ensemble.ServerID, d *replica.Duty) string {
	for _, t := range d.Append {
		if t.Type != wire.OpCloseSession {
			continue
		}
		for _, k := range c.present.Holders() {
			if k.Session == t.Session && electable(c.present.Servers(), id) {
				return fmt.Sprintf("server %d, which could be elected, logs the end of session %v of candidate %d, whose term still lasts %v",
					id, t.Session, k.Client, k.Left)
			}
		}
	}
	return ""
}

// everywhere checks all electable servers after a deadline was set or moved.
func (c possibleLeaders) everywhere(k Holder) string {
	all := c.present.Servers()
	for _, v := range all {
		if v.Up && electable(all, v.ID) && !v.WouldHave(k.Session) {
			return fmt.Sprintf("server %d, which could be elected, does not have session %v of candidate %d", v.ID, k.Session, k.Client)
		}
	}
	return ""
}

// electable reports whether a quorum could elect a server. A quorum can, if none of its
// members has more history than this server. A server whose disk was wiped elects nobody,
// and one without history elects no server that has one: until it has been synchronised, it
// only joins a leader that others have elected.
func electable(all []Server, id ensemble.ServerID) bool {
	v := find(all, id)
	supports := func(id ensemble.ServerID) bool {
		o := find(all, id)
		switch {
		case o == nil || !o.Started || o.Wiped || o.Current == 0 && v.Current > 0:
			return false
		case o.Current != v.Current:
			return o.Current < v.Current
		}
		return o.Zxid <= v.Zxid
	}
	return v.Started && v.Members != nil && v.Members.IsVoter(id) && HasQuorum(v.Members, supports) &&
		(v.Proposed == nil || HasQuorum(v.Proposed, supports))
}

// find returns the server with an id; nil: there is none.
func find(all []Server, id ensemble.ServerID) *Server {
	for i := range all {
		if all[i].ID == id {
			return &all[i]
		}
	}
	return nil
}
