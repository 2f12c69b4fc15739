package api

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"sync/atomic"

	"bellwether/internal/admin/access"
	"bellwether/internal/admin/history"
	"bellwether/internal/admin/operate"
	"bellwether/internal/admin/view"
	"bellwether/internal/server"
)

// Options are the parameters of the API. View, Changes and Server are required.
type Options struct {
	Server  *server.Server
	View    *view.View
	Changes *operate.Changes
	History *history.History // nil: there is no last hour
	Log     *slog.Logger     // nil: nothing is logged
}

// API is the handler of everything below /v1.
type API struct {
	srv     *server.Server
	view    *view.View
	changes *operate.Changes
	hour    *history.History
	log     *slog.Logger
	mux     *http.ServeMux
	streams atomic.Int64 // open event streams
}

//go:embed openapi.json
var description []byte

// New returns the handler of the API. It must be behind access.Access.Guard.
func New(o Options) *API {
	a := &API{srv: o.Server, view: o.View, changes: o.Changes, hour: o.History, log: o.Log, mux: http.NewServeMux()}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	methods := map[string][]string{}
	for _, one := range routes {
		methods[one.path] = append(methods[one.path], one.method)
		switch one.id {
		case "getEvents":
			a.mux.HandleFunc("GET "+one.path, a.events)
		case "getOpenAPI":
			a.mux.HandleFunc("GET "+one.path, describe)
		default:
			a.mux.HandleFunc(one.method+" "+one.path, func(w http.ResponseWriter, r *http.Request) { a.answer(w, r, one) })
		}
	}
	for path, allowed := range methods {
		a.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Allow"] = allowed
			writeError(w, http.StatusMethodNotAllowed, &view.Error{What: "the method " + r.Method + " is not allowed", Where: path, Do: fmt.Sprintf("use %v", allowed)})
		})
	}
	a.mux.HandleFunc("/v1/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, http.StatusNotFound, &view.Error{What: "there is no such operation", Where: r.URL.Path, Do: "see /v1/openapi.json"})
	})
	return a
}

// ServeHTTP answers a request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
	a.mux.ServeHTTP(w, r)
}

// describe answers with the description of the API.
func describe(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(description) // the client may have gone
}

// request is a request after its parameters were checked.
type request struct {
	who      view.Who
	operator server.Operator
	query    url.Values
	body     any // a pointer to the route's type
}

// text returns a parameter, or a default if it is missing.
func (q *request) text(name, missing string) string {
	if !q.query.Has(name) {
		return missing
	}
	return q.query.Get(name)
}

// integer returns a parameter that is a number of 0 or more, and 0 if the parameter is missing.
func (q *request) integer(name string) (int, error) {
	if !q.query.Has(name) {
		return 0, nil
	}
	n, err := strconv.Atoi(q.query.Get(name))
	if err != nil || n < 0 {
		return 0, &view.Error{Kind: view.Wrong, What: fmt.Sprintf("%q is no number of 0 or more", q.query.Get(name)), Where: name, Do: "correct it, or leave it out"}
	}
	return n, nil
}

func (q *request) page() (view.Page, error) {
	offset, err := q.integer("offset")
	if err != nil {
		return view.Page{}, err
	}
	limit, err := q.integer("limit")
	return view.Page{Sort: q.text("sort", ""), Offset: offset, Limit: limit}, err
}

// answer carries out an operation.
func (a *API) answer(w http.ResponseWriter, r *http.Request, one route) {
	q, status, err := check(w, r, one)
	if err != nil {
		writeError(w, status, err)
		return
	}
	answer, err := one.handle(a, r.Context(), q)
	if err != nil {
		writeError(w, statusOf(err), err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		a.log.Debug("an answer of the API was not sent", "operation", one.id, "err", err)
	}
}

// bodyMax is the size of the largest body in bytes: a znode of 1 MiB whose text needs many escapes.
const bodyMax = 7 << 20

// check reads the parameters and the body of a request. If it fails, status is the status of the answer.
func check(w http.ResponseWriter, r *http.Request, one route) (q *request, status int, err error) {
	v := access.ViewerOf(r.Context())
	from, _ := netip.ParseAddrPort(r.RemoteAddr)
	q = &request{who: view.Who{Addr: from.Addr().Unmap(), Super: v.MayChange()}, operator: server.Operator{Name: v.Operator, Addr: from}}
	if q.query, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		return nil, bad, &view.Error{What: "the query cannot be read: " + err.Error(), Where: "query", Do: "escape special characters as %XX"}
	}
	for name, values := range q.query {
		if !slices.ContainsFunc(one.params, func(p param) bool { return p.name == name }) || len(values) > 1 {
			return nil, bad, &view.Error{What: "the operation has no such parameter, or it is given twice", Where: name, Do: "see /v1/openapi.json"}
		}
	}
	if (one.operator || one.body != nil) && !v.MayChange() {
		return nil, denied, &view.Error{What: "this operation needs an operator who is signed in", Where: one.path, Do: "sign in, or send the header Authorization: Bearer TOKEN"}
	}
	if one.body == nil {
		return q, 0, nil
	}
	q.body = reflect.New(one.body).Interface()
	status, err = readBody(w, r, q.body)
	return q, status, err
}

// readBody reads a body of JSON.
func readBody(w http.ResponseWriter, r *http.Request, into any) (status int, err error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return http.StatusUnsupportedMediaType, &view.Error{What: "the body is not JSON", Where: "Content-Type", Do: "send application/json"}
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, bodyMax))
	d.DisallowUnknownFields()
	err = d.Decode(into)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("the body continues after the JSON object")
		}
	}
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge, &view.Error{What: fmt.Sprintf("the body is larger than %d bytes", large.Limit), Where: "body", Do: "send less data"}
	case err != nil:
		return bad, &view.Error{What: "the body cannot be read: " + err.Error(), Where: "body", Do: "see /v1/openapi.json"}
	}
	return 0, nil
}

// Problem is the body of an error.
type Problem struct {
	What  string `json:"what"`            // what is wrong
	Where string `json:"where,omitempty"` // the path, parameter or server concerned
	Do    string `json:"do,omitempty"`    // what to do
}

// statusOf returns the status of an error.
func statusOf(err error) int {
	var e *view.Error
	if !errors.As(err, &e) {
		return failed
	}
	return map[view.Kind]int{view.Wrong: bad, view.Missing: missing, view.Forbidden: denied, view.Conflict: conflict, view.Busy: busy, view.Failed: failed}[e.Kind]
}

// writeError answers with an error.
func writeError(w http.ResponseWriter, status int, err error) {
	p := Problem{What: err.Error()}
	var e *view.Error
	if errors.As(err, &e) {
		p = Problem{e.What, e.Where, e.Do}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(p) // the client may have gone
}
