package zk

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"
)

// TestDialWithoutAConnectionIsAFailedAttempt: if Options.Dial returns neither a connection nor an error, Connect says
// so, and the client tries again.
func TestDialWithoutAConnectionIsAFailedAttempt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEnsemble(t)
		dials := 0
		dial := func(ctx context.Context, network, address string) (net.Conn, error) {
			if dials++; dials == 1 {
				return nil, nil
			}
			return e.dial(ctx, network, address)
		}
		c, err := Connect(t.Context(), "10.0.0.1", &Options{Dial: dial})
		if err != nil {
			t.Fatal(err)
		}
		c.stop()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		dial = func(context.Context, string, string) (net.Conn, error) { return nil, nil }
		if _, err = Connect(ctx, "10.0.0.1", &Options{Dial: dial}); !errors.Is(err, errNoConn) {
			t.Errorf("Connect returned %v", err)
		}
	})
}
