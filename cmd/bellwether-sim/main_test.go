package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets the test binary also act as the program, when it is started under the program's name.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"bellwether-sim": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata", RequireExplicitExec: true, RequireUniqueNames: true})
}

// TestSeedsInTurn shows that the seed after the largest one is 1, because 0 would be drawn at random.
func TestSeedsInTurn(t *testing.T) {
	for seed, want := range map[uint64]uint64{1: 2, 1<<64 - 1: 1} {
		if got := following(seed); got != want {
			t.Errorf("after %d comes %d, want %d", seed, got, want)
		}
	}
}
