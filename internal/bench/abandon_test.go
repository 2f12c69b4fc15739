package bench

import (
	"context"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/wire"
	"bellwether/zk"
)

// TestAbandon shows that no session is closed, that a session has its ephemeral znode, that connections which are held
// stay until they are ended, after a ping, and that the others end at once.
func TestAbandon(t *testing.T) {
	for _, hold := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l, ops := scripted(Load{}, time.Minute, succeed)
			var open atomic.Int32 // connections are opened side by side
			dial := l.Raw.Dial
			l.Raw.Dial = func(ctx context.Context, server string) (net.Conn, error) {
				open.Add(1)
				return dial(ctx, server)
			}
			_, end, err := Abandon{Setting: Setting{Raw: l.Raw, Root: "/root"}, Sessions: 3, Ephemerals: true, Hold: hold}.Run(t.Context())
			if err != nil || open.Load() != 3 {
				t.Fatal(open.Load(), err)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			end()
			for range 3 {
				if got := ops(); !slices.Equal(got, []wire.OpCode{wire.OpCreate, wire.OpPing}) {
					t.Errorf("hold %v: %v", hold, got)
				}
			}
		})
	}
}

// TestAbandonHolds shows when connections end.
func TestAbandonHolds(t *testing.T) {
	for _, hold := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l, _ := scripted(Load{}, time.Minute, succeed)
			ended := make(chan struct{}, 1)
			l.Raw.Dial = func(context.Context, string) (net.Conn, error) {
				client, server := net.Pipe()
				go func() { serveScript(server, time.Minute, succeed); ended <- struct{}{} }()
				return client, nil
			}
			_, end, err := Abandon{Setting: Setting{Raw: l.Raw}, Sessions: 1, Hold: hold}.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if early := len(ended) == 1; early == hold {
				t.Errorf("hold %v: the connection has ended: %v", hold, early)
			}
			end()
			<-ended
		})
	}
}

// TestAbandonFails shows that a refused create is an error, and that end closes what is open.
func TestAbandonFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, ops := scripted(Load{}, time.Minute, func(h wire.RequestHeader, _ int) []wire.Record {
			return []wire.Record{&wire.ReplyHeader{Xid: h.Xid, Err: zk.ErrNoNode}}
		})
		_, end, err := Abandon{Setting: Setting{Raw: l.Raw, Root: "/none"}, Sessions: 1, Ephemerals: true, Hold: true}.Run(t.Context())
		if err == nil {
			t.Error("a session without its znode")
		}
		end()
		ops()
	})
}
