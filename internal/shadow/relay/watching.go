package relay

import (
	"bellwether/internal/shadow"
	"bellwether/wire"
)

// watching compares the watch events of one client. The lane's session at the observer sets the same watches.
type watching struct {
	watches *shadow.Watches
	next    int64     // the number of the next pair
	session *observer // which has the watches
}

func newWatching() *watching { return &watching{shadow.NewWatches(), 1, nil} }

// pair handles one reply and the events before it.
func (w *watching) pair(l *lane, p *shadow.Pair) (why shadow.Reason, found []shadow.Found, events []shadow.EventResult) {
	if p.Watched != w.next || p.Unknown() {
		w.watches.Lose()
	}
	w.next = p.Watched + 1
	request := p.Watch()
	reached, err := w.reach(l, p)
	switch {
	case err != nil:
		why = l.failure(err)
	case !reached:
		why = shadow.UnsureBehind
	}
	if why != "" {
		w.watches.Skip(p.Header.Zxid)
		w.watches.Follow(p.Op, request, never, false)
		return why, nil, unsure(p, why)
	}
	if request != nil && (p.Op == wire.OpSetWatches || p.Op == wire.OpSetWatches2) { // the events that it causes come before its reply
		why, found = w.follow(l, p, request)
		return why, found, w.watches.Compare(p, w.take())
	}
	events = w.watches.Compare(p, w.take())
	if request != nil {
		why, found = w.follow(l, p, request)
	}
	return why, found, events
}

// never is a zxid that the observer does not reach.
const never = wire.Zxid(1<<63 - 1)

// unsure returns the results for events that cannot be compared.
func unsure(p *shadow.Pair, why shadow.Reason) (events []shadow.EventResult) {
	for _, e := range p.Events {
		events = append(events, shadow.EventResult{Path: e.Path, Why: why})
	}
	return events
}

// take returns the events that have arrived.
func (w *watching) take() []shadow.Observed {
	if w.session == nil {
		return nil
	}
	events := w.session.events
	w.session.events = nil
	return events
}

// reach waits until the observer has reached the zxid of a reply, and so has sent all events up to there. A leader without
// transactions in its epoch answers at counter 0, which the observer does not reach.
func (w *watching) reach(l *lane, p *shadow.Pair) (bool, error) {
	return l.until(func() (bool, error) {
		if err := w.keep(l); err != nil {
			return true, err
		}
		if l.own.session.zxid >= p.Header.Zxid || p.Header.Zxid.Counter() == 0 && len(p.Events) == 0 {
			return true, nil
		}
		_, _, err := l.own.ask(wire.OpExists, &wire.PathWatchRequest{Path: "/"})
		return false, err
	})
}

// keep sets the persistent watches again in a new session.
func (w *watching) keep(l *lane) error {
	if err := l.own.connect(); err != nil || l.own.session == w.session {
		return err
	}
	first := w.session == nil
	w.session = l.own.session
	if first {
		return nil
	}
	for _, r := range w.watches.Restart() {
		h, _, err := l.own.ask(wire.OpAddWatch, &r)
		if err != nil {
			return err
		}
		w.watches.Follow(wire.OpAddWatch, &r, h.Zxid, false)
	}
	return nil
}

// follow carries out a request about watches at the observer.
func (w *watching) follow(l *lane, p *shadow.Pair, request wire.Record) (why shadow.Reason, found []shadow.Found) {
	if _, ok := request.(*wire.PathWatchRequest); ok {
		w.read(l, p, request)
		return "", nil
	}
	h, _, err := l.own.ask(p.Op, request)
	if err != nil {
		w.watches.Follow(p.Op, request, never, false)
		return shadow.UnsureNoObserver, nil
	}
	why, d := w.watches.CompareCode(p, request, h.Err, h.Zxid)
	if d != nil {
		at := shadow.Check{Path: pathOf(request), Zxid: p.Header.Zxid}
		found = append(found, shadow.NewFound(p.Op, &at, h.Zxid, *d))
	}
	w.watches.Follow(p.Op, request, h.Zxid, h.Zxid == p.Header.Zxid)
	return why, found
}

func pathOf(request wire.Record) string {
	switch r := request.(type) {
	case *wire.AddWatchRequest:
		return r.Path
	case *wire.WatchesRequest:
		return r.Path
	}
	return ""
}

// read repeats a read with its watch.
func (w *watching) read(l *lane, p *shadow.Pair, request wire.Record) {
	settled, at := false, never
	if checks, _ := shadow.Plan(p); len(checks) == 1 {
		c := &checks[0]
		h, answer, err := l.own.ask(c.Ask, c.WithWatch())
		parent := false
		if err == nil && h.Zxid >= c.Zxid {
			at = h.Zxid
			settled, parent = c.Settled(h, answer)
		}
		if parent && !settled {
			above := c.Parent()
			h, answer, err = l.own.ask(above.Ask, above.Request())
			settled = err == nil && c.ParentSettled(h, answer)
		}
	}
	w.watches.Follow(p.Op, request, at, settled)
}
