package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/replica"
	"bellwether/wire"
)

// LeadershipTransfer describes a completed leadership transfer.
type LeadershipTransfer struct {
	From, To ensemble.ServerID
	Epoch    wire.Epoch    // the epoch in which To leads
	Took     time.Duration // from the request until this server follows To
}

// TransferLeadership transfers leadership from this server to server to, or to the most suitable
// server if to is peerwire.NoServer. Clients stay connected, and their writes are held
// meanwhile. It returns when this server follows the new leader. The error says why no
// server took over.
func (s *Server) TransferLeadership(ctx context.Context, to ensemble.ServerID) (LeadershipTransfer, error) {
	return s.transferLeadership(ctx, to, false)
}

// errAlone and errEnding: this server cannot take part in a leadership transfer.
var (
	errAlone  = errors.New("this server is standalone")
	errEnding = errors.New("this server is not serving")
)

func (s *Server) transferLeadership(ctx context.Context, to ensemble.ServerID, leaving bool) (LeadershipTransfer, error) {
	if s.member == nil {
		return LeadershipTransfer{}, errAlone
	}
	h, err := LeadershipTransfer{}, errEnding
	var epoch wire.Epoch
	began := time.Now()
	s.ask(func(l *loop) {
		st := l.replica.Status()
		epoch, h.From = st.Epoch, st.Leader
		if h.To, err = l.replica.Successor(to, leaving); err == nil {
			l.replica.Step(l.now, replica.TransferLeadership{To: h.To, Leaving: leaving})
		}
	})
	if err != nil {
		return h, err
	}
	st := s.await(ctx, func(st *replica.Status) bool {
		return st.Serving && st.Epoch > epoch || leaving && !st.Serving && !st.Appointed // the transfer has failed
	})
	h.Took = time.Since(began)
	if st == nil || !st.Serving {
		return h, fmt.Errorf("server %d was named as the next leader, but does not lead yet", h.To)
	}
	h.Epoch = st.Epoch
	if st.Leader != h.To {
		return h, fmt.Errorf("server %d was named as the next leader, but an election chose server %d", h.To, st.Leader)
	}
	return h, nil
}

// leaveMax is how long a leader that stops waits until another server leads.
const leaveMax = 500 * time.Millisecond

// leave transfers leadership, if possible, before a leader stops. Its clients are served
// until then.
func (s *Server) leave() {
	if st := s.ReplicaStatus(); st == nil || !st.Serving || st.Role != peerwire.Leading {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveMax)
	defer cancel()
	if h, err := s.transferLeadership(ctx, peerwire.NoServer, true); err != nil {
		s.log.Info("stopping without a leadership transfer", "err", err)
	} else {
		s.log.Info("leadership transferred", "leader", h.To, "epoch", h.Epoch, "took", h.Took)
	}
}

// changeSignal wakes goroutines that wait for a change of the server's status.
type changeSignal struct {
	mu   sync.Mutex
	next chan struct{} // closed at the next change; nil: nobody waits
}

// wait returns a channel that is closed at the next change.
func (n *changeSignal) wait() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.next == nil {
		n.next = make(chan struct{})
	}
	return n.next
}

// tell wakes the waiting goroutines.
func (n *changeSignal) tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.next != nil {
		close(n.next)
		n.next = nil
	}
}

// await waits until the server's status satisfies as. It returns nil if the server or
// the context ends first.
func (s *Server) await(ctx context.Context, as func(*replica.Status) bool) *replica.Status {
	for {
		changed := s.member.statusChange.wait()
		if st := s.ReplicaStatus(); st != nil && as(st) {
			return st
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		case <-s.loopEnded:
			return nil
		case <-s.dead:
			return nil
		}
	}
}
