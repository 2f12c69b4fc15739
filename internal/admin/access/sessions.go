package access

import (
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"sync"
	"time"
)

const (
	sessionTime = 12 * time.Hour
	// sessionsMax is how many operators can be signed in. A further sign-in ends the session that
	// began first.
	sessionsMax = 256
	cookieStem  = "bellwether-operator-"
)

// session is an operator who has signed in with a token.
type session struct {
	name  string
	token tokenSum
	ends  time.Time
}

// sessions holds who is signed in, by the hash of the cookie's value.
type sessions struct {
	mu  sync.Mutex
	all map[tokenSum]session
}

// begin returns the value of the cookie of a new session.
func (s *sessions) begin(name string, token tokenSum, now time.Time) string {
	value := rand.Text() + rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, old := range s.all {
		if !old.ends.After(now) {
			delete(s.all, id)
		}
	}
	if len(s.all) >= sessionsMax {
		s.endOldest()
	}
	s.all[sha256.Sum256([]byte(value))] = session{name, token, now.Add(sessionTime)}
	return value
}

// endOldest ends the session that began first.
func (s *sessions) endOldest() {
	var oldest tokenSum
	var ends time.Time
	for id, k := range s.all {
		if ends.IsZero() || k.ends.Before(ends) {
			oldest, ends = id, k.ends
		}
	}
	delete(s.all, oldest)
}

// find returns the session with a cookie's value.
func (s *sessions) find(value string, now time.Time) (session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.all[sha256.Sum256([]byte(value))]
	return k, ok && k.ends.After(now)
}

// end ends the session with a cookie's value.
func (s *sessions) end(value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, sha256.Sum256([]byte(value)))
}

// keep ends the sessions of operators who have lost their token.
func (s *sessions) keep(o *operators) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, k := range s.all {
		if !o.holds(k.name, k.token) {
			delete(s.all, id)
		}
	}
}

// cookie returns the cookie of a session; an empty value removes it. A browser does not tell
// the ports of a machine apart, so the port is part of the name.
func cookie(r *http.Request, value string) *http.Cookie {
	c := &http.Cookie{Name: cookieName(r), Value: value, Path: "/", HttpOnly: true, Secure: r.TLS != nil,
		SameSite: http.SameSiteStrictMode, MaxAge: int(sessionTime / time.Second)}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}
