package server

import (
	"testing"
	"time"

	"bellwether/wire"
)

// asks opens connections that ask for sessions, and reports which of them get one. A
// refused one is closed without an answer.
func (b *bubble) asks(session *wire.ConnectResponse, times int) (admitted []bool) {
	b.t.Helper()
	for range times {
		c := b.dialFrom("10.0.0.1")
		q := wire.ConnectRequest{TimeoutMS: lastingMS, Password: make([]byte, 16)}
		if session != nil {
			q.Session, q.Password = session.Session, session.Password
		}
		refused := b.stats.connsThrottled.Value()
		c.write(wire.AppendFrame(nil, &q))
		var answer [1]byte
		n, _ := c.nc.Read(answer[:])
		admitted = append(admitted, n == 1)
		if (n == 1) != (b.stats.connsThrottled.Value() == refused) {
			b.t.Errorf("answered: %v, but %d were refused", n == 1, b.stats.connsThrottled.Value())
		}
		c.nc.Close()
	}
	return admitted
}

// wantAdmitted opens connections, times of them. It fails unless the first ones, want of them,
// are admitted and the others are refused.
func (b *bubble) wantAdmitted(what string, session *wire.ConnectResponse, times, want int) {
	b.t.Helper()
	for i, admitted := range b.asks(session, times) {
		if admitted != (i < want) {
			b.t.Errorf("%s: connection %d: %v, want %d of %d admitted", what, i+1, admitted, want, times)
		}
	}
}

// TestConnectionThrottle: connections for which no token is left are closed without an answer,
// whether they ask for a new session or for one that continues. Tokens come back with time.
func TestConnectionThrottle(t *testing.T) {
	o := Options{Config: testConfig()}
	throttle := &o.Config.Limits.Connections
	throttle.Tokens, throttle.FillTime, throttle.FillCount = 3, time.Second, 2
	inBubble(t, o, func(t *testing.T, s *bubble) {
		c := s.connectFrom("10.0.0.1")
		s.wantAdmitted("two tokens", nil, 4, 2)
		time.Sleep(time.Second)
		s.wantAdmitted("not more than the fill time", nil, 1, 0)
		time.Sleep(time.Millisecond)
		s.wantAdmitted("a session that continues", &c.session, 3, 2)
		if rejected, asked := s.stats.rejected.Value(), s.stats.connectRequests.Value(); rejected != 4 || asked != 5 {
			t.Errorf("connection_rejected is %d, connection_request_count %d", rejected, asked)
		}
		if f := s.stats.tokensMissing.Figures(); f.Max != 3 || f.Count != 5 {
			t.Errorf("connection_token_deficit: %+v", f)
		}
		off := *s.config()
		off.Limits.Connections.Tokens = 0
		s.Reload(&off)
		s.wantAdmitted("off", nil, 5, 5)
		s.Reload(o.Config)
		s.wantAdmitted("on again", nil, 5, 3)
	})
}

// TestConnectionWeights: with weights, new sessions and those that continue cost different
// numbers of tokens, and the size of the bucket is a number of new sessions. A standalone
// server has no local sessions.
func TestConnectionWeights(t *testing.T) {
	o := Options{Config: testConfig()}
	o.Config.Ensemble.LocalSessions = true
	throttle := &o.Config.Limits.Connections
	throttle.Tokens, throttle.FillTime, throttle.Weighted = 3, time.Second, true
	inBubble(t, o, func(t *testing.T, s *bubble) {
		c := s.connectFrom("10.0.0.1") // costs 3 of 9
		s.wantAdmitted("each costs 2", &c.session, 4, 3)
		time.Sleep(1001 * time.Millisecond)
		s.wantAdmitted("each costs 3", nil, 2, 1)
	})
	local := connThrottle{o: *throttle}
	if got := [3]int{local.cost(0, false), local.cost(0, true), local.cost(1, true)}; got != [3]int{3, 1, 2} {
		t.Errorf("costs %v", got)
	}
}

// TestDropProbability: while the tokens run out, the drop probability rises until every
// connection is refused. It falls when there are tokens again, and mntr shows it.
func TestDropProbability(t *testing.T) {
	o := Options{Config: testConfig()}
	throttle := &o.Config.Limits.Connections
	throttle.Tokens, throttle.FillTime, throttle.Freeze = 1, time.Second, 0
	throttle.DropIncrease, throttle.DropDecrease = 1, 0.5
	inBubble(t, o, func(t *testing.T, s *bubble) {
		s.wantAdmitted("a token", nil, 1, 1)
		time.Sleep(time.Millisecond)
		s.wantAdmitted("no token", nil, 1, 0)
		if p := s.dropProbability(); p != 1 {
			t.Errorf("drop probability %v", p)
		}
		time.Sleep(2 * time.Second)
		s.asks(nil, 1)
		if p := s.dropProbability(); p != 0.5 {
			t.Errorf("drop probability %v with tokens", p)
		}
		if s.dropProbability() != sample(t, s.Server, "connection_drop_probability") {
			t.Error("mntr shows another one")
		}
	})
}

// sample returns a figure as mntr shows it.
func sample(t *testing.T, s *Server, name string) float64 {
	t.Helper()
	for _, x := range s.stats.registry.Samples() {
		if x.Name == name {
			return x.Value
		}
	}
	t.Fatal("no figure ", name)
	return 0
}
