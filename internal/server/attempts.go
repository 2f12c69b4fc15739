package server

import (
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"bellwether/internal/rate"
	"bellwether/wire"
)

// attempts counts the failed logins of client addresses, so that passwords cannot be
// guessed fast. A login from an address with many failures waits before it is answered.
// The wait is bounded (loginDelayMax), so that an attacker cannot lock out other clients
// behind the same address.
//
// These are failed logins:
//   - SASL: the client could not prove its identity.
//   - Scheme digest: the user is the super user and the password is wrong.
//   - Scheme digest: a request was refused with NoAuth. The identities that the connection
//     has offered since its last such reply each count once, because any user and password
//     make an identity, and only the reply shows that it was of no use.
type attempts struct {
	mu     sync.Mutex
	byAddr *rate.Table[netip.Prefix, rate.Failures]
}

// addressesMax is how many client addresses are kept at a time, by attempts and by the limits
// on requests. It bounds the memory of each of them to a few MiB.
const addressesMax = 1 << 14

func newAttempts() *attempts {
	return &attempts{byAddr: rate.NewTable[netip.Prefix, rate.Failures](addressesMax)}
}

// clientPrefix returns the addresses that count as one client: an IPv4 address, or the
// network of an IPv6 address.
func (s *Server) clientPrefix(addr netip.Addr) netip.Prefix {
	bits := addr.BitLen()
	if addr.Is6() {
		bits = s.config().Limits.IPv6Bits
	}
	p, _ := addr.WithZone("").Prefix(bits)
	return p
}

// loginFailed records that n logins from an address have failed.
func (s *Server) loginFailed(addr netip.Addr, n int) {
	s.stats.loginFailures.Add(int64(n))
	now, key := s.clock(), s.clientPrefix(addr)
	s.attempts.mu.Lock()
	f := s.attempts.byAddr.Use(key)
	f.Add(now, n)
	delay := f.Delay(now, s.config().Limits.LoginDelay)
	s.attempts.mu.Unlock()
	if delay > 0 {
		s.notices.Say(slog.LevelWarn, "many logins of a client fail: its next logins are answered late (loginDelayMax)", addr.String(), "delay", delay)
	}
}

// loginDelay returns how long the next login from an address must wait.
func (s *Server) loginDelay(addr netip.Addr) time.Duration {
	most := s.config().Limits.LoginDelay
	if most <= 0 {
		return 0
	}
	now, key := s.clock(), s.clientPrefix(addr)
	s.attempts.mu.Lock()
	defer s.attempts.mu.Unlock()
	if f := s.attempts.byAddr.Find(key); f != nil {
		return f.Delay(now, most)
	}
	return 0
}

// awaitLogin waits until a login of the client may be answered. If the client has offered digest
// identities, it first waits for the replies to earlier requests, because a reply NoAuth counts
// these identities as failed logins. The delay after that is at most a third of the session's
// timeout, so that no session expires because of it.
func (c *conn) awaitLogin(now *batch) {
	if c.guesses.Load() > 0 && c.outstanding.Load() > 0 {
		c.submit()
		c.waitAnswered(0)
	}
	delay := min(c.srv.loginDelay(c.addr.Addr()), c.longestPause())
	if delay <= 0 {
		return
	}
	c.srv.stats.loginDelays.Add(1)
	c.pauseReading(func() { c.pause(delay) })
	now.sealed = !c.touch(c.srv.clock()) || now.sealed
}

// longestPause returns how long the server may leave the client without a reply.
func (c *conn) longestPause() time.Duration {
	return time.Duration(c.timeout.Load()) * time.Millisecond / 3
}

// judge looks at a reply. If the reply refuses access, judge counts each digest identity that
// the client has offered as a failed login.
func (c *conn) judge(code wire.Code, reply wire.Record) {
	if c.guesses.Load() == 0 || !denies(code, reply) {
		return
	}
	if n := c.guesses.Swap(0); n > 0 {
		c.srv.loginFailed(c.addr.Addr(), int(n))
	}
}

// denies reports whether a reply, or one result of a multi, refuses access.
func denies(code wire.Code, reply wire.Record) bool {
	if r, ok := reply.(*wire.MultiResponse); ok {
		for i := range r.Results {
			if r.Results[i].Err == wire.ErrNoAuth {
				return true
			}
		}
	}
	return code == wire.ErrNoAuth
}
