package interop

import (
	"context"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/zk"
)

// TestLeaseQuestion shows that a client can ask any server how old its knowledge of sessions
// can be. A server that knows the request answers it; another one treats it as an ordinary
// sync, also below a chroot. The answer is known when Connect returns.
func TestLeaseQuestion(t *testing.T) {
	eachShared(t, func(t *testing.T, s *target.Server) {
		ctx, cancel := context.WithTimeout(t.Context(), behaviourTimeout)
		defer cancel()
		c, err := zk.Connect(ctx, s.Addr+fresh("lease"), &zk.Options{SessionTimeout: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(context.Background())
		attached := c.State()
		l := c.Lease()
		if ours := s.Kind == target.Bellwether; l.DelayKnown != ours || (l.Left() > 0) != ours {
			t.Errorf("lease is %+v with %v left; want one that proves something: %v", l, l.Left(), ours)
		}
		select {
		case <-attached.Changed():
			t.Errorf("the connection did not last: %+v", c.State())
		default:
		}
	})
}
