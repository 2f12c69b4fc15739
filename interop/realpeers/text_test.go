package realpeers

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"bellwether/internal/ensemble"
	"bellwether/internal/leasequery"
	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/internal/sim"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// phase is a part of the protocol.
type phase string

// The phases. Election contains all notifications, also those of servers that serve.
const (
	election        phase = "election"
	discovery       phase = "discovery"
	synchronisation phase = "synchronisation"
	broadcast       phase = "broadcast"
	acknowledgement phase = "broadcast, acknowledgements" // apart from requests, whose place between them is chance
)

var phases = []phase{election, discovery, synchronisation, broadcast, acknowledgement}

// channel is what one server sends to another in one phase of one step.
type channel struct {
	step     int
	phase    phase
	from, to ensemble.ServerID
}

// texts are the packets of a run as lines of text, without what may differ by chance:
//
//   - Pings, and the time at which a packet was sent.
//   - The notifications by which a server changes its mind: of a step, the last vote of the
//     server counts while it was looking for a leader, and that it told its vote later. The
//     round does not count.
//   - Notifications to and from servers that are down or cut off, and outdated ones.
//   - Syncs by which Bellwether's servers confirm sessions, and those by which the real
//     clients ask about leases.
//   - Links that end before the learner is up to date.
//   - Session ids, times, addresses, the identities of clients and their xids.
type texts struct {
	of         map[channel][]string
	unfinished int // links that are left out
}

func (t *texts) lines() (n int) {
	for _, lines := range t.of {
		n += len(lines)
	}
	return n
}

// textsOf returns the packets of a run, or of its repetition, as texts.
func textsOf(rec *sim.Recording, packets []sim.SentPacket) texts {
	t, steps := texts{of: map[channel][]string{}}, rec.Steps
	away := awayIn(steps)
	links := linksOf(packets)
	for _, l := range links {
		if !l.complete {
			t.unfinished++
		}
	}
	for _, p := range packets {
		if p.Packet == nil {
			gone := away[p.Step]
			if !gone[p.From] && !gone[p.To] && !outdated(steps, &p, gone) {
				t.vote(&p)
			}
			continue
		}
		if l := links[p.Link]; l.complete && !leftOut(rec, &p) {
			c := channel{p.Step, l.phase(&p), p.From, p.To}
			t.of[c] = append(t.of[c], packetText(p.Packet))
		}
	}
	return t
}

// awayIn returns, for each step, the servers that are down or cut off during or after it.
func awayIn(steps []sim.RecordedStep) []map[ensemble.ServerID]bool {
	all := make([]map[ensemble.ServerID]bool, len(steps))
	now := map[ensemble.ServerID]bool{}
	for id := range ensemble.ServerID(sim.RecordedServers) {
		now[id+1] = true
	}
	for i, s := range steps {
		switch s.Kind {
		case sim.StepStart, sim.StepJoin:
			delete(now, s.Server)
		case sim.StepKill, sim.StepCut, sim.StepCutWriting:
			now[s.Server] = true
		}
		all[i] = maps.Clone(now)
	}
	return all
}

// outdated reports whether a notification may belong to an earlier step: its sender follows
// a server that is gone, was cut off while it was looking for a leader, or sends its last
// vote again to a server that was started when there was a leader.
func outdated(steps []sim.RecordedStep, p *sim.SentPacket, gone map[ensemble.ServerID]bool) bool {
	s := steps[p.Step]
	if p.Notification.State != peerwire.Looking {
		return gone[p.Notification.Leader]
	}
	return s.Kind == sim.StepJoin || s.Kind == sim.StepStart && p.From != s.Server && p.Step > 0 && steps[p.Step-1].Leader != 0
}

// vote adds a notification.
func (t *texts) vote(p *sim.SentPacket) {
	n := p.Notification
	text := fmt.Sprintf("%v for server %d with %v of epoch %d", n.State, n.Leader, zxid(n.Zxid), n.PeerEpoch)
	if n.Version != peerwire.NotificationConfig {
		text += fmt.Sprintf(", version %d", n.Version)
	} else {
		text += ", " + configText(n.Config)
	}
	c := channel{p.Step, election, p.From, p.To}
	same := func(line string) bool { return strings.HasPrefix(line, n.State.String()+" ") }
	t.of[c] = append(slices.DeleteFunc(t.of[c], same), text)
}

// link is what texts know of a connection of a learner to its leader.
type link struct {
	leader   ensemble.ServerID
	complete bool // the learner was told that it is up to date
	upToDate bool // as complete, when the packets are read again
}

func linksOf(packets []sim.SentPacket) map[zab.LinkID]*link {
	all := map[zab.LinkID]*link{}
	for _, p := range packets {
		if p.Packet == nil {
			continue
		}
		if all[p.Link] == nil {
			all[p.Link] = &link{leader: p.To}
		}
		l := all[p.Link]
		l.complete = l.complete || p.Packet.Type == peerwire.PacketUpToDate
	}
	return all
}

