package recipe

import (
	"context"
	"time"

	"bellwether/zk"
)

// Standing says whether a Registration's znode stands.
type Standing int

// The standings.
const (
	Absent   Standing = iota // it does not, or its session is over
	Stands                   // it stood when last looked at, and its session lives
	Doubtful                 // the connection is lost: it stands as long as the session does
)

func (s Standing) String() string {
	return [...]string{"absent", "stands", "doubtful"}[s]
}

// RegistrationStatus is how a Registration stands from one change to the
// next. Each knows its successor, so that a caller who holds one misses none. The zero
// RegistrationStatus belongs to no Registration and has no successor.
type RegistrationStatus struct {
	Standing Standing
	Session  zk.SessionID
	Token    zk.Zxid // czxid of the znode: it grows with each one made
	// Err is why it does not stand, an *OwnedError or what the server refuses; nil
	// while it is made, also again, after somebody has deleted it.
	Err error

	have    int  // the data that the znode holds
	refused bool // so that Register returns Err
	final   bool
	link    *standingLink
}

// standingLink leads from one status to the next, which is set before changed is closed.
type standingLink struct {
	changed chan struct{}
	next    RegistrationStatus
}

func newStandingLink() *standingLink { return &standingLink{changed: make(chan struct{})} }

// Final reports whether no other status can follow: it was closed, or its client was.
func (s RegistrationStatus) Final() bool { return s.final }

// Changed is closed when another status has followed this one.
func (s RegistrationStatus) Changed() <-chan struct{} {
	if s.link == nil {
		return nil
	}
	return s.link.changed
}

// Next waits for the status that follows this one. Its error is the context's.
func (s RegistrationStatus) Next(ctx context.Context) (RegistrationStatus, error) {
	select {
	case <-s.Changed():
		return s.link.next, nil
	case <-ctx.Done():
		return s, ctx.Err()
	}
}

// Status is how it stands now.
func (r *Registration) Status() RegistrationStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

// follow makes the next status, unless it would say the same, or none can follow.
func (r *Registration) follow(s Standing, err error, final bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.status.link
	next := RegistrationStatus{Standing: s, Session: r.known.Session, Token: r.known.Token, Err: err,
		have: r.known.Have, refused: r.known.Refused(r.opt.Wait), final: final, link: last}
	if next == r.status || r.status.final {
		return
	}
	r.b.observed(r.status.Standing.String(), r.path, r.since, r.status.Err)
	r.since = time.Now()
	next.link = newStandingLink()
	r.status, last.next = next, next
	close(last.changed)
}
