package sim

import (
	"flag"
	"testing"
	"time"

	"bellwether/internal/sim/client"
)

var handovers = flag.Int("handovers", handoversMin, "how many handovers are simulated")

// handoversMin is how many times a claim must pass to the next holder in each run of the
// test.
const handoversMin = 20_000

// handoverOptions returns options for many changes of holders. Holders keep their claims
// for about 10 ms, and are killed, stopped and cut off.
func handoverOptions(seed uint64) Options {
	return Options{
		Seed: seed, Events: 60_000, Recipe: client.Claims[seed%uint64(len(client.Claims))], TermMS: 10,
		Voters: 3, Observers: -1, Clients: -1, Candidates: 5, TickMS: 200,
	}
}

// TestHandovers lets claims pass from one holder to the next many times, in elections,
// plain locks, read-write locks and semaphores. It checks that there are never more holders
// than allowed, and that no token is accepted after a newer one. If the flag asks for more
// than the usual number, the runs use new seeds.
func TestHandovers(t *testing.T) {
	if *oneSeed != 0 {
		play(t, traced(t, handoverOptions(*oneSeed)))
		return
	}
	seed := uint64(0)
	if *handovers > handoversMin {
		seed = uint64(time.Now().UnixNano())
	}
	all := map[client.Recipe]int{}
	for n := 0; n < *handovers && !t.Failed(); seed++ {
		r := play(t, handoverOptions(seed+1))
		all[r.Options.Recipe] += r.Handovers
		n += r.Handovers
	}
	t.Logf("%v", all)
	for _, r := range client.Claims {
		if all[r] == 0 && !t.Failed() {
			t.Errorf("%s: nothing was handed over", r)
		}
	}
}
