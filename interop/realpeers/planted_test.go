package realpeers

import (
	"fmt"
	"slices"
	"testing"

	"bellwether/internal/peerwire"
	"bellwether/internal/sim"
	"bellwether/wire"
)

// TestDifferencesAreListed changes what the simulated server has sent in a recorded run, and
// checks that the comparison with ZooKeeper lists each change, and nothing else.
func TestDifferencesAreListed(t *testing.T) {
	rec, err := sim.Record(1, 1, []sim.Step{start(1), start(3), write(1, 1)})
	if err != nil {
		t.Fatal(err)
	}
	last := func(kind peerwire.PacketType) int {
		for i, e := range slices.Backward(rec.Exchanges) {
			if e.Sent && e.Packet != nil && e.Packet.Type == kind && e.Packet.Zxid.Counter() == 0 {
				return i
			}
		}
		t.Fatalf("there is no %v", kind)
		return -1
	}
	change := func(i int, do func(p *peerwire.QuorumPacket)) {
		p := *rec.Exchanges[i].Packet
		do(&p)
		rec.Exchanges[i].Packet = &p
	}
	change(last(peerwire.PacketFollowerInfo), func(p *peerwire.QuorumPacket) {
		p.Data = wire.Append(nil, &peerwire.LearnerInfo{Server: 1, Version: 0x20000})
	})
	change(last(peerwire.PacketAckEpoch), func(p *peerwire.QuorumPacket) { p.Zxid++ })
	i := last(peerwire.PacketAck) // the answer to UPTODATE
	rec.Exchanges = slices.Delete(rec.Exchanges, i, i+1)

	var lines []string
	for _, d := range repeat(t, rec, readKnowledge(t)) {
		lines = append(lines, fmt.Sprintf("%s: %s", d.by, d.text))
	}
	if want := []string{
		"the simulated server: FOLLOWERINFO 0.0 of server 1, protocol 0x20000, configuration 0x0",
		"the simulated server: ACKEPOCH 0.1 current epoch 0",
		"ZooKeeper: FOLLOWERINFO 0.0 of server 1, protocol 0x10000, configuration 0x0",
		"ZooKeeper: ACKEPOCH 0.0 current epoch 0",
		"ZooKeeper: ACK 1.0",
	}; !slices.Equal(lines, want) {
		t.Errorf("listed: %q", lines)
	}
}

// TestOnlyTheTableExplains checks which lines a row of the table explains.
func TestOnlyTheTableExplains(t *testing.T) {
	k := &knowledge{rows: []*knownDifference{
		rowOf("election", "LOOKING for server <n> with -1", nothing),
		rowOf("synchronisation", "NEWLEADER <e>.0 of <v>", "NEWLEADER <e>.0 of 0"),
	}}
	for _, c := range []struct {
		phase     phase
		want, got string
		explained bool
	}{
		{election, "LOOKING for server 1 with -1 of epoch 0", nothing, true},
		{election, "LOOKING for server 1 with 1.0 of epoch 0", nothing, false},
		{discovery, "LOOKING for server 1 with -1 of epoch 0", nothing, false},
		{synchronisation, "NEWLEADER 7.0 of 9 x", "NEWLEADER 7.0 of 0 x", true},
		{synchronisation, "NEWLEADER 7.0 of 9 x", "NEWLEADER 7.0 of 0 y", false},
		{synchronisation, "NEWLEADER 7.0 of 9", "NEWLEADER 8.0 of 0", false},
		{synchronisation, "NEWLEADER 7.0 of 9", nothing, false},
	} {
		if k.explains(c.phase, c.want, c.got) != c.explained {
			t.Errorf("%s: %q instead of %q: explained is %t", c.phase, c.got, c.want, !c.explained)
		}
	}
	if left := k.outlived(); len(left) != 0 {
		t.Errorf("not counted: %q", left)
	}
}
