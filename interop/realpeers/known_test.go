package realpeers

import (
	"fmt"
	"regexp"
	"sync"
)

// knownDifference is a difference between simulated and real servers that is understood.
type knownDifference struct {
	simulated, real *regexp.Regexp // patterns of what only this server sends
	why             string
}

// known are the known differences. All of them occur in the scenarios.
var known = []knownDifference{
	{
		regexp.MustCompile(`^synchronisation, ZooKeeper: NEWLEADER \d+\.0 configuration [1-9a-f]00000000 of`),
		regexp.MustCompile(`^synchronisation, ZooKeeper: NEWLEADER \d+\.0 configuration 0 of`),
		"ZooKeeper gives the configuration the epoch as its version only if reconfigEnabled is true; the simulated leader always does",
	},
	{
		regexp.MustCompile(`^election, ZooKeeper: LOOKING for server \d with -1 of epoch 0,`),
		regexp.MustCompile(`^election, ZooKeeper: LOOKING for server \d with 0\.0 of epoch 0,`),
		"with an empty disk, the simulated server stands for no election, so that a wiped disk loses nothing; ZooKeeper's server votes as if it had never had a history",
	},
	{
		regexp.MustCompile(`^discovery, ZooKeeper: ACKEPOCH 0\.0 current epoch -1$`),
		regexp.MustCompile(`^discovery, ZooKeeper: ACKEPOCH 0\.0 current epoch 0$`),
		"with an empty disk, the simulated server promises no epoch, so that a wiped disk loses nothing; ZooKeeper's server does",
	},
}

// seen counts the known differences that have occurred.
var seen struct {
	sync.Mutex
	n [2]map[int]int // of simulated and real servers, by index in known
}

// explained returns why a difference is no fault of the simulation; an empty text: it is new.
func explained(d difference) string {
	text := fmt.Sprintf("%s, %s: %s", d.phase, d.by, d.text)
	for i, k := range known {
		pattern, side := k.simulated, 0
		if d.real {
			pattern, side = k.real, 1
		}
		if pattern.MatchString(text) {
			seen.Lock()
			defer seen.Unlock()
			if seen.n[side] == nil {
				seen.n[side] = map[int]int{}
			}
			seen.n[side][i]++
			return k.why
		}
	}
	return ""
}

// outlived returns the known differences that have not occurred.
func outlived() (all []string) {
	seen.Lock()
	defer seen.Unlock()
	for i, k := range known {
		if seen.n[0][i] == 0 || seen.n[1][i] == 0 {
			all = append(all, k.why)
		}
	}
	return all
}
