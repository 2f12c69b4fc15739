package api

import (
	"context"
	"net/http"
	"reflect"

	"bellwether/internal/admin"
	"bellwether/internal/admin/elog"
	"bellwether/internal/admin/history"
	"bellwether/internal/admin/operate"
	"bellwether/internal/admin/view"
)

// route is one operation.
type route struct {
	method, path string
	id           string // name of the operation
	summary      string
	params       []param
	body         reflect.Type // of the request; nil: none
	operator     bool         // only a signed-in operator may use the operation; an operation with a body always needs one
	answer       reflect.Type // nil: the operation answers without a body, or with another media type
	media        string       // of the answer; empty: JSON
	errors       []int        // statuses of errors, besides those of all operations
	handle       func(a *API, ctx context.Context, q *request) (any, error)
}

// param is a parameter of the query or of the path.
type param struct {
	name, in, about string
	integer         bool
	required        bool
}

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// The parameters that several operations share.
var (
	pathParam  = param{name: "path", in: "query", about: "path of a znode; / if it is missing"}
	belowParam = param{name: "below", in: "query", about: "path of the znode below which to look; / if it is missing"}
	pageParams = []param{
		{name: "sort", in: "query", about: "order, the largest first: requests, bytes, watches, ephemerals, waiting, latency or age"},
		{name: "offset", in: "query", about: "how many entries to skip", integer: true},
		{name: "limit", in: "query", about: "how many entries to return; 100 if it is missing, at most 1000", integer: true},
	}
)

const (
	bad      = http.StatusBadRequest
	denied   = http.StatusForbidden
	missing  = http.StatusNotFound
	conflict = http.StatusConflict
	busy     = http.StatusServiceUnavailable
	failed   = http.StatusInternalServerError
)

// changeErrors are the statuses of changes of the tree.
var changeErrors = []int{bad, denied, missing, conflict, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, failed, busy}

