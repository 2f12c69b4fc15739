package main

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the tables into the page")

// page is the page with the tables, between two marks.
const (
	page  = "../../docs/decisions/0032-one-ensemble.md"
	begin = "<!-- cd interop && go test ./shards -update writes from here on -->\n"
	end   = "<!-- to here -->"
)

// TestPageShowsTheModel fails if the figures of the page are not those of the model.
func TestPageShowsTheModel(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	shown, tail, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatal("the page has no marks for the tables")
	}
	want := "\n" + tables(measured) + "\n"
	if *update {
		if err := os.WriteFile(page, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if shown != want {
		t.Errorf("the page shows other figures than the model; write them with -update:\n%s", want)
	}
}

// atOnce is how many operations a simulation of the capacity has: so many that queues grow visibly above it.
const atOnce = 40_000

// TestCapacityIsWhereLatencyGrows shows that the simulation agrees with the calculated capacity: well below it operations
// take about as long as in an idle ensemble, and above it they queue.
func TestCapacityIsWhereLatencyGrows(t *testing.T) {
	for _, l := range layouts {
		for _, writes := range []float64{0.1, 1} {
			most, limit := capacity(measured, l, writes)
			calm, full := simulate(measured, l, writes, 0.6*most, atOnce, 1), simulate(measured, l, writes, 1.3*most, atOnce, 1)
			longest := func(o outcome) time.Duration {
				all := append(append(append(latencies{}, o.reads...), o.writes...), o.across...)
				return all.at(1)
			}
			if a, b := longest(calm), longest(full); b < 2*a {
				t.Errorf("%s, %v writes: longest %v at 60%% of the capacity, %v at 130%% (%s)", l.name, writes, a, b, limit)
			}
			if len(calm.reads)+len(calm.writes)+len(calm.across) != atOnce {
				t.Errorf("%s: operations are lost", l.name)
			}
		}
	}
}

// TestIdleWriteTakesItsWay shows that a write without others takes the network, the leader, a follower and a disk, one after
// the other.
func TestIdleWriteTakesItsWay(t *testing.T) {
	c, l := measured, layout{ensembles: 1, voters: 3}
	o := simulate(c, l, 1, 10, 300, 1)
	disk := c.fsync + c.fsyncEach
	atLeader := 2*c.network + c.leaderCost(l) + 2*c.network + c.followerCost(l) + disk
	for _, d := range o.writes {
		if d != atLeader && d != atLeader+2*c.network {
			t.Fatalf("a write took %v, want %v or %v", d, atLeader, atLeader+2*c.network)
		}
	}
}

// TestMajorityIsEnough shows that a write waits for a majority of the voters, and for no more of them.
func TestMajorityIsEnough(t *testing.T) {
	for hung, want := range []int{100, 100, 100, 0} {
		w := newWorld(measured, layout{ensembles: 1, voters: 5, observers: 1}, 1)
		for i := range hung {
			w.groups[0].servers[1+i].disk.busy = true // its fsync never ends
		}
		if o := w.run(1, 10, 100); len(o.writes) != want {
			t.Errorf("%d of 5 disks hang: %d writes, want %d", hung, len(o.writes), want)
		}
	}
}

// TestWhatLimits shows the limits that the page argues with: observers add reads and no writes, voters cost writes, and
// ensembles add both as long as few writes concern two of them.
func TestWhatLimits(t *testing.T) {
	of := func(l layout, writes float64) float64 { n, _ := capacity(measured, l, writes); return n }
	three, nine, observers, shards := layouts[0], layouts[1], layouts[2], layouts[4]
	if of(observers, 0.001) < 2.8*of(three, 0.001) || of(observers, 1) > of(three, 1) || of(nine, 1) >= of(three, 1) {
		t.Error("observers add writes, or voters do, or observers add no reads")
	}
	if of(shards, 1) < 2.9*of(three, 1) {
		t.Error("ensembles do not add writes")
	}
	everything := shards
	everything.across = 1
	if of(everything, 1) > of(three, 1) {
		t.Error("ensembles still add writes if each write concerns two of them")
	}
}
