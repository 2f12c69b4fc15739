package recipe

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"bellwether/internal/claim"
	"bellwether/zk"
)

// cacheBatchMax is how many events of the stream are handed on together:
// many changes of one znode are then one read.
const cacheBatchMax = 1024

// run drives the state machine until it is over. It is one goroutine, which
// carries out each request itself.
func (k *Cache) run(ctx context.Context) {
	defer close(k.done)
	k.heed(k.c.State())
	closing := ctx.Done()
	for !k.m.Over() { // which this goroutine alone steps
		if req := k.asked; req != nil {
			k.asked = nil
			k.carryOut(ctx, *req)
			continue
		}
		select {
		case <-k.status.Changed():
			k.nextStatus()
		case <-k.heard():
			k.hear(true)
		case <-k.wake:
			k.step(claim.Tick{})
		case <-closing:
			closing = nil
			k.step(claim.Resign{})
		}
	}
	if k.stream != nil || len(k.watches) > 0 { // its watch goes with the client, or it was not to be given up
		_ = k.closeStream(ctx)
	}
}

// heard has a value when the stream has something to tell.
func (k *Cache) heard() <-chan struct{} {
	if k.stream == nil {
		return nil
	}
	return k.stream.Ready()
}

// heed tells the state machine what became of the session. What reads alone can
// do so over a server without a quorum.
func (k *Cache) heed(s zk.Status) {
	k.status = s
	switch s.State {
	case zk.Connected, zk.ReadOnly:
		k.step(claim.Attached{Session: s.Session})
	case zk.Expired:
		k.step(claim.Expired{})
		if k.c.Err() != nil { // there will be no other
			k.step(claim.Closed{})
		}
	case zk.AuthFailed, zk.Closed:
		k.step(claim.Closed{})
	default:
		k.step(claim.Disconnected{})
	}
}

// nextStatus takes one transition, if there was one.
func (k *Cache) nextStatus() {
	select {
	case <-k.status.Changed():
		if s, err := k.status.Next(context.Background()); err == nil { // it is there
			k.heed(s)
		}
	default:
	}
}

// step hands one event to the state machine and does what comes of it.
func (k *Cache) step(ev claim.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.m.Over() {
		return
	}
	k.m.Step(k.clock.read(), ev)
	rd := k.m.Ready()
	for _, h := range rd.Happenings {
		k.report.log(slog.LevelDebug, h.String(), "path", k.root)
	}
	for _, e := range k.m.Events() {
		k.tell(e)
		if e.Type == claim.CacheCurrent && !k.loaded() {
			k.observed("load", nil)
			close(k.ready)
		}
	}
	if rd.Request != nil {
		k.asked = rd.Request
	}
	if k.wake = nil; rd.Wake > 0 {
		k.wake = time.After(rd.Wake)
	}
	if k.m.Over() {
		k.end()
	}
}

func (k *Cache) loaded() bool {
	select {
	case <-k.ready:
		return true
	default:
		return false
	}
}

// observed tells of what began at Cache.began. Cache.mu is held.
func (k *Cache) observed(event string, err error) {
	k.report.observed(Observation{Recipe: "cache", Path: k.root, Znode: k.root, Event: event, Err: err}, k.began)
	k.began = time.Now()
}

// end says why. Cache.mu is held.
func (k *Cache) end() {
	switch k.err = k.m.Err(); {
	case errors.Is(k.err, claim.ErrCacheFull):
		k.err = &CacheFullError{Root: k.root, NodesMax: k.opt.NodesMax, BytesMax: k.opt.BytesMax}
	case k.err == nil || errors.Is(k.err, zk.ErrClosed):
		k.err = cmp.Or(k.c.Err(), error(&closedError{"cache", k.root}))
	}
	if k.loaded() {
		k.observed("follow", k.err)
	} else {
		k.observed("load", k.err)
	}
	for f := range k.feeds {
		if f.err == nil {
			f.err = k.err
		}
		f.signal()
	}
}

// hear hands on what the stream has to tell, at most a batch, and reports
// whether there may be more. With some it has been said that there is something:
// Next is called once for each value of Ready.
func (k *Cache) hear(some bool) bool {
	var told claim.Told
	defer func() {
		if len(told.Events) > 0 {
			k.step(told)
		}
	}()
	for len(told.Events) < cacheBatchMax {
		if !some {
			select {
			case <-k.heard():
			default:
				return false
			}
		}
		some = false
		e, err := k.stream.Next(context.Background())
		if err != nil {
			last := k.stream.Zxid()
			k.stream = nil
			k.step(told)
			told.Events = nil
			k.step(claim.WatchOver{Zxid: last})
			return false
		}
		told.Events = append(told.Events, claim.TreeEvent(e))
	}
	return true
}
