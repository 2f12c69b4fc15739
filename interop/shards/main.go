// Command shards calculates what several ensembles behind one namespace, observers, or neither would give on the same
// machines: how many operations a second, and with which latency. The figures of docs/decisions/0032-one-ensemble.md come
// from it, and a test compares them with the page.
//
// It is a model of queues. Its constants are measured by make bench-report (the rows read, servers, observers and ceiling),
// except for the network. [capacity] divides what each core, disk and network card can do by what an operation asks of it.
// [simulate] runs operations with random arrivals through the same queues and measures how long they take.
package main

import (
	"fmt"
	"strings"
	"time"
)

// constants are the costs of operations.
type constants struct {
	read                 time.Duration // processor time of a getData
	leader, leaderEach   time.Duration // of a setData on the leader, and for each learner that it serves
	follower, observer   time.Duration // of a setData on them
	relayEach            time.Duration // on a follower, for each observer that learns from it
	fsync, fsyncEach     time.Duration // of a batch, and for each transaction in it
	network              time.Duration // one way between two machines; assumed
	cores                int           // of a machine; one of them carries out all writes of a server
	bandwidth            float64       // of a network card in bytes a second; assumed
	proposal, afterwards float64       // bytes that a leader sends a follower for a setData: PROPOSAL; COMMIT
}

// measured are the constants of 2026-11-27, rounded, from docs/performance.md: two cores of an AMD EPYC; 512 requests in
// flight; 100 bytes of data and a path of 16 bytes.
var measured = constants{
	read:   1700 * time.Nanosecond,
	leader: 8700 * time.Nanosecond, leaderEach: 1300 * time.Nanosecond,
	follower: 7700 * time.Nanosecond, observer: 5200 * time.Nanosecond, relayEach: 1300 * time.Nanosecond,
	fsync: 265 * time.Microsecond, fsyncEach: 1400 * time.Nanosecond,
	network: 100 * time.Microsecond, cores: 4, bandwidth: 1.25e9, proposal: 192, afterwards: 20,
}

// layout is a way to use machines.
type layout struct {
	name      string
	ensembles int     // each with the servers below, and a share of the namespace
	voters    int     // of each ensemble
	observers int     // of each ensemble
	masters   bool    // observers learn from followers
	across    float64 // the share of writes that concern two ensembles
}

// layouts are those of the page. The first one uses three machines, the others nine.
var layouts = []layout{
	{name: "one ensemble of 3 (three machines)", ensembles: 1, voters: 3},
	{name: "one ensemble of 9", ensembles: 1, voters: 9},
	{name: "3 voters, 6 observers", ensembles: 1, voters: 3, observers: 6},
	{name: "3 voters, 6 observers that learn from followers", ensembles: 1, voters: 3, observers: 6, masters: true},
	{name: "3 ensembles of 3, no write over two of them", ensembles: 3, voters: 3},
	{name: "3 ensembles of 3, 5% of the writes over two of them", ensembles: 3, voters: 3, across: 0.05},
	{name: "3 ensembles of 3, 20% of the writes over two of them", ensembles: 3, voters: 3, across: 0.2},
}

// Writes over two ensembles use two-phase commit: each of the two carries out a prepare and a decision.
const (
	phases   = 2
	involved = 2
)

// learners returns how many learners the leader serves itself.
func (l layout) learners() int {
	if l.masters {
		return l.voters - 1
	}
	return l.voters - 1 + l.observers
}

// relayed returns how many observers a follower serves, on average.
func (l layout) relayed() float64 {
	if !l.masters {
		return 0
	}
	return float64(l.observers) / float64(l.voters-1)
}

// leaderCost, followerCost are the processor times of a write.
func (c constants) leaderCost(l layout) time.Duration {
	return c.leader + time.Duration(l.learners())*c.leaderEach
}

func (c constants) followerCost(l layout) time.Duration {
	return c.follower + time.Duration(l.relayed()*float64(c.relayEach))
}

// capacity returns how many operations a second all ensembles can do together if this share of them are writes, and
// what limits them.
func capacity(c constants, l layout, writes float64) (perSecond float64, limit string) {
	// What one operation of the namespace asks of each server of one ensemble, on average.
	transactions := writes * (1 - l.across + l.across*phases*involved) / float64(l.ensembles)
	reads := (1 - writes) / float64(l.ensembles) / float64(l.voters+l.observers)
	cores := float64(c.cores)
	// One core carries out the writes. Reads are spread so that the servers are busy equally, as far as possible.
	leader, follower, observer := transactions*c.leaderCost(l).Seconds(), transactions*c.followerCost(l).Seconds(), transactions*c.observer.Seconds()
	all := leader + float64(l.voters-1)*follower + float64(l.observers)*observer + reads*float64(l.voters+l.observers)*c.read.Seconds()
	demands := []struct {
		what   string
		demand float64
	}{
		{"the leader's loop", leader},
		{"the cores", all / cores / float64(l.voters+l.observers)},
		{"the disk", transactions * c.fsyncEach.Seconds()},
		{"the leader's network", transactions * c.leaderBytes(l) / c.bandwidth},
	}
	most := demands[0]
	for _, d := range demands[1:] {
		if d.demand > most.demand {
			most = d
		}
	}
	return 1 / most.demand, most.what
}

// leaderBytes is what a leader sends for a write.
func (c constants) leaderBytes(l layout) float64 {
	followers := float64(l.voters - 1)
	return followers*(c.proposal+c.afterwards) + (float64(l.learners())-followers)*c.proposal
}

// The figures of the page.
var (
	shares   = []float64{0.001, 0.01, 0.1, 1} // writes among the operations
	loadOf   = 0.1                            // writes among the operations whose latency is simulated
	fraction = 0.7                            // of the capacity of the first layout
)

// simulated is how many operations are simulated.
const simulated = 40_000

// tables returns the tables of the page.
func tables(c constants) string {
	var b strings.Builder
	b.WriteString("| operations a second, limit |")
	for _, s := range shares {
		fmt.Fprintf(&b, " %g%% writes |", s*100)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(shares)) + "\n")
	for _, l := range layouts {
		fmt.Fprintf(&b, "| %s |", l.name)
		for _, s := range shares {
			n, limit := capacity(c, l, s)
			fmt.Fprintf(&b, " %s, %s |", thousands(n), limit)
		}
		b.WriteString("\n")
	}
	least, _ := capacity(c, layouts[0], loadOf)
	fmt.Fprintf(&b, "\n| latency at %s operations a second, %.0f%% writes | read p50, p99 | write p50, p99 | write over two ensembles p50, p99 |\n|---|---|---|---|\n",
		thousands(fraction*least), loadOf*100)
	for _, l := range layouts {
		r := simulate(c, l, loadOf, fraction*least, simulated, 1)
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", l.name, r.reads, r.writes, r.across)
	}
	return b.String()
}

// thousands rounds a number to thousands.
func thousands(n float64) string {
	k := int(n/1000 + 0.5)
	if k < 1000 {
		return fmt.Sprintf("%d,000", k)
	}
	return fmt.Sprintf("%d,%03d,000", k/1000, k%1000)
}

func main() { fmt.Print(tables(measured)) }
