package claim

import (
	"errors"
	"strings"
	"testing"
)

// TestOtherRecipe checks which recipe the names of a path's children show, and that a recipe may use the path only if it is that recipe, or one that may
// share its path.
func TestOtherRecipe(t *testing.T) {
	const bid, reader = hex32 + "-n_0000000007", hex32 + "-r_0000000008"
	shares := map[Kind]string{
		KindElection: "lock", KindLock: "read-write lock", KindReadWriteLock: "lock", KindTransaction: "lock, read-write lock",
		KindPartitioner: "lock, read-write lock", KindWork: "lock, read-write lock, partitioner",
	}
	all := []Kind{KindElection, KindLock, KindReadWriteLock, KindSemaphore, KindQueue, KindWorkQueue, KindTransaction, KindPartitioner, KindWork, KindDoubleBarrier, KindGroup}
	for _, c := range []struct {
		names string
		found Kind // empty: none
	}{
		{"", ""}, {"a b c", ""}, {"LEADER", ""}, {"n_0000000007", ""}, {"ready", ""}, {"members", ""}, {"entries", ""},
		{bid + " LEADER", KindElection}, {bid, KindLock}, {bid + " " + reader, KindReadWriteLock}, {reader, KindReadWriteLock}, {reader + " LEADER", KindElection},
		{"entries taken", KindWorkQueue}, {"entries taken " + bid, KindLock}, {"leases locks", KindSemaphore}, {"leases", ""}, {"members tasks", KindWork},
		{"members parts", KindPartitioner}, {"members parts tasks", KindWork}, {TxPrefix + hex32, KindTransaction}, {TxPrefix + "1", ""}, {"ready " + hex32, KindDoubleBarrier},
		{hex32, ""}, {"ready 01234567-89ab-cdef-0123-456789abcdef", KindDoubleBarrier}, {"entry-100-0000000007", KindQueue},
	} {
		names := strings.Fields(c.names)
		if got := recipeOf(names); got != c.found {
			t.Errorf("%q: %q, want %q", names, got, c.found)
		}
		for _, want := range all {
			err := OtherRecipe("/p", want, names)
			shared := c.found == "" || c.found == want
			for _, kind := range strings.Split(shares[want], ", ") {
				shared = shared || string(c.found) == kind
			}
			var other *OtherRecipeError
			if (err == nil) != shared || err != nil && (!errors.As(err, &other) || other.Path != "/p" || other.Want != string(want) || other.Found != string(c.found)) {
				t.Errorf("%q as %q: %v", names, want, err)
			}
		}
		if err := OtherThanGroup("/p", names); (err != nil) != strings.Contains(c.names, hex32+"-") {
			t.Errorf("%q as a group: %v", names, err)
		}
	}
}
