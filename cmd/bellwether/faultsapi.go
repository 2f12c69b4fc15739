package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"bellwether/embed"
	"bellwether/wire"
)

// faultsAPI implements the calls that programs make over HTTP.
type faultsAPI struct{ e *embed.Ensemble }

// faultsHandler returns the handler of all calls; docs/faults.md lists them. It logs each call, so that the log
// shows what was done to the servers.
func faultsHandler(e *embed.Ensemble, log *slog.Logger) http.Handler {
	a := faultsAPI{e}
	m := http.NewServeMux()
	m.HandleFunc("GET /{$}", a.list)
	for pattern, do := range map[string]func(*http.Request) error{
		"/servers/{id}/start":        a.server((*embed.Server).Start),
		"/servers/{id}/stop":         a.server((*embed.Server).Stop),
		"/servers/{id}/kill":         a.server((*embed.Server).Kill),
		"/servers/{id}/crash":        a.server((*embed.Server).Crash),
		"/servers/{id}/pause":        a.server((*embed.Server).Pause),
		"/servers/{id}/resume":       a.server((*embed.Server).Resume),
		"/servers/{id}/disk/hang":    a.server(func(s *embed.Server) error { s.HangDisk(); return nil }),
		"/servers/{id}/disk/resume":  a.server(func(s *embed.Server) error { s.ResumeDisk(); return nil }),
		"/servers/{id}/skew":         a.skew,
		"/links/{from}/{to}/cut":     a.link(func(from, to embed.Endpoint, _ *http.Request) error { e.Cut(from, to); return nil }),
		"/links/{from}/{to}/mend":    a.link(func(from, to embed.Endpoint, _ *http.Request) error { e.Mend(from, to); return nil }),
		"/links/{from}/{to}/delay":   a.link(a.delay),
		"/sessions/{session}/expire": a.expire,
		"/replies/{op}/lose":         a.lose,
		"/watches/delay":             a.watches,
		"/heal":                      func(*http.Request) error { e.Heal(); return nil },
		"/await":                     a.await,
	} {
		m.HandleFunc("POST "+pattern, func(w http.ResponseWriter, r *http.Request) {
			err := arguments(r)
			if err == nil {
				err = do(r)
			}
			if err == nil {
				log.Info("fault on demand", "call", r.URL.RequestURI())
			}
			answer(w, err)
		})
	}
	m.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		problem(w, http.StatusNotFound, fmt.Errorf("no call %s %s: all calls but GET / are POST; docs/faults.md lists them", r.Method, r.URL.Path))
	})
	return onlyLocal(m)
}

