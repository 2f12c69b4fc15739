package interop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/recipe"
	"bellwether/zk"
)

// rosterKills is how many members are killed in each test.
const rosterKills = 4

// rosterKind says which groups the Bellwether member joins.
const (
	rosterAddr   = "ROSTER_ADDR"
	rosterPrefix = "ROSTER_PREFIX"
	rosterKind   = "ROSTER_KIND"
)

func init() {
	if addr := os.Getenv(rosterAddr); addr != "" {
		fmt.Println("failed:", rosterMain(addr, os.Getenv(rosterPrefix), os.Getenv(rosterKind)))
		os.Exit(1)
	}
}

// TestMembersKilledWithCurator kills members of a group and instances of a service at random;
// they belong to Bellwether and Curator and run in separate processes. The others, of both
// kinds, must see who is left, and see the killed one return.
func TestMembersKilledWithCurator(t *testing.T) {
	javac := target.Tool(t, "javac", "default-jdk-headless")
	java := target.Tool(t, "java", "default-jdk-headless")
	target.File(t, "/usr/share/java/curator-x-discovery.jar", "libcurator-discovery-java")
	classes := t.TempDir()
	target.Script{
		Args: []string{javac, "-Xlint:unchecked,deprecation,rawtypes", "-Werror", "-proc:none", "-cp", registryPath, "-d", classes, "registry/Roster.java"},
	}.Pass(t)
	program := append(append([]string{java}, target.JVM...), "-cp", classes+":"+registryPath, "Roster")
	eachTarget(t, func(t *testing.T, kind target.Kind) {
		checkMembers(t, target.StartFor(t, kind, target.Options{}), "curator", program)
	})
}

// TestMembersKilledWithKazoo does the same with kazoo's Party and ShallowParty.
func TestMembersKilledWithKazoo(t *testing.T) {
	target.File(t, "/usr/lib/python3/dist-packages/kazoo/client.py", "python3-kazoo")
	program := []string{debianPython, "-B", "registry/roster.py"}
	eachTarget(t, func(t *testing.T, kind target.Kind) {
		checkMembers(t, target.StartFor(t, kind, target.Options{}), "kazoo", program)
	})
}

func checkMembers(t *testing.T, s *target.Server, kind string, program []string) {
	prefix := fresh("roster-" + kind)
	mustCreate(t, attach(t, s.Addr, electionTimeout), prefix)
	start := func(id string) *remote {
		if id == "ours" {
			return startRemote(t, rosterAddr+"="+s.Addr, rosterPrefix+"="+prefix, rosterKind+"="+kind)
		}
		args := append(slices.Clone(program), s.Addr, prefix, id)
		return begin(t, exec.Command(args[0], args[1:]...))
	}
	ids := []string{"one", "ours", "two"} // in sorted order
	members := map[string]*remote{}
	for _, id := range ids {
		members[id] = start(id)
	}
	see := func(want []string) {
		t.Helper()
		for _, id := range want {
			for said := ""; said != strings.Join(want, ","); {
				said = members[id].await(t, "@sees")
			}
		}
	}
	see(ids)
	for range rosterKills {
		victim := ids[rand.IntN(len(ids))]
		members[victim].kill()
		see(slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == victim }))
		members[victim] = start(victim)
		see(ids)
	}
}

// rosterMain is the main function of the Bellwether member.
func rosterMain(addr, prefix, kind string) error {
	ctx := context.Background()
	c, err := zk.Connect(ctx, addr, &zk.Options{SessionTimeout: briefTimeout, LeaseDelay: electionTick})
	if err != nil {
		return err
	}
	join := func(name string, layout recipe.GroupNaming) (func() ([]string, error), error) {
		g, err := recipe.NewGroup(c, prefix+"/"+name, &recipe.GroupOptions{Naming: layout})
		if err == nil {
			_, err = g.Join(ctx, "ours", nil)
		}
		return func() (ids []string, err error) {
			all, err := g.Members(ctx)
			for _, m := range all {
				ids = append(ids, m.ID)
			}
			return ids, err
		}, err
	}
	if kind == "kazoo" {
		party, err1 := join("party", recipe.PartyNames)
		shallow, err2 := join("shallow", recipe.ShallowNames)
		return errors.Join(err1, err2, tellMembers(party, shallow))
	}
	group, err := join("group", recipe.MemberNames)
	if err != nil {
		return err
	}
	d, err := recipe.NewDiscovery(c, prefix+"/services", nil)
	if err != nil {
		return err
	}
	if _, err := d.Register(ctx, recipe.Instance{Name: "web", ID: "ours", Address: "ours.example", Port: 80}); err != nil {
		return err
	}
	p, err := d.Provider(ctx, "web", nil)
	if err != nil {
		return err
	}
	return tellMembers(group, func() (ids []string, err error) {
		for _, i := range p.All() {
			ids = append(ids, i.ID)
		}
		return ids, p.Cache().Err()
	})
}

// tellMembers prints the members whenever both sources agree.
func tellMembers(a, b func() ([]string, error)) error {
	for last := ""; ; <-time.After(10 * time.Millisecond) {
		left, err1 := a()
		right, err2 := b()
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		slices.Sort(left)
		slices.Sort(right)
		if now := strings.Join(left, ","); slices.Equal(left, right) && now != last {
			last = now
			fmt.Println("@sees", now)
		}
	}
}
