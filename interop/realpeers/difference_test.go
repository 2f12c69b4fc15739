package realpeers

import (
	"fmt"

	"bellwether/internal/ensemble"
	"bellwether/internal/sim"
)

// difference is a line that only one of the two servers sends.
type difference struct {
	step  int
	did   sim.Step
	peer  ensemble.ServerID // the receiver
	by    side
	phase phase
	text  string
}

// side is one of the servers that are compared.
type side string

// The sides.
const (
	simulated side = "the simulated server"
	actual    side = "ZooKeeper"
)

// only returns a difference in the same place.
func (d difference) only(by side, ph phase, text string) difference {
	d.by, d.phase, d.text = by, ph, text
	return d
}

func (d difference) String() string {
	return fmt.Sprintf("after step %d (%v), to server %d, %s: only %s sends %s", d.step, d.did, d.peer, d.phase, d.by, d.text)
}

// differences returns the lines outside of a longest common subsequence, in order. A line and
// its known replacement count as the same.
func (k *knowledge) differences(d difference, ph phase, want, got []string) (all []difference) {
	common := k.commonLengths(ph, want, got)
	i, j := 0, 0
	for i < len(want) || j < len(got) {
		switch {
		case i < len(want) && j < len(got) && (want[i] == got[j] || k.explains(ph, want[i], got[j])):
			i, j = i+1, j+1
		case j == len(got) || i < len(want) && common[i+1][j] >= common[i][j+1]:
			all = append(all, d.only(simulated, ph, want[i]))
			i++
		default:
			all = append(all, d.only(actual, ph, got[j]))
			j++
		}
	}
	return all
}

// commonLengths returns the lengths of the longest common subsequences of a from i on and b
// from j on.
func (k *knowledge) commonLengths(ph phase, a, b []string) [][]int {
	n := make([][]int, len(a)+1)
	for i := range n {
		n[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if n[i][j] = max(n[i+1][j], n[i][j+1]); a[i] == b[j] || k.replaces(ph, a[i], b[j]) {
				n[i][j] = n[i+1][j+1] + 1
			}
		}
	}
	return n
}
