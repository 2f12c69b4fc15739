package relay

import (
	"errors"
	"time"

	"bellwether/internal/shadow"
	"bellwether/wire"
)

const (
	// catchUpTime is how long the observer may take to reach the zxid of a reply.
	catchUpTime = 5 * time.Second
	// The pauses before the observer is asked again double from the first to the last.
	firstPause = time.Millisecond
	lastPause  = 50 * time.Millisecond
)

// lane compares replies one after the other: those to clients with one identity, or those to one client that watches.
type lane struct {
	relay *Relay
	key   string
	queue chan *shadow.Pair // closed by endLanes, or by endWatching
	own   seat              // as the client
	super *seat             // as the super user; nil: none

	watching *watching // nil: the lane is for an identity
}

// run compares replies until the queue is closed, or until none has come for some time.
func (l *lane) run() {
	defer l.leave()
	for {
		timer := time.NewTimer(l.own.idle())
		select {
		case p, ok := <-l.queue:
			timer.Stop()
			if !ok {
				return
			}
			l.take(p)
		case <-timer.C:
			if l.watching != nil {
				l.own.ask(wire.OpExists, &wire.PathWatchRequest{Path: "/"}) // so that the session does not expire
			} else if l.relay.retire(l) {
				return
			}
		}
	}
}

// leave closes the sessions.
func (l *lane) leave() {
	l.own.leave()
	if l.super != nil {
		l.super.leave()
	}
}

// take compares one reply, and counts it.
func (l *lane) take(p *shadow.Pair) {
	l.own.identity.Credentials = p.Identity.Credentials
	why, found := l.pair(p)
	var events []shadow.EventResult
	if l.watching != nil {
		reason, more, results := l.watching.pair(l, p)
		events = results
		if p.Watch() != nil && why == shadow.NotWatch {
			why = reason
		}
		found = append(found, more...)
	} else {
		events = unsure(p, shadow.UnsureLanes)
	}
	l.relay.done(p, why, found, events)
}

// pair compares one reply. It returns the differences, or why something was not compared.
func (l *lane) pair(p *shadow.Pair) (shadow.Reason, []shadow.Found) {
	checks, why := shadow.Plan(p)
	var found []shadow.Found
	for i := range checks {
		v, err := l.decide(&checks[i])
		switch {
		case err != nil:
			return l.failure(err), found
		case v.Result == shadow.Behind:
			why = shadow.UnsureBehind
		case v.Result == shadow.Unsure:
			why = v.Reason
		}
		for _, d := range v.Differences {
			found = append(found, shadow.NewFound(p.Op, &checks[i], v.At, d))
		}
	}
	return why, found
}

// failure returns why nothing was compared after an error.
func (l *lane) failure(err error) shadow.Reason {
	switch {
	case l.relay.work.Err() != nil:
		return shadow.UnsureStopped
	case errors.Is(err, errCertificate):
		return shadow.UnsureRights
	}
	return shadow.UnsureNoObserver
}

// decide carries out one check as the client. If the observer refuses because it cannot know who the client is, or because
// the client may not read, it carries it out as the super user.
func (l *lane) decide(c *shadow.Check) (shadow.Verdict, error) {
	c.Weak = c.Weak || l.own.identity.Subject != "" && len(l.relay.opt.ObserverTLS) == 0
	v, err := l.check(&l.own, c)
	if err != nil || l.super == nil {
		return v, err
	}
	if again, ok := c.AsSuper(v); ok {
		return l.check(l.super, &again)
	}
	return v, nil
}

// check carries out one check. It waits until the observer has reached the zxid of the reply.
func (l *lane) check(s *seat, c *shadow.Check) (v shadow.Verdict, err error) {
	_, err = l.until(func() (done bool, err error) {
		v, done, err = once(s, c)
		return done, err
	})
	return v, err
}

// until calls try until it is done or fails, catchUpTime at most.
func (l *lane) until(try func() (done bool, err error)) (done bool, err error) {
	deadline := time.Now().Add(catchUpTime)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		if done, err := try(); done || err != nil || time.Now().After(deadline) {
			return done, err
		}
		select {
		case <-time.After(pause):
		case <-l.relay.work.Done():
			return false, l.relay.work.Err()
		}
	}
}

// once asks the observer once. It returns false if the observer is behind.
func once(s *seat, c *shadow.Check) (v shadow.Verdict, done bool, err error) {
	if err = s.connect(); c.Ask == wire.OpAuth {
		v, err = identity(err)
		return v, true, err
	}
	if errors.Is(err, errIdentity) {
		return shadow.Verdict{Result: shadow.Unsure, Reason: shadow.UnsureIdentity}, true, nil
	}
	if err != nil {
		return v, true, err
	}
	h, answer, err := s.ask(c.Ask, c.Request())
	if err != nil {
		return v, true, err
	}
	v = c.Judge(h, answer)
	if v.Result == shadow.AskParent {
		parent := c.Parent()
		if h, answer, err = s.ask(parent.Ask, parent.Request()); err != nil {
			return v, true, err
		}
		v = c.JudgeParent(h, answer)
	}
	if v.Result == shadow.Unsure && v.Reason == shadow.UnsureRefused {
		s.lost(errEnded)
	}
	return v, v.Result != shadow.Behind, nil
}

// identity judges an auth packet by the attempt to open a session with it.
func identity(err error) (shadow.Verdict, error) {
	if !errors.Is(err, errIdentity) {
		return shadow.Verdict{}, err
	}
	return shadow.Verdict{Result: shadow.Differs, Differences: []shadow.Difference{{Field: "identity", Old: "accepted", Observer: err.Error()}}}, nil
}
