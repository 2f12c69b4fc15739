package interop

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"bellwether/interop/target"
)

// TestEnsembleOfOneGrowsAndShrinks: with standaloneEnabled=false, a single server is an ensemble of one, and a client can
// change the members. It grows to three servers, one at a time, and shrinks to one again, with each kind of server and
// mixed. After each change all servers show the members and carry out writes. The last server leads alone, also after a
// restart, and the removed ones follow it.
func TestEnsembleOfOneGrowsAndShrinks(t *testing.T) {
	t.Parallel()
	a, b := target.Apache, target.Bellwether
	for name, kinds := range map[string][]target.Kind{"apache": {a, a, a}, "bellwether": {b, b, b}, "bellwether-first": {b, a, a}, "apache-first": {a, b, b}} {
		t.Run(name, func(t *testing.T) { growAndShrink(t, kinds) })
	}
}

func growAndShrink(t *testing.T, kinds []target.Kind) {
	ensemble, err := target.NewEnsemble(t.TempDir(), target.EnsembleOptions{Kinds: kinds, Observers: 2, Unlisted: true,
		Extra: map[string]string{"reconfigEnabled": "true", "standaloneEnabled": "false", "initLimit": "20", "syncLimit": "10"}})
	if err != nil {
		t.Fatal(err)
	}
	e := &memberChange{t: t, Ensemble: ensemble}
	t.Cleanup(func() {
		e.Kill()
		if t.Failed() {
			t.Log(target.Report(e.Servers...))
		}
	})
	for _, s := range e.Servers[1:] { // an observer would acknowledge nothing, and could not complete the quorum
		text, err := os.ReadFile(s.ConfigPath())
		if err != nil {
			t.Fatal(err)
		}
		votes := strings.ReplaceAll(strings.ReplaceAll(string(text), ":observer", ":participant"), "peerType=observer", "")
		if err := os.WriteFile(s.ConfigPath(), []byte(votes), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	e.starts(0)
	e.await("the first server leads alone", func() bool { return e.Servers[0].Role() == "leader" })
	e.write("/alone")
	for i := 1; i < len(kinds); i++ {
		e.starts(i)
		e.await(fmt.Sprintf("server %d follows", i+1), func() bool { return e.Servers[i].Role() == "follower" })
		e.change(fmt.Sprintf("server %d joins", i+1), func() string { return e.kazoo(0, e.line(i), "-", "-") }, without(i+1, len(kinds))...)
	}
	for i := len(kinds) - 1; i > 0; i-- {
		e.change(fmt.Sprintf("server %d leaves", i+1), func() string { return e.kazoo(0, "-", fmt.Sprint(i+1), "-") }, without(i, len(kinds))...)
	}
	e.Servers[0].Kill()
	if err := e.Servers[0].Begin(); err != nil {
		t.Fatal(err)
	}
	e.await("the last server leads alone again", func() bool { return e.Servers[0].Role() == "leader" })
	e.write("/alone-again", 1, 2)
	e.await("the removed servers follow it", func() bool { return e.Servers[1].Role() == "follower" && e.Servers[2].Role() == "follower" })
}

// without returns the numbers from first to the last of n servers.
func without(first, n int) (gone []int) {
	for i := first; i < n; i++ {
		gone = append(gone, i)
	}
	return gone
}

// starts starts a server and connects a client to it.
func (e *memberChange) starts(server int) {
	e.t.Helper()
	s := e.Servers[server]
	if err := s.Begin(); err != nil {
		e.t.Fatal(err)
	}
	e.await(fmt.Sprintf("server %d serves", server+1), func() bool { role := s.Role(); return role == "leader" || role == "follower" })
	e.at = append(e.at, attach(e.t, s.Addr, electionTimeout))
}