// onlyLocal refuses requests that a page in a browser sends: any web site could send them.
func onlyLocal(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		at, err := netip.ParseAddr(host)
		if r.Header.Get("Origin") != "" || host != "localhost" && (err != nil || !at.IsLoopback()) {
			problem(w, http.StatusForbidden, errors.New("refused: only programs on this machine may make calls, and no web pages"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// badCall is the error of a call with wrong arguments.
type badCall struct{ error }

func badCallf(format string, args ...any) error { return badCall{fmt.Errorf(format, args...)} }

// answer sends the result of a call: status 204, or an error with its status.
func answer(w http.ResponseWriter, err error) {
	var bad badCall
	switch {
	case err == nil:
		w.WriteHeader(http.StatusNoContent)
	case errors.As(err, &bad):
		problem(w, http.StatusBadRequest, err)
	case errors.Is(err, embed.ErrNoSession):
		problem(w, http.StatusNotFound, err)
	case errors.Is(err, embed.ErrRunning), errors.Is(err, embed.ErrNotRunning):
		problem(w, http.StatusConflict, err)
	default:
		problem(w, http.StatusInternalServerError, err)
	}
}

func problem(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()}) // an error means that the caller has closed the connection
}

// The answer to GET /, as JSON.
type (
	faultsList struct {
		Servers []faultsServer `json:"servers"`
		Links   []faultsLink   `json:"links"`
		Watches string         `json:"watches,omitempty"` // the delay of watch events
		Replies []string       `json:"replies,omitempty"` // the operations whose next reply will be lost
	}
	faultsServer struct {
		ID      int    `json:"id"`
		Address string `json:"address"`
		Role    string `json:"role"`
		Skew    string `json:"skew,omitempty"`
		Disk    string `json:"disk,omitempty"` // "hangs", or empty
		Error   string `json:"error,omitempty"`
	}
	faultsLink struct {
		From  string `json:"from"`
		To    string `json:"to"`
		Cut   bool   `json:"cut"`
		Delay string `json:"delay,omitempty"`
	}
)

// list answers with the state of the servers and the faults.
func (a faultsAPI) list(w http.ResponseWriter, _ *http.Request) {
	out := faultsList{Links: []faultsLink{}, Watches: text(a.e.WatchDelay())}
	for _, op := range a.e.RepliesToLose() {
		out.Replies = append(out.Replies, op.String())
	}
	for id := 1; id <= a.e.Len(); id++ {
		s := a.e.Server(id)
		it := faultsServer{ID: id, Address: s.Address(), Role: s.Role(), Skew: text(s.Skew())}
		if s.DiskHangs() {
			it.Disk = "hangs"
		}
		if err := s.Err(); err != nil {
			it.Error = err.Error()
		}
		out.Servers = append(out.Servers, it)
	}
	for _, f := range a.e.Faults() {
		out.Links = append(out.Links, faultsLink{name(f.From), name(f.To), f.Cut, text(f.Delay)})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out) // an error means that the caller has closed the connection
}

// text returns a duration as text, or "" if it is zero.
func text(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// name returns an endpoint in the form that calls use.
func name(e embed.Endpoint) string {
	switch e := e.(type) {
	case *embed.Server:
		return strconv.Itoa(e.ID())
	case embed.Session:
		return wire.SessionID(e).String()
	}
	return e.String()
}

// server returns the handler of a call that applies do to one server.
func (a faultsAPI) server(do func(*embed.Server) error) func(*http.Request) error {
	return func(r *http.Request) error {
		s, err := a.named(r.PathValue("id"))
		if err != nil {
			return err
		}
		return do(s)
	}
}

func (a faultsAPI) named(text string) (*embed.Server, error) {
	id, err := strconv.Atoi(text)
	if err != nil || id < 1 || id > a.e.Len() {
		return nil, badCallf("server %q: want a number from 1 to %d", text, a.e.Len())
	}
	return a.e.Server(id), nil
}

func (a faultsAPI) skew(r *http.Request) error {
	s, err := a.named(r.PathValue("id"))
	if err != nil {
		return err
	}
	by, err := duration(r)
	if err == nil {
		s.SkewClock(by)
	}
	return err
}

// arguments refuses arguments that the call does not have. A call that ignored a misspelled argument would do
// less than its caller expects, and the caller's test would prove nothing.
func arguments(r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return badCall{err}
	}
	for name := range r.Form {
		if name != "by" && name != "oneway" {
			return badCallf("argument %q: want by=DURATION or oneway", name)
		}
	}
	return nil
}

// oneway reads the argument "oneway" of a request. The argument needs no value.
func oneway(r *http.Request) (bool, error) {
	if !r.Form.Has("oneway") || r.Form.Get("oneway") == "" {
		return r.Form.Has("oneway"), nil
	}
	on, err := strconv.ParseBool(r.Form.Get("oneway"))
	if err != nil {
		err = badCallf("oneway=%q: want oneway, or oneway=false", r.Form.Get("oneway"))
	}
	return on, err
}

// duration reads the duration in the argument "by" of a request. It may be negative.
func duration(r *http.Request) (time.Duration, error) {
	text := r.FormValue("by")
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, badCallf("by=%q: want a duration, as in by=150ms or by=-1h", text)
	}
	return d, nil
}

// late reads the delay in the argument "by" of a request. It must not be negative.
func late(r *http.Request) (time.Duration, error) {
	d, err := duration(r)
	if err == nil && d < 0 {
		err = badCallf("by=%v: a delay cannot be negative", d)
	}
	return d, err
}

// link returns the handler of a call that applies do to a link, in both directions unless
// the call has the argument oneway.
func (a faultsAPI) link(do func(from, to embed.Endpoint, r *http.Request) error) func(*http.Request) error {
	return func(r *http.Request) error {
		from, err := a.end(r.PathValue("from"))
		if err != nil {
			return err
		}
		to, err := a.end(r.PathValue("to"))
		if err != nil {
			return err
		}
		one, err := oneway(r)
		if err != nil {
			return err
		}
		err = do(from, to, r)
		if err == nil && !one {
			err = do(to, from, r)
		}
		return err
	}
}

// end returns the endpoint that a call names.
func (a faultsAPI) end(name string) (embed.Endpoint, error) {
	switch {
	case name == embed.Clients.String():
		return embed.Clients, nil
	case name == embed.Everyone.String():
		return embed.Everyone, nil
	case strings.HasPrefix(name, "0x"):
		id, err := session(name)
		return embed.Session(id), err
	}
	s, err := a.named(name)
	if err != nil {
		return nil, badCallf("end %q: want a server's number from 1 to %d, a session as 0x…, clients or everyone", name, a.e.Len())
	}
	return s, nil
}

// session reads the id of a session, as 0x… or as the decimal number that clients print.
func session(text string) (wire.SessionID, error) {
	if digits, hex := strings.CutPrefix(text, "0x"); hex {
		if id, err := strconv.ParseUint(digits, 16, 64); err == nil {
			return wire.SessionID(id), nil
		}
	} else if id, err := strconv.ParseInt(text, 10, 64); err == nil {
		return wire.SessionID(id), nil
	}
	return 0, badCallf("session %q: want its id, as in 0x100000000000001", text)
}

func (a faultsAPI) delay(from, to embed.Endpoint, r *http.Request) error {
	by, err := late(r)
	if err == nil {
		a.e.Delay(from, to, by)
	}
	return err
}

// callTimeout is the time that a call waits for the ensemble to reach the requested state.
const callTimeout = 30 * time.Second

func (a faultsAPI) expire(r *http.Request) error {
	id, err := session(r.PathValue("session"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), callTimeout)
	defer cancel()
	return a.e.Expire(ctx, id)
}

func (a faultsAPI) await(r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), callTimeout)
	defer cancel()
	return a.e.AwaitServing(ctx)
}

// operations maps the names of operations to those whose replies can be lost.
var operations = func() map[string]wire.OpCode {
	out := map[string]wire.OpCode{}
	for op := range wire.OpWhoAmI + 1 {
		if text := op.String(); !strings.HasPrefix(text, "op ") {
			out[text] = op
		}
	}
	return out
}()

func (a faultsAPI) lose(r *http.Request) error {
	op, known := operations[r.PathValue("op")]
	if !known {
		return badCallf("operation %q: want one as the protocol names it: create, delete, setData, multi, getData, …", r.PathValue("op"))
	}
	a.e.LoseNextReply(op)
	return nil
}

func (a faultsAPI) watches(r *http.Request) error {
	by, err := late(r)
	if err == nil {
		a.e.DelayWatches(by)
	}
	return err
}
