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

// HandedOver says how a hand-over went.
type HandedOver struct {
	From, To ensemble.ServerID
	Epoch    wire.Epoch    // in which To leads
	Took     time.Duration // from the question until this server serves under it
}

// HandOver has this server, which leads, pass that on to another: to, or the
// fittest that can lead if that is peerwire.NoServer. Clients stay connected, their
// writes are held meanwhile. It returns when this server follows; the error
// says why nobody took over.
func (s *Server) HandOver(ctx context.Context, to ensemble.ServerID) (HandedOver, error) {
	return s.handOver(ctx, to, false)
}

// errAlone, errEnding: nobody takes part in a hand-over.
var (
	errAlone  = errors.New("this server is standalone")
	errEnding = errors.New("this server is not serving")
)

func (s *Server) handOver(ctx context.Context, to ensemble.ServerID, leaving bool) (HandedOver, error) {
	if s.member == nil {
		return HandedOver{}, errAlone
	}
	h, err := HandedOver{}, errEnding
	var epoch wire.Epoch
	began := time.Now()
	s.ask(func(l *loop) {
		st := l.replica.Standing()
		epoch, h.From = st.Epoch, st.Leader
		if h.To, err = l.replica.Successor(to, leaving); err == nil {
			l.replica.Step(l.now, replica.HandOver{To: h.To, Leaving: leaving})
		}
	})
	if err != nil {
		return h, err
	}
	st := s.await(ctx, func(st *replica.Standing) bool {
		return st.Serving && st.Epoch > epoch || leaving && !st.Serving && !st.Handed // it has come to nothing
	})
	h.Took = time.Since(began)
	if st == nil || !st.Serving {
		return h, fmt.Errorf("server %d is to lead, but does not yet", h.To)
	}
	h.Epoch = st.Epoch
	if st.Leader != h.To {
		return h, fmt.Errorf("server %d was to lead, an election has chosen server %d", h.To, st.Leader)
	}
	return h, nil
}

// leaveMax is how long a leader that stops waits until another one leads.
const leaveMax = 500 * time.Millisecond

// leave has a leader that is to stop hand over first, if it can. Its clients
// are served until then.
func (s *Server) leave() {
	if st := s.Standing(); st == nil || !st.Serving || st.Role != peerwire.Leading {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveMax)
	defer cancel()
	if h, err := s.handOver(ctx, peerwire.NoServer, true); err != nil {
		s.log.Info("stops to lead without a hand-over", "err", err)
	} else {
		s.log.Info("has handed over", "leader", h.To, "epoch", h.Epoch, "took", h.Took)
	}
}

// news wakes those who wait for a change of how the server stands.
type news struct {
	mu   sync.Mutex
	next chan struct{} // closed by the next change; nil: nobody waits
}

// wait returns what the next change closes.
func (n *news) wait() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.next == nil {
		n.next = make(chan struct{})
	}
	return n.next
}

// tell wakes who waits.
func (n *news) tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.next != nil {
		close(n.next)
		n.next = nil
	}
}

// await waits until the server stands as asked for; nil if it ends before, or
// the context does.
func (s *Server) await(ctx context.Context, as func(*replica.Standing) bool) *replica.Standing {
	for {
		changed := s.member.news.wait()
		if st := s.Standing(); st != nil && as(st) {
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
