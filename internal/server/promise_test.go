package server

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"bellwether/wire"
)

// TestAnsweredPingIsAPromise: after an answered ping the session lives for its whole
// timeout from the moment when the ping was sent. Clients that ping at about the interval
// of their timeout never see less.
func TestAnsweredPingIsAPromise(t *testing.T) {
	const timeout = 100 * time.Millisecond
	s := start(t, quick())
	var wg sync.WaitGroup
	expired := make([]int, 40)
	for i := range expired {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(7, uint64(i)))
			for range 8 {
				c, begin := s.dial(), time.Now()
				c.handshake(wire.ConnectRequest{TimeoutMS: int32(timeout.Milliseconds()), Password: make([]byte, 16)})
				if lived := c.pingUntilExpired(rng, begin, timeout); lived > 0 && lived < timeout {
					t.Errorf("the session ended %v after an answered ping was sent", lived)
				} else if lived > 0 {
					expired[i]++
				}
			}
		})
	}
	wg.Wait()
	total := 0
	for _, n := range expired {
		total += n
	}
	t.Logf("%d sessions expired", total)
	if total == 0 {
		t.Error("no session expired: the test has shown nothing")
	}
}

// pingUntilExpired pings at random moments until the connection is closed or it has
// pinged often enough. It returns how long the session lived after the last answered ping
// (or the handshake); 0 if it did not end.
func (c *client) pingUntilExpired(rng *rand.Rand, last time.Time, timeout time.Duration) time.Duration {
	sent := make(chan time.Time, 16) // capacity above the number of pings
	lived := make(chan time.Duration, 1)
	go func() {
		for {
			b, err := wire.ReadFrame(c.nc, nil, 1<<10)
			if err != nil {
				lived <- time.Since(last)
				return
			}
			var h wire.ReplyHeader
			if at := <-sent; wire.Decode(b, &h) == nil && h.Err == wire.OK {
				last = at
			}
		}
	}()
	for range 6 {
		pause := time.NewTimer(timeout*9/10 + time.Duration(rng.Int64N(int64(timeout)/2)))
		select {
		case d := <-lived:
			return d
		case <-pause.C:
		}
		sent <- time.Now()
		c.nc.Write(request(wire.XidPing, wire.OpPing, nil))
	}
	c.nc.Close()
	<-lived
	return 0
}

// TestLastTouchSurvivesTheConnection: the last request of a session counts even if its
// connection ends right after it, before the next tick.
func TestLastTouchSurvivesTheConnection(t *testing.T) {
	const timeout = 3 * time.Second // if the machine stands still for longer, the session expires at once
	o := quick()
	o.Config.TickTime = 200 * time.Millisecond
	s := start(t, o)
	eventually(t, "it is the middle of a tick", func() bool { return s.times().Mono%200 == 100 })
	var wg sync.WaitGroup
	for i := range 40 {
		watcher := s.connect()
		wg.Go(func() {
			path := "/e" + strconv.Itoa(i)
			c := s.dial()
			c.handshake(wire.ConnectRequest{TimeoutMS: int32(timeout.Milliseconds()), Password: make([]byte, 16)})
			e := create(path, "")
			e.Flags = wire.FlagEphemeral
			c.must(wire.OpCreate, e, nil)
			watcher.must(wire.OpExists, &wire.PathWatchRequest{Path: path, Watch: true}, &wire.StatResponse{})
			pause := time.NewTimer(time.Duration(i) * 5 * time.Millisecond)
			<-pause.C
			sent := time.Now()
			c.must(wire.OpPing, nil, nil)
			c.nc.Close()
			watcher.reply(nil)
			if lived := time.Since(sent); lived < timeout {
				t.Errorf("the session ended %v after an answered ping was sent", lived)
			}
		})
	}
	wg.Wait()
}
