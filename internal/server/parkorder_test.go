package server

import (
	"slices"
	"testing"

	"bellwether/internal/peerwire"
	"bellwether/internal/replica"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// TestParkedRequestsKeepTheirOrder: a request of a learner that arrives when the disk has space again does
// not overtake the learner's earlier requests, which still wait.
func TestParkedRequestsKeepTheirOrder(t *testing.T) {
	const limit, link = 10 * packetCost, 1
	b := newInbox(limit)
	push := func(z wire.Zxid) {
		if err := b.pushPackets(link, []*peerwire.QuorumPacket{{Type: peerwire.PacketRequest, Zxid: z}}); err != nil {
			t.Fatal(err)
		}
	}
	b.log(limit)
	push(1)
	push(2)
	b.log(-limit / 2)
	push(3)
	var got []wire.Zxid
	for _, e := range b.take(nil) {
		got = append(got, e.event.(replica.Zab).Event.(zab.Received).Packet.Zxid)
	}
	if !slices.Equal(got, []wire.Zxid{1, 2, 3}) {
		t.Errorf("the loop gets the requests %v, want 1, 2, 3", got)
	}
}
