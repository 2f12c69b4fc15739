package sim

import (
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"

	"bellwether/internal/sim/check"
)

var fires = flag.String("fires", "", "rules, by commas, of which TestRuleFires looks for seeds that break them, each by itself")

// firesSeeds is how many seeds are tried for each rule. One seed in a hundred breaks the
// rule that is broken least often.
const firesSeeds = 1000

// TestRuleFires looks for a seed that breaks one of the chosen rules when no other rule is
// checked. None does, unless the code has a fault. Package bugs puts faults into the code
// and names the rules that must detect them. Without such names the disks do not lie: a lie
// excuses some violations, and another rule may be the one that notes them first.
func TestRuleFires(t *testing.T) {
	names, seeds, lies := strings.Split(*fires, ","), uint64(firesSeeds), 0
	if *fires == "" {
		names, seeds, lies = nil, 2, -1
		for _, c := range New(Options{Seed: 1}).checkers {
			names = append(names, c.Name())
		}
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed <= seeds; seed++ {
				if breaks(name, Options{Seed: seed, Lies: lies}) {
					t.Fatalf("seed %d breaks %s", seed, name)
				}
			}
		})
	}
}

// breaks reports whether a run breaks a rule when no other rule is checked.
func breaks(rule string, opt Options) (yes bool) {
	defer func() { // faulty code may well detect the fault itself and panic
		if p := recover(); p != nil {
			yes = false
		}
	}()
	s := New(opt)
	s.checkers = slices.DeleteFunc(s.checkers, func(c check.Checker) bool { return c.Name() != rule })
	s.nemesis.begin(s)
	for s.more() && s.step() {
	}
	s.recover()
	var f *Failure
	return errors.As(s.Failed(), &f) && f.Rule == rule
}
