package barrier

import (
	"errors"
	"maps"
	"slices"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// depart begins to leave. A repeated Depart begins anew, because it is unknown which of the earlier
// requests were carried out.
func (m *Member) depart() {
	if m.phase == Entering || m.Ending == claim.Succeeded || m.gone {
		return
	}
	m.phase, m.Ending, m.Failure, m.failed, m.Leaving = Departing, claim.Underway, nil, nil, false
	m.Asked, m.Outgoing, m.Pause = 0, nil, claim.Backoff{}
	m.there, m.waits, m.deleteOnly = nil, "", false
}

// planLeave deletes the member's znode and waits until the others of the round have left. The member with the
// lowest name leaves last, and removes ready.
func (m *Member) planLeave() {
	switch {
	case m.deleteOnly:
		m.Ask(func(res []claim.Result) {
			if !m.refused(res[0].Err, wire.ErrNoNode) {
				m.quit()
			}
		}, claim.Delete(m.own()))
	case m.cfg.Kazoo && !m.opened:
		m.Ask(func(res []claim.Result) { m.opened = !m.refused(res[0].Err, wire.ErrNoNode) }, claim.Delete(m.readyPath()))
	case m.round == nil:
		m.planRound()
	case m.there == nil:
		m.Ask(m.tookThere, claim.List(m.cfg.Path))
	default:
		m.planOut()
	}
}

// planRound finds out which members are present. A sync comes first in two cases. If the answer to the
// creation of the member's znode was lost, the server may not know that znode yet. If an event let the member in, the
// server may not know ready yet: the events of Apache's servers before 3.9 carry no zxid, so a client that
// reconnects cannot refuse a server that is behind.
func (m *Member) planRound() {
	ops := []claim.Op{claim.Get(m.readyPath()), claim.Get(m.own()), claim.List(m.cfg.Path)}
	if m.made && !m.byEvent {
		m.Ask(m.tookRound, ops...)
		return
	}
	m.Ask(func(res []claim.Result) {
		if !m.refused(res[0].Err) {
			m.tookRound(res[1:])
		}
	}, append([]claim.Op{claim.Sync(m.cfg.Path)}, ops...)...)
}

// tookRound finds out for which members to wait: those that are present now. Members that turn out to be
// younger than ready are removed later. A member that entered late waits for the others, but they do not
// wait for it.
func (m *Member) tookRound(res []claim.Result) {
	ready, own, list := res[0], res[1], res[2]
	for _, r := range res {
		if m.refused(r.Err, wire.ErrNoNode) {
			return
		}
	}
	if own.Err == nil {
		m.czxid = own.Stat.Czxid
	}
	m.round = map[string]bool{}
	switch {
	case m.cfg.Kazoo: // ready is already removed, so its czxid no longer tells which members are in the round
		m.since = 0
	case ready.Err == nil:
		m.since = ready.Stat.Czxid
		m.counted = m.czxid < m.since
	case m.late:
		m.tookThere(res[2:])
		return
	default:
		m.since = 0
	}
	for _, name := range Members(list.Names) {
		m.round[name] = true
	}
	m.tookThere(res[2:])
}

func (m *Member) tookThere(res []claim.Result) {
	if m.refused(res[0].Err, wire.ErrNoNode) {
		return
	}
	m.there = map[string]bool{}
	for _, name := range Members(res[0].Names) {
		m.there[name] = true
	}
}

// planOut makes the next request for leaving.
func (m *Member) planOut() {
	here := m.there[m.cfg.Name]
	in := slices.Sorted(maps.Keys(m.there))
	in = slices.DeleteFunc(in, func(n string) bool { return !m.round[n] || n == m.cfg.Name })
	switch {
	case len(in) == 0 && here && m.counted:
		m.Ask(m.tookLast, claim.Multi(m.cfg.Path, claim.Delete(m.readyPath()), claim.Delete(m.own())))
	case here && (m.withoutWaiting || len(in) == 0):
		m.Ask(m.tookOut, claim.Delete(m.own()))
	case m.withoutWaiting || len(in) == 0:
		m.quit()
	case here && m.stays() && m.cfg.Name < in[0]:
		m.await(in[len(in)-1])
	case m.waits == "":
		m.await(in[0]) // set the watch first: the others may leave as soon as this member's znode is deleted
	case here:
		m.Ask(m.tookOut, claim.Delete(m.own()))
	}
}

// stays reports whether the other members wait for this one.
func (m *Member) stays() bool { return m.counted || m.since == 0 }

// tookOut records that the member's znode is gone.
func (m *Member) tookOut(res []claim.Result) {
	if !m.refused(res[0].Err, wire.ErrNoNode) {
		delete(m.there, m.cfg.Name)
	}
}

// tookLast processes the deletion of ready and of the member's znode. If one of them is missing, another member
// has removed ready, or an earlier request whose answer was lost has deleted both.
func (m *Member) tookLast(res []claim.Result) {
	switch err := res[0].Err; {
	case errors.Is(err, wire.ErrNoNode):
		m.counted, m.there = false, nil
	case !m.refused(err):
		delete(m.there, m.cfg.Name)
	}
}

// await watches a member that is present, unless it is watched already.
func (m *Member) await(name string) {
	if m.waits == name {
		return
	}
	m.Ask(func(res []claim.Result) {
		switch r := res[0]; {
		case m.refused(r.Err, wire.ErrNoNode):
		case r.Err != nil:
			m.there = nil
		case m.since != 0 && r.Stat.Czxid > m.since: // that member belongs to no round yet, or entered late
			delete(m.round, name)
		default:
			m.waits = name
		}
	}, claim.Op{Kind: claim.OpWatch, Path: m.path(name)})
}
