package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"bellwether/internal/fifo"
)

// loop drives lines in one goroutine: it waits for replies of all of them together, and begins
// operations when they are due.
//
// free has a line as often as the line may send one more request, longest free first. spare is
// how many of these were left when the loop last looked for operations that were due.
type loop struct {
	requests *requests
	poller   poller
	lines    []*line
	free     fifo.Queue[*line]
	spare    int
	queue    []*line // lines with requests that are not sent yet
	memory   []byte  // for one read
	checked  time.Time

	pace *pace // of the current measurement
	book *book
	stop <-chan struct{} // once closed, ends the current measurement; nil: it ends by the pace
}

// poller waits for the lines of one loop.
type poller interface {
	// wait waits until lines have received something or can send again, or until a time, and calls
	// f for each such line. It ends at an error of f.
	wait(until time.Time, f func(*line) error) error
	// wantToSend says whether wait also waits until the line can send again.
	wantToSend(l *line, want bool) error
	close()
}

// linesPerLoop is the number of connections from which on a load uses a second loop: one loop
// with many connections costs less processor time than several with few.
const linesPerLoop = 16

// newLoops shares the lines out to loops.
func newLoops(l *Load, lines []*line) ([]*loop, error) {
	r := newRequests(l)
	n := max(1, min(len(lines)/linesPerLoop, runtime.GOMAXPROCS(0)/2))
	if !pollsMany(lines) {
		n = len(lines)
	}
	loops := make([]*loop, n)
	for i := range loops {
		loops[i] = &loop{requests: r, memory: make([]byte, ioSize)}
	}
	for i, line := range lines {
		line.id, line.next = i, i*keyStride
		p := loops[i%n]
		p.lines = append(p.lines, line)
	}
	for i, p := range loops {
		var err error
		if p.poller, err = newPoller(p.lines); err != nil {
			closeLoops(loops[:i])
			return nil, err
		}
		for range l.Outstanding { // all lines once, then all lines again, so that they share the load
			for _, line := range p.lines {
				p.free.Push(line)
			}
		}
	}
	return loops, nil
}

func closeLoops(loops []*loop) {
	for _, p := range loops {
		p.poller.close()
	}
}

// raw puts the load on the servers without package zk.
func (l Load) raw(ctx context.Context) ([]*Report, error) {
	lines, err := l.Raw.openAll(ctx, l.Connections)
	defer closeLines(lines)
	if err != nil {
		return nil, err
	}
	loops, err := newLoops(&l, lines)
	if err != nil {
		return nil, err
	}
	defer closeLoops(loops)
	if l.Warmup > 0 {
		if _, err := l.warmingUp().driveLoops(ctx, loops, l.Warmup); err != nil {
			return nil, err
		}
	}
	return l.driveLoops(ctx, loops, l.Duration)
}

// besideMax bounds the time of a load with work beside it.
const besideMax = time.Hour

