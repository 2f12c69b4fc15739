package lines

import (
	"testing"

	"bellwether/wire"
)

// TestFence checks that a writer is refused after any newer token, and a reader only after a newer writer.
func TestFence(t *testing.T) {
	var f Fence
	for _, c := range []struct {
		reads    bool
		token    wire.Zxid
		newest   wire.Zxid
		admitted bool
	}{
		{false, 5, 0, true}, {false, 5, 5, true}, {false, 4, 5, false},
		{true, 4, 5, false}, {true, 9, 5, true}, {true, 7, 5, true},
		{false, 8, 9, false}, {false, 9, 9, true}, {true, 8, 9, false},
	} {
		admit := f.Admit
		if c.reads {
			admit = f.AdmitShared
		}
		if newest, ok := admit(c.token); newest != c.newest || ok != c.admitted {
			t.Errorf("%+v: admitted %v behind %v", c, ok, newest)
		}
	}
	if f.Seen() != 9 {
		t.Errorf("has seen %v", f.Seen())
	}
}
