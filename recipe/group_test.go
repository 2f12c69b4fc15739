package recipe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/zk"
)

const groupPath = "/app/group"

func ids(members []Member) []string {
	out := []string{}
	for _, m := range members {
		out = append(out, m.ID)
	}
	return out
}

func join(t *testing.T, s *fakeServer, id string, o *GroupOptions) *Registration {
	t.Helper()
	r, err := made(NewGroup(s.connect(zk.Options{}), groupPath, o)).Join(t.Context(), id, []byte("at "+id))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.cancel(); <-r.done })
	return r
}

// TestGroupOfEachNaming checks that members join, leave, and disappear with their sessions.
func TestGroupOfEachNaming(t *testing.T) {
	for _, naming := range []GroupNaming{MemberNames, PartyNames, ShallowNames} {
		bubble(t, func(t *testing.T, s *fakeServer) {
			o := &GroupOptions{Naming: naming}
			g := made(NewGroup(s.connect(zk.Options{}), groupPath, o))
			check := func(want ...string) {
				t.Helper()
				got, err := g.Members(t.Context())
				if err != nil || !slices.Equal(ids(got), want) {
					t.Errorf("naming %d: members %v, %v; want %v", naming, ids(got), err, want)
				}
			}
			check()
			b, a := join(t, s, "b", o), join(t, s, "a", o)
			check("a", "b")
			for _, name := range s.bids(groupPath) {
				if ok := strings.HasSuffix(name, "__party__"); ok != (naming == PartyNames) {
					t.Errorf("naming %d has a member %s", naming, name)
				}
			}
			s.put(groupPath+"/persistent", "no member")
			check("a", "b")
			if err := b.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			check("a")
			was := a.Status()
			s.expire(was.Session)
			for st := was; st.Session == was.Session; {
				st = awaitStanding(t, st, Stands)
			}
			check("a")
		})
	}
}

// TestGroupWatchHasNoHerd checks that a change costs each watcher one event, and one read only if a member
// has joined.
func TestGroupWatchHasNoHerd(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		s.put("/app", "")
		s.put(groupPath, "")
		const watchers = 5
		seen := make([][]string, watchers)
		for i := range watchers {
			g := made(NewGroup(s.connect(zk.Options{}), groupPath, nil))
			go func() {
				for members, err := range g.Watch(t.Context()) {
					if err != nil {
						return
					}
					seen[i] = ids(members)
				}
			}()
		}
		synctest.Wait()
		events, reads := s.eventCount(), s.readCount()
		a := join(t, s, "a", nil)
		synctest.Wait()
		if e, r := s.eventCount()-events, s.readCount()-reads; e != watchers || r != watchers+1 { // the member reads itself
			t.Errorf("%d events and %d reads for a member that came, with %d watchers", e, r, watchers)
		}
		for i := range seen {
			if !slices.Equal(seen[i], []string{"a"}) {
				t.Errorf("watcher %d sees %v", i, seen[i])
			}
		}
		events, reads = s.eventCount(), s.readCount()
		if err := a.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if e, r := s.eventCount()-events, s.readCount()-reads; e != watchers+1 || r != 1 {
			t.Errorf("%d events and %d reads for a member that left, with %d watchers", e, r, watchers)
		}
		for i := range seen {
			if len(seen[i]) != 0 {
				t.Errorf("watcher %d sees %v", i, seen[i])
			}
		}
	})
}

// TestGroupWatchOfABurst checks that a slow reader receives many changes at once.
func TestGroupWatchOfABurst(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		var seen []int
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for members, err := range made(NewGroup(s.connect(zk.Options{}), groupPath, nil)).Watch(ctx) {
			if err != nil {
				break // the minute is over
			}
			if seen = append(seen, len(members)); len(seen) > 1 {
				continue
			}
			for i := range 100 {
				join(t, s, fmt.Sprint("m", i), nil)
			}
			s.put(groupPath+"/persistent", "no member")
			synctest.Wait()
		}
		if !slices.Equal(seen, []int{0, 100}) {
			t.Errorf("members as seen: %v, want all 100 at once", seen)
		}
	})
}

// TestMemberWithoutDataHasEmptyData checks that a member without data has empty data, because Curator's
// GroupMember fails on null. TestRegistryWithCurator of interop found this.
func TestMemberWithoutDataHasEmptyData(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		r, err := made(NewGroup(s.connect(zk.Options{}), groupPath, nil)).Join(t.Context(), "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close(t.Context())
		s.mu.Lock()
		defer s.mu.Unlock()
		if data := s.nodes[groupPath+"/a"].data; data == nil {
			t.Error("the data is null")
		}
	})
}

// TestGroupRefusesIDs checks that ids that cannot be names of znodes are refused.
func TestGroupRefusesIDs(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		g := made(NewGroup(s.connect(zk.Options{}), groupPath, nil))
		for _, id := range []string{"", "a/b"} {
			if _, err := g.Join(t.Context(), id, nil); err == nil {
				t.Errorf("joined as %q", id)
			}
		}
	})
}