// driveLoops keeps all loops busy for the duration d, or until the work beside the load has ended. It ends at the
// first error.
func (l Load) driveLoops(ctx context.Context, loops []*loop, d time.Duration) ([]*Report, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var stop chan struct{}
	if l.Beside != nil {
		d, stop = besideMax, make(chan struct{})
	}
	m := l.begin()
	paces := newPace(l.Rate, d, m.began).limit(l.Operations).split(len(loops))
	books := make([]*book, min(len(loops), booksMax))
	for i := range books {
		books[i] = newBook(len(parts[l.Kind]))
	}
	var wg sync.WaitGroup
	if l.Beside != nil {
		wg.Go(func() {
			defer close(stop)
			if err := l.Beside(ctx); err != nil {
				cancel(err)
			}
		})
	}
	for i, p := range loops {
		p.pace, p.book, p.stop = paces[i], books[i%len(books)], stop
		wg.Go(func() {
			if err := p.run(ctx); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	sum := mergeBooks(books)
	return l.reports(m, sum, joinPaces(paces, sum)), nil
}

// tick is how often a loop looks whether the run was interrupted and whether sessions need a ping.
const tick = 100 * time.Millisecond

// run begins operations until the pace gives no more and all replies have arrived.
func (p *loop) run(ctx context.Context) error {
	now := time.Now()
	for _, l := range p.lines {
		l.wrote, l.heard = now, now
	}
	p.spare = 0
	for {
		now := time.Now()
		select {
		case <-p.stop:
			p.pace.cut(now)
			p.stop = nil
		default:
		}
		if err := p.advance(now); err != nil {
			return err
		}
		if p.pace.over(now) && p.idle() {
			return nil
		}
		if err := p.check(ctx, now); err != nil {
			return err
		}
		if err := p.poller.wait(p.until(now), p.handle); err != nil {
			return err
		}
	}
}

// advance begins the operations that are due and sends their requests.
func (p *loop) advance(now time.Time) error {
	p.dispatch(now)
	for _, l := range p.queue {
		l.queued = false
		if err := p.flush(l, now); err != nil {
			return err
		}
	}
	p.queue = p.queue[:0]
	return nil
}

// dispatch begins the operations that are due, as far as lines are free. If a line has been free
// all the time, this process is late, and not the servers.
func (p *loop) dispatch(now time.Time) {
	for ; p.free.Len() > 0; p.spare-- {
		due, ok := p.pace.poll(now, p.spare > 0)
		if !ok {
			break
		}
		l := p.free.Pop()
		l.start(p.requests, due)
		p.enqueue(l)
	}
	p.spare = p.free.Len()
}

func (p *loop) enqueue(l *line) {
	if !l.queued {
		l.queued = true
		p.queue = append(p.queue, l)
	}
}

// flush sends the requests of a line, and lets the poller wait if the system does not take all.
func (p *loop) flush(l *line, now time.Time) error {
	was := l.full
	if err := l.flush(now); err != nil {
		return err
	}
	if l.full != was {
		return p.poller.wantToSend(l, l.full)
	}
	return nil
}

// handle takes what a line has received. Then it begins operations at once, before it looks at
// the next line.
func (p *loop) handle(l *line) error {
	err := l.receive(p.memory, func(c call, body []byte, now time.Time) error { return p.done(l, c, body, now) })
	if err != nil {
		return err
	}
	if l.full {
		p.enqueue(l)
	}
	return p.advance(time.Now())
}

// done records a request that was answered.
func (p *loop) done(l *line, c call, body []byte, now time.Time) error {
	if c.part >= 0 {
		p.book.parts[c.part].record(now.Sub(c.sent))
	}
	if c.first {
		l.xid++
		var err error
		if l.out, err = p.requests.end(l.out, l.xid, body); err != nil {
			return err
		}
		l.flight.Push(call{xid: l.xid, part: c.part + 1, due: c.due, sent: now})
		p.enqueue(l)
		return nil
	}
	p.book.whole.record(now.Sub(c.due))
	p.free.Push(l)
	return nil
}

// idle reports whether no line waits for a reply.
func (p *loop) idle() bool { return p.free.Len() == len(p.lines)*p.requests.load.Outstanding }

// until returns when the loop has something to do even if no reply arrives.
func (p *loop) until(now time.Time) time.Time {
	next := now.Add(tick)
	if due, ok := p.pace.next(); ok && p.free.Len() > 0 && due.Before(next) {
		return due
	}
	return next
}

// check ends the run if it was interrupted or if a server no longer answers, and sends a ping
// for sessions that would expire.
func (p *loop) check(ctx context.Context, now time.Time) error {
	if now.Sub(p.checked) < tick {
		return nil
	}
	p.checked = now
	for _, l := range p.lines {
		switch {
		case l.flight.Len() > 0 && now.Sub(l.heard) > l.timeout && now.Sub(l.flight.First().sent) > l.timeout:
			return l.lost(fmt.Errorf("no reply within %v", l.timeout))
		case now.Sub(l.wrote) > l.timeout/3:
			l.ping()
			if err := p.flush(l, now); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// lone is the poller of a loop with one line, whose calls block until a deadline. Every system
// has it, and it works with TLS.
type lone struct{ line *line }

func (p lone) wait(until time.Time, f func(*line) error) error {
	c := p.line.conn
	if err := errors.Join(c.SetReadDeadline(until), c.SetWriteDeadline(until.Add(p.line.timeout))); err != nil {
		return p.line.lost(err)
	}
	return f(p.line)
}

func (p lone) wantToSend(*line, bool) error {
	return p.line.lost(fmt.Errorf("no request was taken within %v", p.line.timeout))
}

func (lone) close() {}
