package realpeers

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"bellwether/internal/peerwire"
	"bellwether/internal/sim"
)

// difference is a line that only one of the two runs has.
type difference struct {
	channel
	step sim.Step
	real bool   // it was sent in the real run
	by   string // what the sender is in the real run: ZooKeeper or Bellwether
	text string
}

func (d difference) String() string {
	run := "simulated"
	if d.real {
		run = "real"
	}
	return fmt.Sprintf("after step %d (%v), from %d to %d, %s: only the %s server (%s) sends %s", d.channel.step, d.step, d.from, d.to, d.phase, run, d.by, d.text)
}

// differences compares a recorded run with a real one.
func differences(rec *sim.Recording, simulated, actual texts) (all []difference) {
	var channels []channel
	for c := range simulated.of {
		channels = append(channels, c)
	}
	for c := range actual.of {
		if _, both := simulated.of[c]; !both {
			channels = append(channels, c)
		}
	}
	slices.SortFunc(channels, func(a, b channel) int {
		return cmp.Or(cmp.Compare(a.step, b.step), cmp.Compare(slices.Index(phases, a.phase), slices.Index(phases, b.phase)), cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	for _, c := range channels {
		d := difference{channel: c, step: rec.Steps[c.step].Step, by: "Bellwether"}
		switch rec.Compatible {
		case c.from:
			d.by = "ZooKeeper"
		case c.to:
		default:
			continue // both servers are Bellwether's
		}
		all = append(all, compared(d, simulated.of[c], actual.of[c])...)
	}
	return all
}

// compared returns the lines outside of a longest common subsequence, in order.
func compared(d difference, simulated, actual []string) (all []difference) {
	only := func(inReal bool, text string) {
		d.real, d.text = inReal, text
		all = append(all, d)
	}
	common := commonLengths(simulated, actual)
	i, j := 0, 0
	for i < len(simulated) || j < len(actual) {
		switch {
		case i < len(simulated) && j < len(actual) && simulated[i] == actual[j]:
			i, j = i+1, j+1
		case j == len(actual) || i < len(simulated) && common[i+1][j] >= common[i][j+1]:
			only(false, simulated[i])
			i++
		default:
			only(true, actual[j])
			j++
		}
	}
	return all
}

// commonLengths returns the lengths of the longest common subsequences of a from i on and b
// from j on.
func commonLengths(a, b []string) [][]int {
	n := make([][]int, len(a)+1)
	for i := range n {
		n[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if n[i][j] = max(n[i+1][j], n[i][j+1]); a[i] == b[j] {
				n[i][j] = n[i+1][j+1] + 1
			}
		}
	}
	return n
}

// TestDifferencesAreFound changes a recorded run in several ways, and checks that the
// comparison finds each change, and nothing in the unchanged run.
func TestDifferencesAreFound(t *testing.T) {
	s := scenarios[0]
	rec, err := sim.Record(1, s.compatible, s.steps)
	if err != nil {
		t.Fatal(err)
	}
	first := func(kind peerwire.PacketType) int {
		return slices.IndexFunc(rec.Packets, func(p sim.SentPacket) bool {
			return p.Packet != nil && p.Packet.Type == kind && (p.From == s.compatible || p.To == s.compatible)
		})
	}
	for name, change := range map[string]func(all []sim.SentPacket) []sim.SentPacket{
		"nothing": func(all []sim.SentPacket) []sim.SentPacket { return all },
		"a packet is missing": func(all []sim.SentPacket) []sim.SentPacket {
			i := first(peerwire.PacketAckEpoch)
			return slices.Delete(all, i, i+1)
		},
		"a packet is sent twice": func(all []sim.SentPacket) []sim.SentPacket {
			i := first(peerwire.PacketAck)
			return slices.Insert(all, i, all[i])
		},
		"a zxid": func(all []sim.SentPacket) []sim.SentPacket {
			i := first(peerwire.PacketCommit)
			p := *all[i].Packet
			p.Zxid++
			all[i].Packet = &p
			return all
		},
		"the history comes in another way": func(all []sim.SentPacket) []sim.SentPacket {
			i := first(peerwire.PacketDiff)
			p := *all[i].Packet
			p.Type = peerwire.PacketSnap
			all[i].Packet = &p
			return all
		},
		"votes": func(all []sim.SentPacket) []sim.SentPacket {
			for i := range all {
				if all[i].Notification != nil {
					n := *all[i].Notification
					n.PeerEpoch++
					all[i].Notification = &n
				}
			}
			return all
		},
	} {
		changed := textsOf(rec, change(slices.Clone(rec.Packets)))
		if found := differences(rec, textsOf(rec, rec.Packets), changed); (len(found) == 0) != (name == "nothing") {
			t.Errorf("%s: %v", name, found)
		}
	}
}
