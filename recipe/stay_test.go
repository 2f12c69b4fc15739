package recipe

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/zk"
)

// stayer is the common part of an Item, a DoubleBarrier, a Hold and a Handle.
type stayer interface {
	Context() context.Context
	Left() time.Duration
	Proof() error
	Lost() error
}

// stays lists the objects that have a Context for as long as a znode of the client exists, and how each
// is given back.
var stays = map[string]func(t *testing.T, c *zk.Client) (h stayer, giveBack func(context.Context) error){
	"acknowledged": func(t *testing.T, c *zk.Client) (stayer, func(context.Context) error) {
		w := takeOne(t, made(NewWorkQueue(c, jobs, nil)))
		return w, func(ctx context.Context) error { return w.Ack(ctx) }
	},
	"released": func(t *testing.T, c *zk.Client) (stayer, func(context.Context) error) {
		w := takeOne(t, made(NewWorkQueue(c, jobs, nil)))
		return w, w.Release
	},
	"double barrier": func(t *testing.T, c *zk.Client) (stayer, func(context.Context) error) {
		d := made(NewDoubleBarrier(c, gate, 1, nil))
		if err := d.Enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		return d, d.Leave
	},
}

// TestStayEnds checks the end by the deadline, by the end of the session, by the close of the client
// before a server learns of it, and by giving it back.
func TestStayEnds(t *testing.T) {
	for name, begin := range stays {
		for _, by := range []struct {
			name string
			end  func(s *fakeServer, c *zk.Client, giveBack func(context.Context) error)
			why  Reason
		}{
			{"given back", func(s *fakeServer, _ *zk.Client, giveBack func(context.Context) error) {
				if err := giveBack(context.Background()); err != nil {
					s.t.Error(err)
				}
			}, Resigned},
			{"the session expires", func(s *fakeServer, c *zk.Client, _ func(context.Context) error) {
				s.expire(c.Session().ID)
				time.Sleep(time.Second)
			}, SessionExpired},
			{"no proof in time", func(s *fakeServer, c *zk.Client, _ func(context.Context) error) {
				s.setAway(true)
				s.cut(c)
				time.Sleep(10*time.Second - time.Second)
			}, LeaseLapsed},
			{"the client is closed", func(s *fakeServer, c *zk.Client, _ func(context.Context) error) {
				s.silence() // no server learns of it
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				_ = c.Close(ctx)
			}, SessionClosed},
		} {
			t.Run(name+"/"+by.name, func(t *testing.T) {
				bubble(t, func(t *testing.T, s *fakeServer) {
					s.put("/app", "")
					c := s.connect(zk.Options{})
					h, giveBack := begin(t, c)
					time.Sleep(time.Minute) // pings prove that the session is alive
					synctest.Wait()
					if left := h.Left(); h.Context().Err() != nil || h.Lost() != nil || h.Proof() != nil || left < 7*time.Second || left > 9*time.Second {
						t.Fatalf("context %v, lost %v, proof %v, left %v", h.Context().Err(), h.Lost(), h.Proof(), left)
					}
					by.end(s, c, giveBack)
					var lost *LostError
					if err := context.Cause(h.Context()); !errors.As(err, &lost) || lost.Reason != by.why || h.Left() > 0 || h.Lost() == nil {
						t.Errorf("ended by %v, left %v, lost %v", err, h.Left(), h.Lost())
					}
				})
			})
		}
	}
}

// TestStayWithoutProof checks what Proof returns if the session timeout is too short for a proof.
func TestStayWithoutProof(t *testing.T) {
	for name, begin := range stays {
		bubble(t, func(t *testing.T, s *fakeServer) {
			s.put("/app", "")
			h, _ := begin(t, s.connect(zk.Options{LeaseDelay: time.Minute}))
			if err := h.Proof(); !isA[*NoProof](err) || h.Left() <= 0 {
				t.Errorf("%s: proof %v, left %v", name, err, h.Left())
			}
		})
	}
}

// TestDoubleBarrierBeforeEnter checks that Left is 0 before the first Enter.
func TestDoubleBarrierBeforeEnter(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		d := made(NewDoubleBarrier(s.connect(zk.Options{}), gate, 1, nil))
		if d.Left() != 0 || !errors.Is(d.Lost(), ErrNotEntered) || !errors.Is(d.Proof(), ErrNotEntered) || !errors.Is(context.Cause(d.Context()), ErrNotEntered) {
			t.Errorf("left %v, lost %v, proof %v, ended by %v", d.Left(), d.Lost(), d.Proof(), context.Cause(d.Context()))
		}
	})
}
