package interop

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"bellwether/interop/target"
)

// TestMemberCommandsWithZooKeeper changes ensembles of Apache ZooKeeper, and mixed ones, with bellwether member: a follower
// leaves and comes back, becomes an observer and votes again, and then the leader leaves.
func TestMemberCommandsWithZooKeeper(t *testing.T) {
	t.Parallel()
	a, b := target.Apache, target.Bellwether
	for name, kinds := range map[string][]target.Kind{"apache": {a, a, a, a}, "mixed": {a, b, a, b}} {
		t.Run(name, func(t *testing.T) {
			e := &memberChange{t: t, Ensemble: target.EnsembleFor(t, target.EnsembleOptions{Kinds: kinds, Extra: map[string]string{"reconfigEnabled": "true", "initLimit": "20", "syncLimit": "10"}})}
			leader, err := e.AwaitWhole(reconfigMax)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range e.Servers {
				e.at = append(e.at, attach(t, s.Addr, electionTimeout))
			}
			moved := (leader + 1) % len(kinds)
			id := fmt.Sprint(moved + 1)
			e.member("remove "+id, "removed server "+id+", .*; any 1 server may fail")
			e.member("add "+e.line(moved), "(?s)added server "+id+" as an observer .*promoted server "+id+" to a participant .*voters 1 2 3 4")
			e.member("demote "+id, "demoted server "+id+" to an observer")
			e.member("promote "+id, "promoted server "+id+" to a participant .*voters 1 2 3 4")
			e.write("/changed")
			e.member(fmt.Sprintf("remove %d", leader+1), fmt.Sprintf("removed server %d, ", leader+1))
			e.write("/without-leader", leader)
			e.member("list", "(?m)^members version [0-9a-f]+; any 1 server may fail$")
		})
	}
}

// member runs bellwether member, whose output must match.
func (e *memberChange) member(args, want string) {
	e.t.Helper()
	binary, err := target.Binary()
	if err != nil {
		e.t.Fatal(err)
	}
	r := target.Script{Args: append([]string{binary, "member"}, append(strings.Fields(args), "--server", e.Addrs(), "--auth", "digest:super:"+target.Password)...)}.Run(e.t)
	e.t.Logf("member %s\n%s", args, r.Output())
	if r.Exit != 0 || !regexp.MustCompile(want).MatchString(r.Stdout) {
		e.t.Fatalf("member %s: exit status %d, want %s", args, r.Exit, want)
	}
}
