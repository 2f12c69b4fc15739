package shell

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"bellwether/internal/fourletter"
)

// topOrder says what the connections are sorted by.
type topOrder int

const (
	byRequests topOrder = iota
	byLatency
	byWaiting
	topOrders
)

func (o topOrder) String() string { return [...]string{"requests", "latency", "waiting"}[o] }

// topSample holds what the servers said at one time.
type topSample struct {
	taken   time.Time
	servers []topServer
}

// topServer is one server of a sample. Figures that the server does not tell are nil.
type topServer struct {
	serverStatus
	PerSecond *float64 `json:"requests_per_second"`
	Average   *float64 `json:"latency_ms_avg"`
	Sessions  *int64   `json:"sessions"`
	Watches   *int64   `json:"watches"`
	DiskBytes *int64   `json:"disk_bytes"`

	clients  []topClient
	watchers map[string]int // by path; nil: not known
}

// topClient is one connection of a server.
type topClient struct {
	Address   string   `json:"address"`
	Server    string   `json:"server"`
	Session   string   `json:"session,omitempty"`
	PerSecond *float64 `json:"requests_per_second"`
	Average   float64  `json:"latency_ms_avg"`
	Waiting   int64    `json:"waiting"`

	received int64
}

// topReport is the output in a form for programs.
type topReport struct {
	Time        string      `json:"time"`
	Servers     []topServer `json:"servers"`
	Connections []topClient `json:"connections"`
	Paths       []topPath   `json:"paths"` // those with most watchers
}

// clientsReported is how many connections a listing has.
const clientsReported = 10

func (t *top) sample(ctx context.Context) topSample {
	names := t.serverList()
	s := topSample{taken: time.Now(), servers: make([]topServer, len(names))}
	var asked sync.WaitGroup
	for i, name := range names { // at the same time, so that zxids can be compared
		asked.Go(func() { s.servers[i] = t.ask(ctx, name) })
	}
	asked.Wait()
	statuses := make([]serverStatus, len(names))
	for i := range s.servers {
		statuses[i] = s.servers[i].serverStatus
	}
	compare(statuses)
	for i := range s.servers {
		s.servers[i].serverStatus = statuses[i]
	}
	return s
}

func (s *topSample) answered() (n int) {
	for i := range s.servers {
		if s.servers[i].Error == "" {
			n++
		}
	}
	return n
}

// ask asks one server. A server that does not answer srvr is not asked for more.
func (t *top) ask(ctx context.Context, name string) topServer {
	s := topServer{serverStatus: t.askServer(ctx, name)}
	if s.Error != "" {
		return s
	}
	_, rest, _ := strings.Cut(s.Latency, "/")
	average, _, _ := strings.Cut(rest, "/")
	if v, err := strconv.ParseFloat(average, 64); err == nil {
		s.Average = &v
	}
	if text, err := t.word(ctx, name, "mntr", t.timeout); err == nil {
		values := fourletter.ParseMntr(text)
		s.Watches = figure(values, "watch_count")
		if s.Sessions = figure(values, "global_sessions"); s.Sessions != nil {
			*s.Sessions += int64(values["local_sessions"])
		}
	}
	if text, err := t.word(ctx, name, "dirs", t.timeout); err == nil {
		if snapshots, logs, ok := fourletter.ParseDirs(text); ok {
			total := snapshots + logs
			s.DiskBytes = &total
		}
	}
	if text, err := t.word(ctx, name, "cons", t.timeout); err == nil {
		s.clients = parseTopClients(text, name)
	}
	s.watchers = t.watchers(ctx, name, s.Watches)
	return s
}

func figure(values map[string]float64, name string) *int64 {
	v, ok := values[name]
	if !ok {
		return nil
	}
	n := int64(v)
	return &n
}

// parseTopClients parses an answer to cons. It leaves out connections without a session: the one that asks
// is among them.
func parseTopClients(text, server string) (all []topClient) {
	for line := range strings.Lines(text) {
		from, rest, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "/"), "(")
		from = from[:max(strings.LastIndexByte(from, '['), 0)]
		if !ok || from == "" {
			continue
		}
		c := topClient{Address: fourletter.Clip(fourletter.Clean(from), fourletter.ValueMax), Server: server}
		for field := range strings.SplitSeq(strings.TrimSuffix(rest, ")"), ",") {
			key, value, _ := strings.Cut(field, "=")
			switch key {
			case "queued":
				c.Waiting, _ = strconv.ParseInt(value, 10, 64)
			case "recved":
				c.received, _ = strconv.ParseInt(value, 10, 64)
			case "avglat":
				c.Average, _ = strconv.ParseFloat(value, 64)
			case "sid":
				if id, ok := parseSession(value); ok {
					c.Session = id.String()
				}
			}
		}
		if c.Session != "" {
			all = append(all, c)
		}
	}
	return all
}

// report returns the figures of the last sample, with rates since the one before.
func (t *top) report() topReport {
	r := topReport{Time: Instant(t.now.taken.UnixMilli()), Servers: slices.Clone(t.now.servers), Connections: []topClient{}, Paths: hottest(t.now.servers)}
	seconds := t.now.taken.Sub(t.before.taken).Seconds()
	for i := range r.Servers {
		s := &r.Servers[i]
		old := t.earlier(s.Server)
		if old == nil || s.Error != "" {
			continue
		}
		if old.Error == "" {
			s.PerSecond = perSecond(old.Received, s.Received, seconds)
		}
		for _, c := range s.clients {
			for _, o := range old.clients {
				if o.Address == c.Address && o.Session == c.Session {
					c.PerSecond = perSecond(o.received, c.received, seconds)
				}
			}
			r.Connections = append(r.Connections, c)
		}
	}
	slices.SortStableFunc(r.Connections, t.order.compare)
	r.Connections = r.Connections[:min(len(r.Connections), clientsReported)]
	return r
}

// earlier returns a server of the sample before; nil if there is none.
func (t *top) earlier(name string) *topServer {
	for i := range t.before.servers {
		if t.before.servers[i].Server == name {
			return &t.before.servers[i]
		}
	}
	return nil
}

// perSecond returns the rate of a counter, nil if the counter began anew.
func perSecond(before, now int64, seconds float64) *float64 {
	if now < before || seconds <= 0 {
		return nil
	}
	rate := float64(now-before) / seconds
	return &rate
}

func (o topOrder) compare(x, y topClient) int {
	value := func(c topClient) float64 {
		switch {
		case o == byLatency:
			return c.Average
		case o == byWaiting:
			return float64(c.Waiting)
		case c.PerSecond != nil:
			return *c.PerSecond
		}
		return -1
	}
	return cmp.Or(cmp.Compare(value(y), value(x)), cmp.Compare(x.Address, y.Address))
}