// routes are all operations.
var routes = []route{
	{method: "GET", path: "/v1/server", id: "getServer", summary: "this server", answer: typeOf[view.Server](), handle: (*API).server},
	{method: "GET", path: "/v1/ensemble", id: "getEnsemble", summary: "the figures of all servers", answer: typeOf[view.Ensemble](), handle: (*API).ensemble},
	{method: "GET", path: "/v1/elections", id: "getElections", summary: "the last elections as this server saw them, oldest first", answer: typeOf[[]elog.Election](), handle: (*API).elections},
	{method: "GET", path: "/v1/history", id: "getLastHour", summary: "the last hour of the most important figures of this server", answer: typeOf[[]history.Series](), handle: (*API).lastHour},
	{method: "GET", path: "/v1/tree", id: "getNode", summary: "a znode with a page of its children in the order of their names", answer: typeOf[view.Node](), handle: (*API).node,
		errors: []int{bad, denied, missing, busy}, params: []param{pathParam,
			{name: "prefix", in: "query", about: "only children whose names begin with this text"},
			{name: "after", in: "query", about: "only children whose names come after this one"},
			{name: "limit", in: "query", about: "how many children to return; 100 if it is missing, at most 1000", integer: true}}},
	{method: "GET", path: "/v1/tree/search", id: "searchNodes", summary: "the znodes whose names contain a text, in upper or lower case", answer: typeOf[view.Found](), handle: (*API).search,
		errors: []int{bad, denied, missing, busy}, params: []param{belowParam, {name: "text", in: "query", about: "part of a name", required: true}}},
	{method: "GET", path: "/v1/tree/history", id: "getHistory", summary: "the changes of a path that the transaction logs of this server still contain, newest first", answer: typeOf[view.History](), handle: (*API).history,
		errors: []int{bad, denied, missing, failed, busy}, params: []param{pathParam}},
	{method: "GET", path: "/v1/sessions", id: "getSessions", summary: "the open sessions with what they cost", answer: typeOf[view.Sessions](), handle: (*API).sessions, errors: []int{bad}, params: pageParams},
	{method: "GET", path: "/v1/connections", id: "getConnections", summary: "the connections of this server with what they cost", answer: typeOf[view.Connections](), handle: (*API).connections, errors: []int{bad}, params: pageParams},
	{method: "GET", path: "/v1/watches", id: "getWatches", summary: "the znodes on which clients of this server have the most watches", answer: typeOf[view.Watches](), handle: (*API).watches},
	{method: "GET", path: "/v1/recipes", id: "getRecipes", summary: "elections, locks, queues and other recipes: who holds, who waits", answer: typeOf[view.Recipes](), handle: (*API).recipes,
		errors: []int{bad, denied, missing, busy}, params: []param{belowParam}},
	{method: "GET", path: "/v1/tracing", id: "getTraces", summary: "the last traced requests of this server, with the times of their stages", operator: true, answer: typeOf[Traces](), handle: (*API).traces,
		errors: []int{bad, denied}, params: []param{
			{name: "session", in: "query", about: "only requests of this session, such as 0x100000000000001"},
			{name: "cxid", in: "query", about: "only requests to which the client gave this number", integer: true},
			{name: "limit", in: "query", about: "how many traces to return, the newest; 100 if it is missing, at most 1000", integer: true}}},
	{method: "GET", path: "/v1/events", id: "getEvents", summary: "a stream of events named ensemble, each with an Ensemble as its data, sent when a figure has changed", media: "text/event-stream", errors: []int{busy}},
	{method: "GET", path: "/v1/openapi.json", id: "getOpenAPI", summary: "this description", media: "application/json"},

	{method: "POST", path: "/v1/leadership/transfer", id: "transferLeadership", summary: "transfer leadership from this server to another one", body: typeOf[transferRequest](), answer: typeOf[operate.Transferred](), handle: (*API).transfer, errors: changeErrors},
	{method: "POST", path: "/v1/snapshot", id: "takeSnapshot", summary: "write a snapshot of the tree now", body: typeOf[snapshotRequest](), answer: typeOf[operate.Snapshot](), handle: (*API).snapshot, errors: changeErrors},
	{method: "POST", path: "/v1/tracing", id: "setTracing", summary: "trace every request, or stop it", body: typeOf[tracingRequest](), answer: typeOf[Tracing](), handle: (*API).setTracing, errors: changeErrors},
	{method: "POST", path: "/v1/recipes/kick", id: "kickBid", summary: "delete the bid of a client, so that the next one in line takes its place", body: typeOf[kickRequest](), answer: typeOf[Done](), handle: (*API).kick, errors: changeErrors},
	{method: "POST", path: "/v1/sessions/close", id: "closeSession", summary: "end a session, with its ephemeral znodes", body: typeOf[closeRequest](), answer: typeOf[Done](), handle: (*API).closeSession, errors: changeErrors},
	{method: "POST", path: "/v1/tree/create", id: "createNode", summary: "create a znode that anyone may read and change", body: typeOf[createRequest](), answer: typeOf[operate.Written](), handle: (*API).create, errors: changeErrors},
	{method: "POST", path: "/v1/tree/set", id: "setNode", summary: "replace the data of a znode", body: typeOf[setRequest](), answer: typeOf[operate.Written](), handle: (*API).set, errors: changeErrors},
	{method: "POST", path: "/v1/tree/delete", id: "deleteNode", summary: "delete a znode without children", body: typeOf[deleteRequest](), answer: typeOf[Done](), handle: (*API).delete, errors: changeErrors},
}

// Done is the answer to a change that has no other result.
type Done struct {
	Done string `json:"done"` // what was changed
}

func (a *API) server(context.Context, *request) (any, error) { return a.view.Server(), nil }

func (a *API) ensemble(ctx context.Context, _ *request) (any, error) {
	return a.view.Ensemble(ctx), nil
}

func (a *API) elections(context.Context, *request) (any, error) { return admin.Elections(a.srv), nil }

func (a *API) lastHour(context.Context, *request) (any, error) {
	if a.hour == nil {
		return []history.Series{}, nil
	}
	return a.hour.Series(), nil
}

func (a *API) node(ctx context.Context, q *request) (any, error) {
	limit, err := q.integer("limit")
	if err != nil {
		return nil, err
	}
	return a.view.Node(ctx, q.who, q.text("path", "/"), view.Listing{Prefix: q.text("prefix", ""), After: q.text("after", ""), Limit: limit})
}

func (a *API) search(ctx context.Context, q *request) (any, error) {
	return a.view.Search(ctx, q.who, q.text("below", "/"), q.text("text", ""))
}

func (a *API) history(ctx context.Context, q *request) (any, error) {
	return a.view.History(ctx, q.who, q.text("path", "/"))
}

func (a *API) sessions(_ context.Context, q *request) (any, error) {
	p, err := q.page()
	if err != nil {
		return nil, err
	}
	return a.view.Sessions(p)
}

func (a *API) connections(_ context.Context, q *request) (any, error) {
	p, err := q.page()
	if err != nil {
		return nil, err
	}
	return a.view.Connections(p)
}

func (a *API) watches(_ context.Context, q *request) (any, error) { return a.view.Watches(q.who), nil }

func (a *API) recipes(ctx context.Context, q *request) (any, error) {
	return a.view.Recipes(ctx, q.who, q.text("below", "/"))
}
