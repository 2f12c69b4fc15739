package server

import (
	"math/rand/v2"
	"sync"

	"bellwether/internal/config"
	"bellwether/internal/metrics"
	"bellwether/internal/rate"
	"bellwether/wire"
)

// connThrottle refuses connections that ask for a session too often, with ZooKeeper's keys
// connection_throttle_*. A connection that it refuses is closed without an answer.
type connThrottle struct {
	o config.ConnectionThrottle

	mu    sync.Mutex
	state *rate.Connections
}

// reloadConnThrottle makes the throttle of a configuration. If the settings have not changed,
// the old throttle stays, with its state.
func (s *Server) reloadConnThrottle(c *config.Config) {
	o := c.Limits.Connections
	old := s.connThrottle.Load()
	switch {
	case o.Tokens <= 0:
		s.connThrottle.Store(nil)
		return
	case old != nil && old.o == o:
		return
	}
	each := 1
	if o.Weighted {
		each = o.Global
	}
	s.connThrottle.Store(&connThrottle{o: o, state: rate.NewConnections(rate.ConnectionOptions{
		Tokens: o.Tokens * each, FillTime: o.FillTime, FillCount: o.FillCount * each, Freeze: o.Freeze,
		Increase: o.DropIncrease, Decrease: o.DropDecrease, DecreaseRatio: o.DecreaseRatio,
	}, s.clock())})
}

// admitsSession reports whether the throttle admits a connection, which asks for a new
// session if session is 0.
func (s *Server) admitsSession(session wire.SessionID) bool {
	t := s.connThrottle.Load()
	if t == nil {
		s.stats.tokensMissing.Observe(0, 1)
		return true
	}
	t.mu.Lock()
	admitted := t.state.Admit(s.clock(), t.cost(session, s.member != nil && s.config().Ensemble.LocalSessions), rand.Float64())
	missing := t.state.Missing()
	t.mu.Unlock()
	if admitted {
		s.stats.tokensMissing.Observe(int64(missing)*metrics.Unit, 1)
	}
	return admitted
}

// cost returns how many tokens a connection costs.
func (t *connThrottle) cost(session wire.SessionID, local bool) int {
	switch {
	case !t.o.Weighted:
		return 1
	case session != 0:
		return t.o.Renewed
	case local:
		return t.o.Local
	}
	return t.o.Global
}

// dropProbability returns the share of connections that is refused although there may be
// tokens.
func (s *Server) dropProbability() float64 {
	t := s.connThrottle.Load()
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state.DropProbability()
}
