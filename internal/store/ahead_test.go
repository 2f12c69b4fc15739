package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"bellwether/wire"
)

// TestEpochsAhead: saving an epoch whose file was prepared writes no file; saving any
// other epoch does. A prepared file is removed when the store is closed, and after a
// crash by the next start.
func TestEpochsAhead(t *testing.T) {
	for _, next := range []wire.Epoch{6, 9} {
		for _, taken := range []bool{false, true} {
			t.Run(fmt.Sprint(next, taken), func(t *testing.T) {
				d := newDriver(NewMem(1), Options{DataDir: "/data", PreallocBytes: -1})
				must(t, d.start())
				must(t, d.setEpochs(5, 5))
				must(t, d.s.WriteEpochsAhead())
				ahead := unfinished(t, d.m)
				if len(ahead) != 2 {
					t.Fatalf("written ahead: %v", ahead)
				}
				if taken {
					drop(t, d.m, ahead[0])
				}
				must(t, d.setEpochs(next, next))
				if next != 6 {
					must(t, d.s.WriteEpochsAhead())
				}
				d.m.Crash(0)
				after := d.verify(t, d.m)
				must(t, after.s.WriteEpochsAhead())
				if taken {
					drop(t, d.m, unfinished(t, d.m)[0])
				}
				must(t, after.s.Close())
				if left := unfinished(t, d.m); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
			})
		}
	}
}

func unfinished(t *testing.T, m *Mem) []string {
	return slices.DeleteFunc(names(t, m), func(name string) bool { return !strings.HasPrefix(name, tempPrefix) })
}
