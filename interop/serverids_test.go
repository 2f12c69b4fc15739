package interop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/zk"
)

// idsTimeout bounds each wait of these tests, on a busy machine.
const idsTimeout = 3 * time.Minute

// TestServerIDs starts three servers whose ids are 0 or larger than a byte, of one kind and
// mixed. Each must serve and report its own id, in four-letter words and in session ids. When
// the leader is killed, the other two must continue, server 0 included.
func TestServerIDs(t *testing.T) {
	t.Parallel()
	a, b := target.Apache, target.Bellwether
	for _, x := range []struct {
		ids   []int64
		kinds []target.Kind
	}{
		{[]int64{0, 1, 2}, []target.Kind{a, a, a}},
		{[]int64{0, 1, 2}, []target.Kind{b, b, b}},
		{[]int64{0, 1, 2}, []target.Kind{b, a, a}},
		{[]int64{0, 1, 2}, []target.Kind{a, b, b}},
		{[]int64{0, 255, 256}, []target.Kind{b, b, b}},
		{[]int64{0, 255, 256}, []target.Kind{b, a, b}},
	} {
		t.Run(fmt.Sprint(x.ids, x.kinds), func(t *testing.T) {
			t.Parallel()
			serveByIDs(t, x.ids, x.kinds)
		})
	}
}

func serveByIDs(t *testing.T, ids []int64, kinds []target.Kind) {
	e := target.EnsembleFor(t, target.EnsembleOptions{Kinds: kinds, IDs: ids, Extra: map[string]string{
		"initLimit": "50", "syncLimit": "20", "extendedTypesEnabled": "false"}})
	leader, err := e.AwaitWhole(idsTimeout)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range e.Servers {
		c, err := zk.Connect(t.Context(), s.Addr, nil)
		if err != nil {
			t.Fatalf("server %d: %v", ids[i], err)
		}
		defer c.Close(t.Context())
		if got := uint8(c.Session().ID >> 56); got != uint8(ids[i]) {
			t.Errorf("server %d gave out the session %v", ids[i], c.Session().ID)
		}
		if _, _, err := c.Create(t.Context(), fmt.Sprintf("/at-%d", ids[i]), nil, zk.Ephemeral); err != nil {
			t.Errorf("server %d: %v", ids[i], err)
		}
		want := fmt.Sprintf("\nserverId=%d\n", ids[i])
		if text, err := s.Word("conf"); !strings.Contains(text, want) {
			t.Errorf("server %d: %v: no %q in %s", ids[i], err, want, text)
		}
	}
	e.Servers[leader].Kill()
	if _, err := e.AwaitLeader(idsTimeout, leader); err != nil {
		t.Fatal(err)
	}
	for i, s := range e.Servers {
		if i == leader {
			continue
		}
		c, err := zk.Connect(t.Context(), s.Addr, nil)
		if err != nil {
			t.Fatalf("server %d: %v", ids[i], err)
		}
		defer c.Close(t.Context())
		if err := c.Sync(t.Context(), "/"); err != nil {
			t.Errorf("server %d: %v", ids[i], err)
		}
		if _, _, err := c.Create(t.Context(), fmt.Sprintf("/again-%d", ids[i]), nil); err != nil {
			t.Errorf("server %d: %v", ids[i], err)
		}
	}
}
