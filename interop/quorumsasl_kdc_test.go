package interop

import (
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"bellwether/interop/target"
)

// TestQuorumKDCAway shows what happens while no KDC answers. A ZooKeeper server ends at its start.
// A native server logs why it cannot connect to the others, asks again and again, and joins the
// others when the KDC answers. Servers that have tickets elect another leader without the KDC.
func TestQuorumKDCAway(t *testing.T) {
	k := startKDC(t)
	q := kerberosLogins(t, k, "")
	k.stop()

	apache, err := target.NewEnsemble(t.TempDir(), target.EnsembleOptions{Kinds: []target.Kind{target.Apache, target.Apache}, Extra: q.required(), Properties: q.properties})
	if err != nil {
		t.Fatal(err)
	}
	defer apache.Kill()
	if err := apache.Servers[0].Begin(); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, apache.Servers[0])
	if log := apache.Servers[0].Log(); !strings.Contains(log, "LoginException") {
		t.Errorf("ZooKeeper ends for another reason:\n%s", log)
	}

	silent, err := net.Listen("tcp", k.address) // the port accepts connections, but nobody answers
	if err != nil {
		t.Fatal(err)
	}
	e := target.EnsembleFor(t, target.EnsembleOptions{Kinds: []target.Kind{target.Bellwether, target.Bellwether, target.Bellwether}, Extra: q.required(), Properties: q.properties})
	awaitLog(t, e.Servers[2], "no ticket")
	began := time.Now()
	if err := e.Servers[0].Stop(); err != nil || time.Since(began) > 4*time.Second {
		t.Errorf("a server without a KDC needs %v to stop: %v", time.Since(began), err)
	}
	if err := e.Begin(); err != nil {
		t.Fatal(err)
	}
	silent.Close()
	k.serve(t)
	leader, err := e.AwaitWhole(electionWait)
	if err != nil {
		t.Fatal(err)
	}
	k.stop()
	e.Servers[leader].Kill()
	if _, err := e.AwaitLeader(time.Minute, leader); err != nil {
		t.Fatal(err)
	}
	k.serve(t)
	if err := e.Begin(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.AwaitWhole(electionWait); err != nil {
		t.Fatal(err)
	}
	writeAtEach(t, e, "/n")
}

// awaitLog waits until the log of a server has a text.
func awaitLog(t *testing.T, s *target.Server, text string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(electionWait); !strings.Contains(s.Log(), text); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("the log does not say %q", text)
		}
	}
}

// TestQuorumTicketsAreRenewed shows that servers whose tickets are valid for a few seconds can still
// log in to each other after that time.
func TestQuorumTicketsAreRenewed(t *testing.T) {
	k := startKDC(t)
	q := kerberosLogins(t, k, "-maxlife 6s")
	e := target.EnsembleFor(t, target.EnsembleOptions{Kinds: []target.Kind{target.Bellwether, target.Bellwether, target.Bellwether}, Extra: q.required(), Properties: q.properties})
	leader, err := e.AwaitWhole(electionWait)
	if err != nil {
		t.Fatal(err)
	}
	k.awaitTickets(t, 12) // for each server, two tickets at its start and two renewals
	follower := (leader + 1) % 3
	e.Servers[follower].Kill()
	if err := e.Begin(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.AwaitWhole(electionWait); err != nil {
		t.Fatal(err)
	}
	writeAtEach(t, e, "/n")
}

// awaitTickets waits until the KDC has given a number of tickets.
func (k *kdc) awaitTickets(t *testing.T, n int) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(electionWait); ; <-tick.C {
		log, err := os.ReadFile(k.file("kdc.log"))
		given := 0
		for line := range strings.Lines(string(log)) {
			if strings.Contains(line, ": ISSUE:") {
				given++
			}
		}
		if given >= n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d tickets instead of %d: %v\n%s", given, n, err, log)
		}
	}
}