// phase returns the phase to which a packet of the link belongs. The packets come in order.
func (l *link) phase(p *sim.SentPacket) phase {
	q := p.Packet
	switch {
	case q.Type == peerwire.PacketFollowerInfo, q.Type == peerwire.PacketObserverInfo, q.Type == peerwire.PacketLeaderInfo, q.Type == peerwire.PacketAckEpoch:
		return discovery
	case q.Type == peerwire.PacketUpToDate:
		l.upToDate = true
		return synchronisation
	case p.From == l.leader && !l.upToDate, q.Type == peerwire.PacketAck && q.Zxid.Counter() == 0:
		return synchronisation
	case q.Type == peerwire.PacketAck:
		return acknowledgement
	}
	return broadcast
}

// leftOut reports whether a packet is not compared.
func leftOut(rec *sim.Recording, p *sim.SentPacket) bool {
	switch p.Packet.Type {
	case peerwire.PacketPing, peerwire.PacketSync:
		return true
	case peerwire.PacketRequest:
		var q peerwire.ForwardedRequest
		if wire.Decode(p.Packet.Data, &q) != nil || q.Op != wire.OpSync {
			return false
		}
		var path wire.PathRequest
		asks := wire.Decode(q.Body, &path) == nil && path.Path == leasequery.Question
		return asks || p.From != rec.Compatible
	}
	return false
}

// zxid returns a zxid as text: epoch and counter.
func zxid(z wire.Zxid) string {
	if z < 0 {
		return fmt.Sprint(int64(z))
	}
	return fmt.Sprintf("%d.%d", z.Epoch(), z.Counter())
}

// packetText returns a packet as text.
func packetText(p *peerwire.QuorumPacket) string {
	return strings.TrimSpace(fmt.Sprintf("%v %s %s", p.Type, zxid(p.Zxid), dataText(p)))
}

// dataText returns the data of a packet as text.
func dataText(p *peerwire.QuorumPacket) string {
	decoded := func(r wire.Record, text func() string) string {
		if err := wire.Decode(p.Data, r); err != nil {
			return "unreadable: " + err.Error()
		}
		return text()
	}
	switch p.Type {
	case peerwire.PacketFollowerInfo, peerwire.PacketObserverInfo:
		var i peerwire.LearnerInfo
		return decoded(&i, func() string {
			return fmt.Sprintf("of server %d, protocol %#x, configuration %#x%s", i.Server, i.Version, i.ConfigVersion, extensionText(p.Data, peerwire.LearnerInfoLen))
		})
	case peerwire.PacketLeaderInfo:
		var i peerwire.LeaderInfo
		return decoded(&i, func() string {
			return fmt.Sprintf("protocol %#x%s", i.Version, extensionText(p.Data, peerwire.LeaderInfoLen))
		})
	case peerwire.PacketAckEpoch:
		var a peerwire.EpochAck
		return decoded(&a, func() string { return fmt.Sprintf("current epoch %d", a.CurrentEpoch) })
	case peerwire.PacketNewLeader:
		return configText(string(p.Data))
	case peerwire.PacketProposal, peerwire.PacketInform:
		return txnText(p.Data)
	case peerwire.PacketRequest:
		var q peerwire.ForwardedRequest
		return decoded(&q, func() string { return q.Op.String() })
	}
	if len(p.Data) > 0 {
		return fmt.Sprintf("%d bytes", len(p.Data))
	}
	return ""
}

// extensionText says whether there is an extension, or other bytes, behind a record.
func extensionText(data []byte, n int) string {
	if _, ok := peerwire.FindExtension(data, n); ok {
		return ", extension"
	}
	if len(data) != n {
		return fmt.Sprintf(", %d bytes", len(data))
	}
	return ""
}

// configText returns the members and the version of a configuration.
func configText(config string) string {
	var ids []string
	version := "none"
	for line := range strings.Lines(config) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if id, ok := strings.CutPrefix(key, "server."); ok {
			ids = append(ids, id)
		} else if key == "version" {
			version = value
		}
	}
	slices.Sort(ids)
	return fmt.Sprintf("configuration %s of servers %s", version, strings.Join(ids, ","))
}

// txnText returns a transaction as text.
func txnText(data []byte) string {
	t, err := record.DecodeTxn(data)
	if err != nil {
		return "unreadable: " + err.Error()
	}
	text := t.Type.String()
	switch b := t.Body.(type) {
	case *record.CreateTxn:
		text += fmt.Sprintf(" %s, parent %d", b.Path, b.ParentCversion)
	case *record.SetDataTxn:
		text += fmt.Sprintf(" %s, version %d", b.Path, b.Version)
	}
	if t.Digest == nil {
		text += ", no digest"
	}
	return text
}
