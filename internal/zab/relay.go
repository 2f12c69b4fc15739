package zab

import (
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/wire"
)

// committed sends a transaction, which has just been committed, to the observers. If there is a
// designated leader, the transaction is a reconfiguration.
func (m *observerMaster) committed(t *record.Txn, designated *ensemble.ServerID) {
	var inform *peerwire.QuorumPacket
	for _, k := range m.order {
		if k.state < linkSyncing {
			continue
		}
		if inform == nil {
			inform = informOf(t, designated)
		}
		m.send(k, inform)
		k.upTo = t.Zxid
	}
	for _, k := range append([]*observer(nil), m.order...) {
		if k.state == linkPromised && !m.behind(k) {
			m.synchronise(k)
		}
	}
}

// request passes on a client's request that an observer has forwarded. The leader answers syncs in the
// order in which it got them from this follower, so the follower records whose they are. An observer that
// has no extension takes the answer to a sync as the confirmation of the sessions that it has reported before, so
// the leader must have read these sessions first.
func (m *observerMaster) request(k *observer, p *peerwire.QuorumPacket) string {
	q := new(peerwire.ForwardedRequest)
	if err := wire.Decode(p.Data, q); err != nil {
		return "sent a request that cannot be read: " + err.Error()
	}
	if k.state != linkServing {
		return "sent a request before it was told to serve"
	}
	passed := pendingSync{link: k.id}
	if q.Op == wire.OpSync && m.r.reportEarly() {
		passed.touches, passed.token = true, m.r.touches.token
	}
	m.r.send(&peerwire.QuorumPacket{Type: peerwire.PacketRequest, Zxid: k.origin().Zxid(), Data: p.Data, Auth: p.Auth})
	if q.Op == wire.OpSync {
		m.r.syncs.Push(passed)
	}
	return ""
}

// synced passes on the leader's answer to a sync of an observer.
func (m *observerMaster) synced(id LinkID) {
	if k := m.links[id]; k != nil && k.state == linkServing {
		m.send(k, &peerwire.QuorumPacket{Type: peerwire.PacketSync})
	}
}

// revalidate passes on the question whether a session may be resumed on an observer. It also goes to the
// replica, which closes a connection that the client has left.
func (m *observerMaster) revalidate(k *observer, p *peerwire.QuorumPacket) string {
	q := new(peerwire.Revalidation)
	if err := wire.Decode(p.Data, q); err != nil {
		return "sent a revalidation that cannot be read: " + err.Error()
	}
	if k.state != linkServing {
		return "sent a revalidation before it was told to serve"
	}
	m.r.send(&peerwire.QuorumPacket{Type: peerwire.PacketRevalidate, Zxid: k.origin().Zxid(), Data: p.Data})
	m.r.ready.Inputs = append(m.r.ready.Inputs, Input{Link: k.id, Server: k.server, Native: k.native, Revalidation: q})
	return ""
}

// revalidated passes on the leader's answer about a session. Both kinds of leaders repeat the
// origin of the question.
func (m *observerMaster) revalidated(o peerwire.Origin, p *peerwire.QuorumPacket) {
	if k := m.servers[o.Server]; k != nil && k.state == linkServing {
		m.send(k, &peerwire.QuorumPacket{Type: peerwire.PacketRevalidate, Zxid: -1, Data: p.Data})
	}
}

// answered handles an observer's answer to a ping. Its touched sessions are in this follower's
// next answer to a ping of the leader.
func (m *observerMaster) answered(k *observer, p *peerwire.QuorumPacket) string {
	var touched peerwire.TouchedSessions
	if err := wire.Decode(p.Data, &touched); err != nil {
		return "answered a ping in a way that cannot be read: " + err.Error()
	}
	m.reported(k, Touched{Sessions: touched.Sessions})
	return ""
}

// ping passes a ping of the leader on: to native observers each one, to others one each half
// tick. So an observer hears nothing while this follower hears nothing.
func (m *observerMaster) ping(z wire.Zxid) {
	m.checkLinks()
	for _, k := range m.order {
		due := k.native || !m.r.native || m.r.now-k.pinged >= m.r.opt.TickMS/2
		if k.state < linkSyncing || !due {
			continue
		}
		p := &peerwire.QuorumPacket{Type: peerwire.PacketPing, Zxid: z}
		if k.native {
			k.told = k.confirmed
			p.Data = wire.Append(nil, &peerwire.PingInfo{Confirmed: k.told})
		}
		k.pinged = m.r.now
		m.send(k, p)
	}
}
