package bench

import (
	"context"
	"fmt"
	"time"

	"bellwether/wire"
)

// Pings measures pings of a session that does nothing else, at the first server of Raw.
type Pings struct{ Setting }

// pingPause is the time between two pings: the servers are idle in between.
const pingPause = 50 * time.Millisecond

// Run sends pings until the time is over.
func (p Pings) Run(ctx context.Context) ([]*Report, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	l, err := p.Raw.open(ctx, p.Raw.Servers[0])
	if err != nil {
		return nil, err
	}
	defer l.close()
	stop := context.AfterFunc(ctx, func() { l.conn.Close() })
	defer stop()
	took := newLatencies()
	for warm, end := time.Now().Add(p.Warmup), time.Now().Add(p.Warmup+p.Duration); time.Now().Before(end) && ctx.Err() == nil; wait(ctx, pingPause) {
		begin := time.Now()
		if err := l.answeredPing(); err != nil {
			return nil, err
		}
		if begin.After(warm) {
			took.record(time.Since(begin))
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r := reportOf("pings", 0, took)
	r.Warmup = p.Warmup
	return []*Report{r}, nil
}

// answeredPing sends a ping and waits for the answer.
func (l *line) answeredPing() error {
	l.ping()
	if err := l.flush(time.Now()); err != nil {
		return err
	}
	if err := l.conn.SetReadDeadline(time.Now().Add(l.timeout)); err != nil {
		return l.lost(err)
	}
	frame, err := wire.ReadFrame(l.conn, nil, FrameMax)
	if err != nil {
		return l.lost(err)
	}
	var h wire.ReplyHeader
	if err := wire.Decode(frame, &h); err != nil {
		return err
	}
	if h.Xid != wire.XidPing {
		return fmt.Errorf("reply %d to a ping", h.Xid)
	}
	return nil
}
