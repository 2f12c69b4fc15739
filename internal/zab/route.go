package zab

import (
	"fmt"

	"bellwether/internal/fifo"
	"bellwether/internal/peerwire"
	"bellwether/wire"
)

// route says that an observer is connected to a follower, which passes on what the observer sends. Each
// connection has its own.
type route struct{ link LinkID } // of the follower

// registerObserver handles the news that an observer has connected to a follower, which passes on what the
// observer sends. From here on nothing counts that the observer has sent on another way: its
// clients may have left the connections on which they had sent those requests. The follower
// tells the observer to serve after the answer.
func (l *Leader) registerObserver(k *link, p *peerwire.QuorumPacket) string {
	o, ok := peerwire.OriginOf(p.Zxid)
	if !ok || k.observer || !k.native || k.state != linkServing {
		return "sent an observer that it cannot serve"
	}
	switch old := l.linkOf(o.Server); {
	case old == nil:
	case old == k || !old.observer || l.answers(old):
		l.answerRelay(k, p.Zxid, false)
		return ""
	default:
		l.drop(old, fmt.Sprintf("the same server has connected to server %d", k.server))
	}
	l.startRelays(k)
	l.routes[o.Server] = &route{k.id}
	l.answerRelay(k, p.Zxid, true)
	return ""
}

func (l *Leader) answerRelay(k *link, origin wire.Zxid, accepted bool) {
	l.send(k, &peerwire.QuorumPacket{Type: peerwire.PacketRelay, Zxid: origin, Data: wire.Append(nil, &peerwire.Relayed{Accepted: accepted})})
}

// startRelays notes that a follower serves observers. An observer can be a compatible peer, so from
// here on all syncs of the follower are answered in one order, as those of a compatible
// peer are.
func (l *Leader) startRelays(k *link) {
	if k.relays {
		return
	}
	k.relays = true
	all := l.pings.waiting
	l.pings.waiting = fifo.Queue[waiting]{}
	for all.Len() > 0 {
		if w := all.Pop(); w.link == k.id && w.reply == nil {
			k.syncs.Push(w)
		} else {
			l.pings.waiting.Push(w)
		}
	}
}

// inputOf returns the Input of a packet, with the server from which the packet comes. If a follower has
// passed the packet on for an observer that has connected elsewhere since, the packet has no effect,
// the follower is told so, and inputOf returns false.
func (l *Leader) inputOf(k *link, p *peerwire.QuorumPacket) (Input, bool) {
	in := Input{Link: k.id, Server: k.server, Native: k.native}
	o, passedOn := peerwire.OriginOf(p.Zxid)
	if !passedOn || k.observer {
		return in, true
	}
	in.Server, in.Native = o.Server, o.Native && k.native
	if !k.native {
		return in, true
	}
	if in.route = l.routes[o.Server]; in.route == nil || in.route.link != k.id {
		l.answerRelay(k, p.Zxid, false)
		return in, false
	}
	return in, true
}

// Connected reports whether the connection on which an input came still exists: the learner's, and that of the observer for
// which a follower has passed the input on. Otherwise its client may have left, and an input that has waited has no effect.
func (l *Leader) Connected(in *Input) bool {
	return l.links[in.Link] != nil && (in.route == nil || l.routes[in.Server] == in.route)
}
