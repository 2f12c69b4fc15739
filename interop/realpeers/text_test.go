package realpeers

import (
	"fmt"
	"slices"
	"strings"

	"bellwether/internal/peerwire"
	"bellwether/internal/record"
	"bellwether/wire"
)

// phase is a part of the protocol.
type phase string

// The phases.
const (
	election        phase = "election"
	discovery       phase = "discovery"
	synchronisation phase = "synchronisation"
	broadcast       phase = "broadcast"
	acknowledgement phase = "broadcast, acknowledgements" // apart from the rest, because chance decides their place among requests
	syncs           phase = "broadcast, syncs"            // as well
)

// phaseOf returns the phase to which a packet of ZooKeeper belongs. The packets of a
// connection come in order.
func phaseOf(p *peerwire.QuorumPacket, leads bool, upToDate *bool) phase {
	switch {
	case p.Type == peerwire.PacketFollowerInfo, p.Type == peerwire.PacketLeaderInfo, p.Type == peerwire.PacketAckEpoch:
		return discovery
	case p.Type == peerwire.PacketUpToDate:
		*upToDate = true
		return synchronisation
	case leads && !*upToDate, p.Type == peerwire.PacketAck && p.Zxid.Counter() == 0:
		return synchronisation
	case p.Type == peerwire.PacketAck:
		return acknowledgement
	case p.Type == peerwire.PacketSync:
		return syncs
	}
	return broadcast
}

// voteText returns a notification as text.
func voteText(n *peerwire.Notification) string {
	text := fmt.Sprintf("%v for server %d with %v of epoch %d in round %d", n.State, n.Leader, zxid(n.Zxid), n.PeerEpoch, n.ElectionEpoch)
	if n.Version != peerwire.NotificationConfig {
		return fmt.Sprintf("%s, version %d", text, n.Version)
	}
	return text + ", " + configText(n.Config)
}

// phases are those of a connection between a learner and its leader.
var phases = []phase{discovery, synchronisation, broadcast, acknowledgement, syncs}

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
	case *record.ErrorTxn:
		text += fmt.Sprintf(" %v", b.Err)
	case *record.SetDataTxn:
		text += fmt.Sprintf(" %s, version %d", b.Path, b.Version)
	}
	if t.Digest == nil {
		text += ", no digest"
	}
	return text
}
