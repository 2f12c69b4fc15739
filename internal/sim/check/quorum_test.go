package check

import (
	"testing"

	"bellwether/internal/ensemble"
)

// TestQuorumsOfCheckers checks that the checkers count quorums by groups and weights, and no servers without a vote.
func TestQuorumsOfCheckers(t *testing.T) {
	for _, x := range []struct {
		text string
		has  []ensemble.ServerID
		want bool
	}{
		{"server.1=h:1:2\nserver.2=h:3:4\nserver.3=h:5:6\nserver.4=h:7:8:observer", []ensemble.ServerID{1, 2}, true},
		{"server.1=h:1:2\nserver.2=h:3:4\nserver.3=h:5:6\nserver.4=h:7:8:observer", []ensemble.ServerID{1, 4}, false},
		{"server.1=h:1:2\nserver.2=h:3:4\nserver.3=h:5:6\nserver.4=h:7:8", []ensemble.ServerID{1, 2}, false},
		{"server.1=h:1:2\nserver.2=h:3:4\nserver.3=h:5:6\nserver.4=h:7:8\ngroup.1=1:2\ngroup.2=3\ngroup.3=4\nweight.1=0", []ensemble.ServerID{2, 3}, true},
		{"server.1=h:1:2\nserver.2=h:3:4\nserver.3=h:5:6\nserver.4=h:7:8\ngroup.1=1:2\ngroup.2=3\ngroup.3=4\nweight.1=0", []ensemble.ServerID{1, 3}, false},
	} {
		m, err := ensemble.Parse(x.text)
		if err != nil {
			t.Fatal(err)
		}
		has := func(id ensemble.ServerID) bool {
			for _, y := range x.has {
				if y == id {
					return true
				}
			}
			return false
		}
		if got := HasQuorum(m, has); got != x.want {
			t.Errorf("%q: %v are a quorum: %v", x.text, x.has, got)
		}
	}
}
