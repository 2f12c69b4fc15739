package server

import (
	"slices"
	"strings"
	"sync"
	"time"

	"bellwether/internal/tree"
	"bellwether/wire"
)

// FanOut is a change that notified many connections.
type FanOut struct {
	At       time.Time
	Type     wire.EventType
	Path     string
	Zxid     wire.Zxid
	Watchers int // connections of this server that got the event
}

// FanOutMin is how many connections a change must notify to be kept as a FanOut.
const FanOutMin = 10

// fanOutsKept is how many changes are kept.
const fanOutsKept = 64

// fanOuts holds the last changes that notified many connections.
type fanOuts struct {
	mu   sync.Mutex
	last []FanOut // oldest first
}

// fired counts a change for which n connections had a watch. It is called under the tree's
// lock.
func (s *Server) fired(e tree.Event, n int) {
	s.stats.fired(e.Type, n)
	if n < FanOutMin {
		return
	}
	f := FanOut{At: time.Now(), Type: e.Type, Path: strings.Clone(e.Path), Zxid: e.Zxid, Watchers: n}
	s.fanOuts.mu.Lock()
	defer s.fanOuts.mu.Unlock()
	if len(s.fanOuts.last) >= fanOutsKept {
		s.fanOuts.last = slices.Delete(s.fanOuts.last, 0, 1)
	}
	s.fanOuts.last = append(s.fanOuts.last, f)
}

// FanOuts returns the last changes that notified at least FanOutMin connections of this
// server, newest first.
func (s *Server) FanOuts() []FanOut {
	s.fanOuts.mu.Lock()
	defer s.fanOuts.mu.Unlock()
	out := slices.Clone(s.fanOuts.last)
	slices.Reverse(out)
	return out
}
