package sim

import (
	"flag"
	"testing"
	"time"
)

var handovers = flag.Int("handovers", handoversMin, "how many handovers are simulated")

// handoversMin is how many are simulated each time.
const handoversMin = 20_000

// handoverOptions make for many of them: holders keep their claims for some
// 10 ms, and are killed, stopped and cut off.
func handoverOptions(seed uint64) Options {
	return Options{
		Seed: seed, Events: 60_000, Recipe: Claims[seed%uint64(len(Claims))], TermMS: 10,
		Voters: 3, Observers: -1, Clients: -1, Candidates: 5, TickMS: 200,
	}
}

// Claims are handed over many times, over elections, locks, readers and
// writers, and semaphores: never are there more holders than may be, and no
// token is accepted behind a newer one. More than the usual number are
// simulated from seeds that nobody has run before.
func TestHandovers(t *testing.T) {
	if *oneSeed != 0 {
		play(t, traced(t, handoverOptions(*oneSeed)))
		return
	}
	seed := uint64(0)
	if *handovers > handoversMin {
		seed = uint64(time.Now().UnixNano())
	}
	all := map[Recipe]int{}
	for n := 0; n < *handovers && !t.Failed(); seed++ {
		r := play(t, handoverOptions(seed+1))
		all[r.Options.Recipe] += r.Handovers
		n += r.Handovers
	}
	t.Logf("%v", all)
	for _, r := range Claims {
		if all[r] == 0 && !t.Failed() {
			t.Errorf("%s: nothing was handed over", r)
		}
	}
}
