package history

import (
	"context"
	"math"
	"sync"
	"time"

	"bellwether/internal/server"
)

// The length of the rings.
const (
	// Every is the time between two values of a series.
	Every = 5 * time.Second
	kept  = int(time.Hour / Every)
)

// History is the last hour of a server.
type History struct {
	srv *server.Server

	mu    sync.Mutex
	times [kept]time.Time
	rings [][kept]float64 // one for each figure; NaN: not known
	next  int             // where the next values go
	n     int             // how many values there are
	last  reading         // the last reading, from which rates are computed
}

// New returns an empty history of a server.
func New(s *server.Server) *History {
	return &History{srv: s, rings: make([][kept]float64, len(figures))}
}

// Run reads the figures until ctx ends.
func (h *History) Run(ctx context.Context) {
	tick := time.NewTicker(Every)
	defer tick.Stop()
	h.add(read(h.srv))
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			h.add(read(h.srv))
		}
	}
}

// add adds what was read to the rings. The first reading gives no rates.
func (h *History) add(now reading) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.times[h.next] = now.at
	for i := range figures {
		h.rings[i][h.next] = figures[i].value(now, h.last)
	}
	h.last = now
	h.next = (h.next + 1) % kept
	h.n = min(h.n+1, kept)
}

// Series is the last hour of one figure.
type Series struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Unit  string `json:"unit"`
	About string `json:"about"` // what the figure means, in a sentence
	// From is the time of the first value. The others follow every EverySeconds.
	From         time.Time  `json:"from"`
	Until        time.Time  `json:"until"`
	EverySeconds float64    `json:"every_s"`
	Values       []*float64 `json:"values"` // nil: not known
	// The least, the last and the greatest value; nil if there is none.
	Minimum *float64 `json:"minimum"`
	Last    *float64 `json:"last"`
	Maximum *float64 `json:"maximum"`
}

// Series returns all series.
func (h *History) Series() []Series {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]Series, len(figures))
	first := (h.next - h.n + kept) % kept
	for i := range figures {
		s := &out[i]
		s.Name, s.Title, s.Unit, s.About, s.EverySeconds = figures[i].name, figures[i].title, figures[i].unit, figures[i].about, Every.Seconds()
		s.Values = make([]*float64, 0, h.n)
		if h.n > 0 {
			s.From, s.Until = h.times[first].UTC(), h.times[(first+h.n-1)%kept].UTC()
		}
		for k := range h.n {
			s.append(h.rings[i][(first+k)%kept])
		}
	}
	return out
}

// append adds a value to the series.
func (s *Series) append(v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		s.Values = append(s.Values, nil)
		return
	}
	s.Values, s.Last = append(s.Values, &v), &v
	if s.Minimum == nil || v < *s.Minimum {
		s.Minimum = &v
	}
	if s.Maximum == nil || v > *s.Maximum {
		s.Maximum = &v
	}
}
