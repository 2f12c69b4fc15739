package relay

import (
	"errors"
	"time"

	"bellwether/internal/shadow"
	"bellwether/wire"
)

// redialTime is the least time between two attempts to connect to the observer. Replies that arrive meanwhile
// are not compared.
const redialTime = time.Second

// seat is a session at the observer that is opened when it is needed, and again after it was lost.
type seat struct {
	relay    *Relay
	identity shadow.Identity

	session *observer // nil: none
	failed  error     // why there is none
	again   time.Time // when to connect again
}

// ask sends a request, which must change nothing.
func (s *seat) ask(op wire.OpCode, body wire.Record) (wire.ReplyHeader, []byte, error) {
	if err := s.connect(); err != nil {
		return wire.ReplyHeader{}, nil, err
	}
	h, answer, err := s.session.ask(op, body)
	if err != nil {
		s.lost(err)
	}
	return h, answer, err
}

// connect opens the session unless there is one, and sends auth packets that the client has sent since.
func (s *seat) connect() error {
	if s.session != nil && s.session.proved < len(s.identity.Credentials) {
		if err := s.session.identify(s.identity.Credentials); err != nil {
			s.lost(err)
		}
	}
	if s.session != nil || s.failed != nil && time.Now().Before(s.again) {
		return s.failed
	}
	o, err := s.relay.openObserver(s.relay.work, s.identity)
	if err != nil {
		s.relay.opt.Logger.Warn("no session at the observer; clients are not affected", "observer", s.relay.opt.Observer, "err", err)
		s.failed, s.again = err, time.Now().Add(redialTime)
		return err
	}
	s.session, s.failed = o, nil
	return nil
}

// lost drops the session after an error.
func (s *seat) lost(err error) {
	s.relay.opt.Logger.Warn("session at the observer lost; clients are not affected", "observer", s.relay.opt.Observer, "err", err)
	s.session.drop()
	s.session, s.failed, s.again = nil, err, time.Now().Add(redialTime)
}

// errEnded says that the observer has ended a session.
var errEnded = errors.New("session ended by the observer")

// leave closes the session.
func (s *seat) leave() {
	if s.session != nil {
		s.session.close()
		s.session = nil
	}
}

// idle returns after what time without a request the session needs care.
func (s *seat) idle() time.Duration {
	if s.session != nil {
		return s.session.idle
	}
	return sessionMS * time.Millisecond / 3
}
