package recipe

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"bellwether/wire"
	"bellwether/zk"
)

// TestConfigIsPublishedByTheLeader checks that members see each configuration with its token,
// that a change costs each member one event and one read, and that a former leader cannot
// publish.
func TestConfigIsPublishedByTheLeader(t *testing.T) {
	const path = parent + "/config"
	bubble(t, func(t *testing.T, s *fakeServer) {
		a, b := s.elect("a", &ElectionOptions{Leader: "/app/leader"}), s.elect("b", &ElectionOptions{Leader: "/app/leader"})
		ha := campaign(t, a)
		var seen []string
		member := s.connect(zk.Options{})
		go func() {
			for c, err := range WatchConfig(t.Context(), member, path, nil) {
				if err != nil {
					return
				}
				who := map[wire.Zxid]string{ha.Token(): "a"}[c.Token]
				seen = append(seen, fmt.Sprintf("%s%d:%s", who, c.Version, c.Data))
			}
		}()
		synctest.Wait()
		publish := func(h *Handle, data string) error {
			defer synctest.Wait()
			return PublishConfig(t.Context(), h, path, []byte(data), nil)
		}
		if err := publish(ha, "one\nline two"); err != nil {
			t.Fatal(err)
		}
		events, reads := s.eventCount(), s.readCount()
		if err := publish(ha, "two"); err != nil {
			t.Fatal(err)
		}
		if e, r := s.eventCount()-events, s.readCount()-reads; e != 1 || r != 2 { // the leader reads too
			t.Errorf("%d events, %d reads for a change", e, r)
		}
		s.change(path, "junk")
		synctest.Wait()
		lb := campaignLater(t.Context(), b)
		if err := a.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		hb := won(t, lb)
		if err := publish(ha, "late"); !errors.Is(err, ErrNotLeader) {
			t.Errorf("published by who led before: %v", err)
		}
		s.expire(member.Session().ID)
		synctest.Wait()
		if err := publish(hb, "three"); err != nil {
			t.Fatal(err)
		}
		waitForConnected(t, member)
		synctest.Wait()
		if want := []string{"a0:one\nline two", "a1:two", "3:three"}; !slices.Equal(seen, want) {
			t.Errorf("seen %q, want %q", seen, want)
		}
	})
}

func waitForConnected(t *testing.T, c *zk.Client) {
	t.Helper()
	if err := awaitConnected(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}
