package api

import (
	"context"
	"math"
	"strconv"

	"bellwether/internal/admin"
	"bellwether/internal/admin/trace"
	"bellwether/internal/admin/view"
)

// Tracing says whether the server traces every request.
type Tracing struct {
	Enabled bool `json:"enabled"`
}

// Traces are traced requests that the server keeps.
type Traces struct {
	Enabled bool          `json:"enabled"` // whether the server traces every request now
	Traces  []trace.Trace `json:"traces"`  // oldest first
}

// tracingRequest is the body of setTracing.
type tracingRequest struct {
	Enabled *bool `json:"enabled"` // whether the server traces every request, until it starts or reads its configuration again
}

// tracesDefault and tracesMost are how many traces an answer has without and with the parameter limit.
const tracesDefault, tracesMost = 100, 1000

func (a *API) setTracing(_ context.Context, q *request) (any, error) {
	on := q.body.(*tracingRequest).Enabled
	if on == nil {
		return nil, &view.Error{Kind: view.Wrong, What: "the body does not say whether to trace requests", Where: "enabled", Do: "send true or false"}
	}
	a.changes.SetTracing(q.operator, *on)
	return Tracing{a.srv.Tracing()}, nil
}

// traces answers with the last traces of a session and a cxid, or with those of all requests.
func (a *API) traces(_ context.Context, q *request) (any, error) {
	limit, err := q.integer("limit")
	if err != nil {
		return nil, err
	}
	if limit = min(limit, tracesMost); limit == 0 {
		limit = tracesDefault
	}
	found := []trace.Trace{}
	all := a.srv.Traces(0, math.MaxInt)
	for i := range all {
		t := admin.TraceOf(&all[i])
		if q.text("session", t.Session) == t.Session && q.text("cxid", strconv.Itoa(int(t.Cxid))) == strconv.Itoa(int(t.Cxid)) {
			found = append(found, t)
		}
	}
	return Traces{a.srv.Tracing(), found[max(0, len(found)-limit):]}, nil
}
