package realpeers

import (
	"maps"
	"slices"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/sim"
)

// awaitPacket waits for the packet that the simulated server has sent, or another one in
// its place. It returns false if none comes.
func (r *replay) awaitPacket(e sim.Exchange) bool {
	if r.clientMoves(e) {
		r.resume(r.rec.Steps[r.step].Session)
	}
	want, d := packetText(e.Packet), r.to(e.Peer)
	l := r.linkOf(e)
	if l == nil {
		r.found = append(r.found, d.only(simulated, discovery, want))
		return false
	}
	ph := phaseOf(e.Packet, l.leads, &l.upToDate)
	if l.snapshot && ph == synchronisation && (kind(want) == "PROPOSAL" || kind(want) == "COMMIT") {
		return true // the transactions are in the snapshot
	}
	l.want[ph] = append(l.want[ph], want)
	got, ok := r.next(l, ph, want)
	if !ok {
		r.compare(l, d)
		return false
	}
	l.snapshot = l.snapshot || kind(want) == "DIFF" && kind(got) == "SNAP"
	if e.Packet.Type == peerwire.PacketRequest {
		l.requests++
		r.set(func() { r.sessions.note(e.Packet.Data, l.learnerConn.requests[l.requests-1]) })
	}
	return true
}

// clientMoves reports whether a packet is the first that the client of a cut-off leader
// causes at ZooKeeper.
func (r *replay) clientMoves(e sim.Exchange) bool {
	s := r.rec.Steps[r.step]
	return s.Kind == sim.StepCutWriting && s.Server != r.rec.Compatible && !r.resuming &&
		e.Packet.Type == peerwire.PacketProposal && e.Packet.Zxid.Epoch() == s.Epoch
}

// next waits for the line in place of a recorded one: the next one of the same type, or one
// that is known to replace it.
func (r *replay) next(l *link, ph phase, want string) (got string, ok bool) {
	r.await(func() bool {
		rest := l.sent[ph][l.next[ph]:]
		at := slices.IndexFunc(rest, func(text string) bool { return kind(text) == kind(want) || r.known.replaces(ph, want, text) })
		if ok = at >= 0; ok {
			got = rest[at]
			l.next[ph] += at + 1
		}
		return ok || l.over
	})
	return got, ok
}

// compare lists the differences in what was sent on a connection since it was called last.
func (r *replay) compare(l *link, d difference) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ph := range phases {
		got := l.sent[ph][l.compared[ph]:]
		r.found = append(r.found, r.known.differences(d, ph, l.want[ph], got)...)
		l.want[ph] = nil
		l.compared[ph] += len(got)
		l.next[ph] = l.compared[ph]
	}
}

// awaitVote waits for a notification that the simulated server has sent, unless chance
// decides whether it is sent; then v is nil. It returns false if it does not come.
func (r *replay) awaitVote(v *vote) bool {
	if v == nil || r.known.explains(election, v.text, nothing) {
		return true
	}
	receivers := []ensemble.ServerID{v.peer}
	if v.replaced {
		receivers = slices.Collect(maps.Keys(r.peers))
	}
	got, ok := "", false
	r.await(func() bool {
		for _, id := range receivers {
			for _, n := range r.peers[id].sent {
				if got = voteText(n); got == v.text || r.known.replaces(election, v.text, got) {
					ok = true
					return true
				}
			}
		}
		return false
	})
	if !ok {
		r.listVotes(v)
		return false
	}
	r.votes.sentInstead(v.text, got)
	return got == v.text || r.known.explains(election, v.text, got)
}

// listVotes lists a notification that ZooKeeper has not sent, and all that it has sent.
func (r *replay) listVotes(v *vote) {
	r.found = append(r.found, r.to(v.peer).only(simulated, election, v.text))
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, p := range r.peers {
		for _, n := range p.sent {
			r.found = append(r.found, r.to(id).only(actual, election, voteText(n)))
		}
	}
}
