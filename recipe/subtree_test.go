package recipe

import (
	"errors"
	"fmt"
	"testing"

	"bellwether/zk"
)

// TestEnsurePathAndDeleteRecursive checks that both succeed also when there is nothing left to do, and that
// DeleteRecursive deletes only the subtree and refuses system paths.
func TestEnsurePathAndDeleteRecursive(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		c := s.connect(zk.Options{})
		for range 2 {
			for i := range 300 {
				if err := c.EnsurePath(t.Context(), fmt.Sprintf("/app/jobs/%d/x", i)); err != nil {
					t.Fatal(err)
				}
			}
		}
		s.put("/apple", "")
		for range 2 {
			last, found := 0, 0
			progress := zk.DeleteProgress(func(n, of int) { last, found = n, of })
			if err := c.DeleteRecursive(t.Context(), "/app", zk.Batch(2), progress); err != nil || last != found {
				t.Fatalf("%d of %d deleted: %v", last, found, err)
			}
		}
		if names, _, err := c.Children(t.Context(), "/"); err != nil || len(names) != 1 || names[0] != "apple" {
			t.Errorf("left over: %q, %v", names, err)
		}
		for _, path := range []string{"/", "/zookeeper", "/zookeeper/quota", "x"} {
			if err := c.DeleteRecursive(t.Context(), path); !errors.Is(err, zk.ErrBadArguments) {
				t.Errorf("%s: %v, want ErrBadArguments", path, err)
			}
		}
	})
}
