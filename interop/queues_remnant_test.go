package interop

import (
	"slices"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/zk"
)

// TestDoubleBarrierRemnants shows what remains of a double barrier whose members die inside.
// If all die, the ready znode remains, Curator's as well as ours; a Curator member that leaves
// removes it. In either case, a new Bellwether member must not pass because of it.
func TestDoubleBarrierRemnants(t *testing.T) {
	program := curatorMember(t)
	eachTarget(t, func(t *testing.T, kind target.Kind) {
		s := target.StartFor(t, kind, target.Options{})
		for name, c := range map[string]struct {
			ours  []bool // says for each member whether it is a Bellwether member
			leave []int  // the members that leave; the others are killed inside
			stays bool   // the ready znode stays
		}{
			"all of Curator's die":           {[]bool{false, false, false}, nil, true},
			"all of ours die":                {[]bool{true, true, true}, nil, true},
			"Curator's leaves, the last die": {[]bool{false, true, true}, []int{0}, false},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				m := &meeting{t, s.Addr, fresh("remnant"), program}
				m.leavesBehind(c.ours, c.leave, c.stays)
			})
		}
	})
}

// curatorMember returns the command line of a Curator member.
func curatorMember(t *testing.T) []string {
	javac := target.Tool(t, "javac", "default-jdk-headless")
	java := target.Tool(t, "java", "default-jdk-headless")
	target.File(t, "/usr/share/java/curator-recipes.jar", "libcurator-recipes-java")
	classes := t.TempDir()
	target.Script{
		Args: []string{javac, "-Xlint:unchecked,deprecation,rawtypes", "-Werror", "-proc:none", "-cp", curatorPath, "-d", classes, "queues/Member.java"},
	}.Pass(t)
	return append(append([]string{java}, target.JVM...), "-cp", classes+":"+curatorPath, "Member")
}

func (m *meeting) leavesBehind(ours []bool, leave []int, stays bool) {
	t := m.t
	c := attach(t, m.addr, electionTimeout)
	var in []*remote
	for _, o := range ours {
		in = append(in, m.member(o))
	}
	for _, r := range in {
		r.await(t, "@in")
	}
	for i, r := range in {
		if !slices.Contains(leave, i) {
			r.kill()
		}
	}
	for _, i := range leave {
		if err := in[i].in.Close(); err != nil { // the end of its input tells the member to leave
			t.Fatal(err)
		}
		in[i].await(t, "@out")
	}
	if stays {
		m.awaitNames(c, func(names []string) bool { return slices.Equal(names, []string{"ready"}) })
	} else {
		m.awaitNames(c, func(names []string) bool { return len(names) == 0 })
	}
	first := m.member(true)
	m.awaitNames(c, func(names []string) bool { return len(names) == 1 && names[0] != "ready" })
	if len(first.lines) > 0 {
		t.Fatalf("a member passed because of what earlier members left: %s", <-first.lines)
	}
	next := []*remote{first, m.member(false), m.member(true)}
	for _, r := range next {
		r.await(t, "@in")
	}
}

// awaitNames waits until the children of the barrier are as expected.
func (m *meeting) awaitNames(c *zk.Client, wanted func([]string) bool) {
	m.t.Helper()
	var names []string
	for end := time.Now().Add(electionWait); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		var err error
		if names, _, err = c.Children(m.t.Context(), m.path); err == nil && wanted(names) {
			return
		}
	}
	m.t.Fatalf("%s has %v", m.path, names)
}
