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
	// redialTime is the least time between two attempts to connect to the observer. Replies that arrive meanwhile
	// are not compared.
	redialTime = time.Second
)

// lane compares the replies to clients with one identity, one after the other.
type lane struct {
	relay       *Relay
	key         string
	credentials []shadow.Credential
	queue       chan *shadow.Pair // closed by endLanes

	session *observer // nil: none
	failed  error     // why there is none
	again   time.Time // when to connect again
}

// run compares replies until the queue is closed, or until none has come for some time.
func (l *lane) run() {
	defer l.leave()
	for {
		idle := sessionMS * time.Millisecond / 3
		if l.session != nil {
			idle = l.session.idle
		}
		timer := time.NewTimer(idle)
		select {
		case p, ok := <-l.queue:
			timer.Stop()
			if !ok {
				return
			}
			why, found := l.pair(p)
			l.relay.done(p, why, found)
		case <-timer.C:
			if l.relay.retire(l) {
				return
			}
		}
	}
}

// leave closes the session.
func (l *lane) leave() {
	if l.session != nil {
		l.session.close()
		l.session = nil
	}
}

// pair compares one reply. It returns the differences, or why something was not compared.
func (l *lane) pair(p *shadow.Pair) (shadow.Reason, []shadow.Found) {
	checks, why := shadow.Plan(p)
	var found []shadow.Found
	for i := range checks {
		v, err := l.check(&checks[i])
		switch {
		case err != nil && l.relay.work.Err() != nil:
			return shadow.UnsureStopped, found
		case err != nil:
			return shadow.UnsureNoObserver, found
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

// check carries out one check. It waits until the observer has reached the zxid of the reply.
func (l *lane) check(c *shadow.Check) (shadow.Verdict, error) {
	deadline := time.Now().Add(catchUpTime)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		if v, done, err := l.once(c); done || err != nil || time.Now().After(deadline) {
			return v, err
		}
		select {
		case <-time.After(pause):
		case <-l.relay.work.Done():
			return shadow.Verdict{}, l.relay.work.Err()
		}
	}
}

// once asks the observer once. It returns false if the observer is behind.
func (l *lane) once(c *shadow.Check) (v shadow.Verdict, done bool, err error) {
	if err = l.connect(); c.Ask == wire.OpAuth {
		v, err = identity(err)
		return v, true, err
	}
	if errors.Is(err, errIdentity) {
		return shadow.Verdict{Result: shadow.Unsure, Reason: shadow.UnsureIdentity}, true, nil
	}
	if err != nil {
		return v, true, err
	}
	h, answer, err := l.ask(c)
	if err != nil {
		return v, true, err
	}
	v = c.Judge(h, answer)
	if v.Result == shadow.AskParent {
		parent := c.Parent()
		if h, answer, err = l.ask(&parent); err != nil {
			return v, true, err
		}
		v = c.JudgeParent(h, answer)
	}
	if v.Result == shadow.Unsure && v.Reason == shadow.UnsureRefused {
		l.lost(errors.New("session ended by the observer"))
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

// ask sends the read of a check.
func (l *lane) ask(c *shadow.Check) (wire.ReplyHeader, []byte, error) {
	h, answer, err := l.session.ask(c.Ask, c.Request())
	if err != nil {
		l.lost(err)
	}
	return h, answer, err
}

// connect opens the session unless there is one.
func (l *lane) connect() error {
	if l.session != nil || l.failed != nil && time.Now().Before(l.again) {
		return l.failed
	}
	s, err := openObserver(l.relay.work, l.relay.opt.Observer, l.credentials)
	if err != nil {
		l.relay.opt.Logger.Warn("no session at the observer; clients are not affected", "observer", l.relay.opt.Observer, "err", err)
		l.failed, l.again = err, time.Now().Add(redialTime)
		return err
	}
	l.session, l.failed = s, nil
	return nil
}

// lost drops the session after an error.
func (l *lane) lost(err error) {
	l.relay.opt.Logger.Warn("session at the observer lost; clients are not affected", "observer", l.relay.opt.Observer, "err", err)
	l.session.drop()
	l.session, l.failed, l.again = nil, err, time.Now().Add(redialTime)
}
