package server

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"bellwether/internal/sasl"
	"bellwether/internal/sasl/kerberos"
)

// The pauses before the KDC is asked again for a ticket that it has not given.
const (
	ticketPauseMin = time.Second
	ticketPauseMax = 30 * time.Second
)

// ticketFailuresMax bounds the services for which a failure is remembered.
const ticketFailuresMax = 1024

// tickets gets Kerberos tickets for the logins of this server at others. A request to a KDC
// that does not answer takes many seconds and cannot be interrupted. So each request runs on a
// goroutine of its own, one at a time, and a caller waits for a limited time only. The
// goroutine may outlive the server by the time that the request takes.
type tickets struct {
	login *kerberos.Login
	limit time.Duration // how long a caller waits
	busy  chan struct{} // has capacity one: held during a request
	ended chan struct{} // closed when the server ends

	once   sync.Once
	mu     sync.Mutex
	failed map[string]ticketFailure // by service
}

// ticketFailure is the last failure to get a ticket. Until next, the KDC is not asked again.
type ticketFailure struct {
	err   error
	pause time.Duration
	next  time.Time
}

func newTickets(login *kerberos.Login, limit time.Duration) *tickets {
	return &tickets{login: login, limit: limit, busy: make(chan struct{}, 1), ended: make(chan struct{}), failed: map[string]ticketFailure{}}
}

// close ends all waits, and the renewal of the ticket.
func (t *tickets) close() {
	t.once.Do(func() {
		close(t.ended)
		go t.login.Close() // Close waits for a request to the KDC
	})
}

// errTicketsEnded: the server ends.
var errTicketsEnded = errors.New("the server ends")

// begin begins an exchange with a service.
func (t *tickets) begin(service string) (sasl.Exchange, error) {
	if err := t.recent(service); err != nil {
		return nil, err
	}
	limit := time.NewTimer(t.limit)
	defer limit.Stop()
	late := func() error {
		return fmt.Errorf("no ticket for %s: the KDC has not answered within %v", service, t.limit)
	}
	select {
	case t.busy <- struct{}{}:
	case <-t.ended:
		return nil, errTicketsEnded
	case <-limit.C:
		return nil, late()
	}
	type result struct {
		x   sasl.Exchange
		err error
	}
	answer := make(chan result, 1) // with a buffer, so that the goroutine ends even if nobody waits for the result any more
	go func() {
		x, err := t.login.Begin(service)
		t.note(service, err)
		<-t.busy
		answer <- result{x, err}
	}()
	select {
	case a := <-answer:
		return a.x, a.err
	case <-t.ended:
		return nil, errTicketsEnded
	case <-limit.C:
		return nil, late()
	}
}

// recent returns the failure of a request that was made a moment ago.
func (t *tickets) recent(service string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f, ok := t.failed[service]; ok && time.Now().Before(f.next) {
		return f.err
	}
	return nil
}

// note remembers how a request ended.
func (t *tickets) note(service string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		delete(t.failed, service)
		return
	}
	if len(t.failed) >= ticketFailuresMax {
		clear(t.failed)
	}
	pause := max(ticketPauseMin, min(2*t.failed[service].pause, ticketPauseMax))
	t.failed[service] = ticketFailure{err, pause, time.Now().Add(pause)}
}
