package view

import (
	"cmp"
	"slices"
	"time"

	"bellwether/internal/server"
	"bellwether/wire"
)

// Sessions is a page of the open sessions with what they cost.
type Sessions struct {
	Total    int       `json:"total"` // number of sessions on all pages
	Sessions []Session `json:"sessions"`
	Sort     string    `json:"sort"`
	Offset   int       `json:"offset"`
	Next     *int      `json:"next,omitempty"` // offset of the next page; nil: this is the last
}

// Session is an open session. A session without Connection is not connected to this server: it
// is connected to another one, or its client is away.
type Session struct {
	ID         string      `json:"id"`
	TimeoutMS  int32       `json:"timeout_ms"`
	Local      bool        `json:"local"` // the session exists on this server only
	Ephemerals int         `json:"ephemerals"`
	Connection *Connection `json:"connection,omitempty"`
}

// Connection is an open connection of a client with what it costs.
type Connection struct {
	Address      string    `json:"address"`
	Session      string    `json:"session,omitempty"` // empty: no session yet
	Established  time.Time `json:"established"`
	TLS          bool      `json:"tls"`
	Identities   []string  `json:"identities"` // without hashes
	Requests     int64     `json:"requests"`
	Replies      int64     `json:"replies"` // replies and watch events
	BytesIn      int64     `json:"bytes_in"`
	BytesOut     int64     `json:"bytes_out"`
	InProcess    int64     `json:"in_process"`    // requests that are not answered yet
	WaitingBytes int       `json:"waiting_bytes"` // memory of replies that the client has not read
	Watches      int       `json:"watches"`       // paths that it watches
	WatchBytes   int       `json:"watch_bytes"`   // memory of these watches
	LastRequest  string    `json:"last_request,omitempty"`
	AverageMS    int64     `json:"average_ms"`
	MaxMS        int64     `json:"max_ms"`
}

// Connections is a page of the open connections.
type Connections struct {
	Total       int          `json:"total"` // number of connections on all pages
	Connections []Connection `json:"connections"`
	Sort        string       `json:"sort"`
	Offset      int          `json:"offset"`
	Next        *int         `json:"next,omitempty"` // offset of the next page; nil: this is the last
}

// Costs are the orders in which sessions and connections can be listed: the largest cost is first.
var Costs = []string{"requests", "bytes", "watches", "ephemerals", "waiting", "latency", "age"}

// Page selects a part of a list.
type Page struct {
	Sort   string // one of Costs; empty: the first
	Offset int
	Limit  int // 0: ChildrenDefault
}

// check returns the page with its defaults filled in, and an error if a field is not valid.
func (p Page) check() (Page, error) {
	p.Sort, p.Limit = cmp.Or(p.Sort, Costs[0]), limitOf(p.Limit)
	if !slices.Contains(Costs, p.Sort) {
		return p, &Error{Wrong, "there is no such order", "sort", "use one of requests, bytes, watches, ephemerals, waiting, latency, age"}
	}
	if p.Offset < 0 {
		return p, &Error{Wrong, "the offset is negative", "offset", "use 0 or more"}
	}
	return p, nil
}

// cut returns the part of a list that a page shows, and the offset of the next page.
func cut[T any](all []T, p Page) ([]T, *int) {
	from := min(p.Offset, len(all))
	to := min(from+p.Limit, len(all))
	if to == len(all) {
		return all[from:], nil
	}
	return all[from:to], &to
}

// Sessions returns a page of the open sessions.
func (v *View) Sessions(p Page) (*Sessions, error) {
	p, err := p.check()
	if err != nil {
		return nil, err
	}
	t := v.srv.Tree()
	conns, owned := map[wire.SessionID]*server.Connection{}, t.EphemeralCounts()
	list := v.srv.Connections()
	for i := range list {
		conns[list[i].Session] = &list[i]
	}
	all := []Session{}
	global := map[wire.SessionID]bool{}
	t.Sessions(func(id wire.SessionID, timeoutMS int32) {
		global[id] = true
		all = append(all, sessionOf(id, timeoutMS, owned[id], conns[id]))
	})
	for id, c := range conns {
		if id != 0 && !global[id] {
			s := sessionOf(id, int32(c.Timeout.Milliseconds()), owned[id], c)
			s.Local = true
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b Session) int {
		if c := cmp.Compare(b.cost(p.Sort), a.cost(p.Sort)); c != 0 {
			return c
		}
		return cmp.Compare(a.ID, b.ID)
	})
	s := &Sessions{Total: len(all), Sort: p.Sort, Offset: p.Offset}
	s.Sessions, s.Next = cut(all, p)
	return s, nil
}

func sessionOf(id wire.SessionID, timeoutMS int32, ephemerals int, c *server.Connection) Session {
	s := Session{ID: id.String(), TimeoutMS: timeoutMS, Ephemerals: ephemerals}
	if c != nil {
		d := connectionOf(c)
		s.Connection = &d
	}
	return s
}

// cost returns the value by which sessions are ordered.
func (s *Session) cost(order string) int64 {
	switch {
	case order == "ephemerals":
		return int64(s.Ephemerals)
	case s.Connection == nil:
		return -1 << 62
	}
	return s.Connection.cost(order)
}

// cost returns the value by which connections are ordered.
func (c *Connection) cost(order string) int64 {
	switch order {
	case "bytes":
		return c.BytesIn + c.BytesOut
	case "watches":
		return int64(c.Watches)
	case "waiting":
		return int64(c.WaitingBytes) + c.InProcess
	case "latency":
		return c.AverageMS
	case "age":
		return -c.Established.UnixNano()
	}
	return c.Requests
}

// Connections returns a page of the open connections.
func (v *View) Connections(p Page) (*Connections, error) {
	p, err := p.check()
	if err != nil {
		return nil, err
	}
	list := v.srv.Connections()
	all := make([]Connection, len(list))
	for i := range list {
		all[i] = connectionOf(&list[i])
	}
	slices.SortStableFunc(all, func(a, b Connection) int { return cmp.Compare(b.cost(p.Sort), a.cost(p.Sort)) })
	c := &Connections{Total: len(all), Sort: p.Sort, Offset: p.Offset}
	c.Connections, c.Next = cut(all, p)
	return c, nil
}

func connectionOf(c *server.Connection) Connection {
	o := Connection{
		Address: c.Addr.String(), Established: c.Established.UTC(), TLS: c.TLS, Identities: identities(c.Identities), Requests: c.Received, Replies: c.Sent,
		BytesIn: c.BytesIn, BytesOut: c.BytesOut, InProcess: c.Queued, WaitingBytes: c.Waiting, Watches: c.Watches, WatchBytes: c.WatchBytes,
		AverageMS: c.AverageLatency, MaxMS: c.MaxLatency,
	}
	if c.Session != 0 {
		o.Session = c.Session.String()
	}
	if c.Answered > 0 {
		o.LastRequest = c.LastOp.String()
	}
	return o
}

// identities lists the identities of a client by scheme and name. It leaves out the hash of a password, and the
// address, which is in Connection.Address.
func identities(ids []wire.ID) []string {
	out := []string{}
	for _, id := range ids {
		switch id.Scheme {
		case "ip":
		case "digest":
			out = append(out, "digest:"+beforeColon(id.ID))
		case "super":
			out = append(out, "super")
		default:
			out = append(out, id.Scheme+":"+id.ID)
		}
	}
	return out
}
