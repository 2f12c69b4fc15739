package sim

import (
	"fmt"
	"strings"
	"testing"

	"bellwether/internal/record"
	"bellwether/internal/sim/check"
	"bellwether/internal/sim/client"
	"bellwether/internal/sim/machine"
)

// registrationOutcomes counts the outcomes of registrations.
type registrationOutcomes map[string]int

func (registrationOutcomes) Name() string { return "RegistrationOutcomes" }

func (n registrationOutcomes) See(o any) string {
	switch e := o.(type) {
	case check.RegistrationState:
		switch {
		case e.Doubtful:
			n["doubts"]++
		case e.Stands:
			n["stands"]++
		case e.Foreign:
			n["waits"]++
		case e.Err != nil:
			n["expires"]++
		}
	case check.RegistrationRefused:
		n["refused"]++
	case check.RegistrationOver:
		n["leaves"]++
	case check.Committed:
		if m, ok := e.Txn.Body.(*record.MultiTxn); ok && !m.Failed() {
			n["takes over"]++
		}
	}
	return ""
}

// TestRegistrations lets registrants keep registrations under all faults while operators
// delete them. It checks that one stands at a time, with its data, that no registrant
// changes another's znode, and that in the end nothing is left of those that have left.
func TestRegistrations(t *testing.T) {
	all := registrationOutcomes{}
	for seed := range uint64(10) {
		s := New(Options{
			Seed: seed + 1, Events: 60_000, Recipe: client.Registration, TermMS: 300, Lies: -1,
			Voters: 3, Observers: -1, Clients: -1, Candidates: 4 + int(seed%2), TickMS: 200, SessionTicks: 8,
			rule: func() check.Checker { return all },
		})
		s.finish()
		if s.failed != nil {
			t.Fatalf("%v\n%s", s.failed, strings.Join(s.failed.Trace, "\n"))
		}
	}
	t.Log(all)
	for what, least := range map[string]int{"stands": 1000, "waits": 400, "doubts": 60, "expires": 20, "leaves": 300, "refused": 30, "takes over": 10} {
		if all[what] < least {
			t.Errorf("%s: %d, want %d", what, all[what], least)
		}
	}
}

// TestRegistrationCrashAtEveryStep crashes a registrant at every step of its registration
// while another waits for its place. It checks that its next process or the other
// registrant then stands there.
func TestRegistrationCrashAtEveryStep(t *testing.T) {
	const most = 40
	for at := 1; at <= most; at++ {
		s := newScene(t, Options{Seed: uint64(at)})
		s.opt.Recipe, s.opt.TermMS = client.Registration, 300
		for _, n := range []int{0, 2} { // both at the same place
			s.clients.Cast(s.scripted(nil), n)
		}
		first := s.clients.RegistrantClients()[0]
		first.Client().CrashAt = at
		s.until(fmt.Sprintf("step %d", at), 120*machine.Second, func() bool { return first.Client().Steps > at })
		s.calm = true
		s.finishRegistrations(recipeBound)
		if err := s.Failed(); err != nil {
			t.Fatalf("a crash at step %d: %v\n%s", at, err, strings.Join(s.trace.lines(), "\n"))
		}
	}
}
