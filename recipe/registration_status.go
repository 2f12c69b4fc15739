package recipe

import (
	"context"
	"time"

	"bellwether/zk"
)

// Standing says whether the znode of a Registration exists.
type Standing int

// The values of Standing.
const (
	// Absent: the znode does not exist, or its session is over.
	Absent Standing = iota
	// Stands: the znode existed when it was last read, and its session lives.
	Stands
	// Doubtful: the connection is lost. The znode exists as long as the session does.
	Doubtful
)

func (s Standing) String() string {
	return [...]string{"absent", "stands", "doubtful"}[s]
}

// RegistrationStatus is the status of a Registration from one change to the next. Each status
// leads to the one that follows it, so a caller that holds a status misses no later one. The zero
// RegistrationStatus belongs to no Registration, and no status follows it.
type RegistrationStatus struct {
	Standing Standing
	Session  zk.SessionID
	Token    zk.Zxid // the czxid of the znode, which grows each time the znode is created
	// Err says why the znode does not exist: it is an *OwnedError or the error of a server that refused a request.
	// It is nil while the znode is being created, for the first time or again.
	Err error

	have    int  // the number of the data that the znode holds; see Registration.want
	refused bool // Register returns Err
	final   bool
	link    *statusLink
}

// statusLink leads from one status to the next. next is set before changed is closed.
type statusLink struct {
	changed chan struct{}
	next    RegistrationStatus
}

func newStatusLink() *statusLink { return &statusLink{changed: make(chan struct{})} }

// Final reports whether no other status can follow, because the Registration or its
// client was closed.
func (s RegistrationStatus) Final() bool { return s.final }

// Changed returns a channel that is closed when a next status exists.
func (s RegistrationStatus) Changed() <-chan struct{} {
	if s.link == nil {
		return nil
	}
	return s.link.changed
}

// Next waits for the status that follows this one and returns it. The only error is the context's.
func (s RegistrationStatus) Next(ctx context.Context) (RegistrationStatus, error) {
	select {
	case <-s.Changed():
		return s.link.next, nil
	case <-ctx.Done():
		return s, ctx.Err()
	}
}

// Status returns the current status.
func (r *Registration) Status() RegistrationStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

// follow makes the next status, unless nothing has changed or the current one is final.
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
	next.link = newStatusLink()
	r.status, last.next = next, next
	close(last.changed)
}
