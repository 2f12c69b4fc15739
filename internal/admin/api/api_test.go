package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"bellwether/internal/admin/access"
	"bellwether/internal/admin/operate"
	"bellwether/internal/admin/view"
	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/server"
	"bellwether/internal/store"
	"bellwether/zk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tested is the API of a running standalone server, with a client of that server.
type tested struct {
	*testing.T
	api *API
	srv *server.Server
	zc  *zk.Client
}

func start(t *testing.T) *tested {
	t.Helper()
	c := config.Default()
	c.Client = ensemble.HostPort{Host: "127.0.0.1"}
	c.DataDir, c.DataLogDir = "data", "data"
	s, err := server.New(server.Options{Config: c, FS: store.NewMem(1)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	<-s.Ready()
	zc, err := zk.Connect(t.Context(), s.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { zc.Close(context.Background()) })
	return &tested{t, New(Options{Server: s, View: view.New(s, "1"), Changes: operate.New(s)}), s, zc}
}

var (
	looker = access.Viewer{Loopback: true}
	ada    = access.Viewer{Loopback: true, Operator: "ada"}
)

// ask sends a request and returns its status and the decoded answer. Every answer must be described by the schema of
// its operation.
func (a *tested) ask(v access.Viewer, method, target, body string) (int, any) {
	a.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:1234"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	a.api.ServeHTTP(w, r.WithContext(access.WithViewer(r.Context(), v)))
	var got any
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		a.Fatalf("%s %s answers %q: %v", method, target, w.Body, err)
	}
	a.described(method, r.URL.Path, w.Code, got)
	return w.Code, got
}

// described fails the test if the description does not allow an answer.
func (a *tested) described(method, path string, status int, got any) {
	a.Helper()
	var d object
	if err := json.Unmarshal(description, &d); err != nil {
		a.Fatal(err)
	}
	operation, ok := at(d, "paths", path, strings.ToLower(method)).(object)
	if !ok {
		if status != http.StatusNotFound && status != http.StatusMethodNotAllowed {
			a.Errorf("%s %s answers %d and is not described", method, path, status)
		}
		return
	}
	schema := at(operation, "responses", fmt.Sprint(status), "content", "application/json", "schema")
	if schema == nil {
		a.Errorf("%s %s: the status %d is not described", method, path, status)
		return
	}
	schemas, _ := at(d, "components", "schemas").(object)
	if why := mismatch(schemas, schema.(object), got, method+" "+path); why != "" {
		a.Error(why)
	}
}

func at(v any, keys ...string) any {
	for _, k := range keys {
		o, ok := v.(object)
		if !ok {
			return nil
		}
		v = o[k]
	}
	return v
}

// mismatch returns why a value does not follow a schema; empty: it does.
func mismatch(schemas, schema object, v any, where string) string {
	if ref, ok := schema["$ref"].(string); ok {
		return mismatch(schemas, schemas[strings.TrimPrefix(ref, "#/components/schemas/")].(object), v, where)
	}
	kind, ok := schema["type"].(string), false
	switch x := v.(type) {
	case string:
		ok = kind == "string"
	case bool:
		ok = kind == "boolean"
	case float64:
		ok = kind == "number" || kind == "integer" && x == float64(int64(x))
	case []any:
		ok = kind == "array"
		for i, e := range x {
			if why := mismatch(schemas, schema["items"].(object), e, fmt.Sprintf("%s[%d]", where, i)); ok && why != "" {
				return why
			}
		}
	case object:
		if ok = kind == "object"; ok {
			return mismatchObject(schemas, schema, x, where)
		}
	}
	if !ok {
		return fmt.Sprintf("%s is %v (%T), described as %s", where, v, v, kind)
	}
	return ""
}

func mismatchObject(schemas, schema, v object, where string) string {
	properties := schema["properties"].(object)
	for _, name := range schema["required"].([]any) {
		if _, ok := v[name.(string)]; !ok {
			return fmt.Sprintf("%s has no %v", where, name)
		}
	}
	for name, e := range v {
		p, ok := properties[name].(object)
		if !ok {
			return fmt.Sprintf("%s.%s is not described", where, name)
		}
		if why := mismatch(schemas, p, e, where+"."+name); why != "" {
			return why
		}
	}
	return ""
}

// TestReadsAnswerAsDescribed: every operation that reads answers, and its answer follows the description.
func TestReadsAnswerAsDescribed(t *testing.T) {
	a := start(t)
	for _, path := range []string{"/a", "/lock"} {
		if _, _, err := a.zc.Create(t.Context(), path, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := a.zc.Create(t.Context(), "/lock/lock-", nil, zk.Ephemeral, zk.Sequential); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := a.zc.GetW(t.Context(), "/a"); err != nil {
		t.Fatal(err)
	}
	queries := map[string]string{"/v1/tree": "?path=/&limit=2", "/v1/tree/search": "?text=a&below=/", "/v1/tree/history": "?path=/a", "/v1/sessions": "?sort=watches&limit=10&offset=0"}
	for _, r := range routes {
		if r.method != "GET" || r.answer == nil {
			continue
		}
		who := looker
		if r.operator {
			who = ada
		}
		if status, got := a.ask(who, "GET", r.path+queries[r.path], ""); status != 200 {
			t.Errorf("%s: %d %v", r.path, status, got)
		}
	}
	_, node := a.ask(looker, "GET", "/v1/tree?path=/&after=a", "")
	if c := at(node, "children").([]any); len(c) != 2 || at(c[0], "name") != "lock" {
		t.Errorf("children of / after a: %v", c)
	}
	if err := a.zc.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; { // the connection ends a moment after its session
		_, none := a.ask(looker, "GET", "/v1/sessions", "")
		if at(none, "total") == 0.0 {
			break // the list was empty, not null
		}
		if time.Now().After(end) {
			t.Fatalf("without sessions: %v", none)
		}
	}
}

// TestBadRequests: a request that is wrong gets a described error that says what is wrong.
func TestBadRequests(t *testing.T) {
	a := start(t)
	for _, c := range []struct {
		method, target, body string
		status               int
		what                 string
	}{
		{"GET", "/v1/nothing", "", 404, "no such operation"},
		{"GET", "/v1/tree/..%2f..%2fetc", "", 404, "no such operation"},
		{"POST", "/v1/server", "{}", 405, "POST is not allowed"},
		{"GET", "/v1/tree/set", "", 405, "GET is not allowed"},
		{"GET", "/v1/tree?path=/missing", "", 404, "no such znode"},
		{"GET", "/v1/tree?path=a", "", 400, "no path"},
		{"GET", "/v1/tree?path=/&path=/", "", 400, "given twice"},
		{"GET", "/v1/tree?colour=red", "", 400, "no such parameter"},
		{"GET", "/v1/tree?limit=-1", "", 400, "no number"},
		{"GET", "/v1/tree?path=%zz", "", 400, "cannot be read"},
		{"GET", "/v1/tree/search", "", 400, "needs a text"},
		{"GET", "/v1/sessions?sort=name", "", 400, "no such order"},
		{"GET", "/v1/sessions?offset=x", "", 400, "no number"},
		{"GET", "/v1/recipes?below=/missing", "", 404, "no such znode"},
		{"POST", "/v1/tree/create", `{"path":"/x","data":1}`, 400, "cannot be read"},
		{"POST", "/v1/tree/create", `{"path":"/x","colour":"red"}`, 400, "unknown field"},
		{"POST", "/v1/tree/create", `{"path":"/x"}{}`, 400, "continues after"},
		{"POST", "/v1/tree/create", `{"path":"x"}`, 400, "bad arguments"},
		{"POST", "/v1/tree/create", `{"path":"/x","kind":"ephemeral"}`, 400, "cannot be created here"},
		{"POST", "/v1/tree/create", `{"path":"/x","data":"a","data_base64":"YQ=="}`, 400, "given twice"},
		{"POST", "/v1/tree/create", `{"path":"/no/parent"}`, 404, "parent is missing"},
		{"POST", "/v1/tree/set", `{"path":"/zookeeper","version":7}`, 409, "changed meanwhile"},
		{"POST", "/v1/tree/delete", `{"path":"/zookeeper","version":-1}`, 400, ""},
		{"POST", "/v1/sessions/close", `{"session":"7"}`, 400, "no session id"},
		{"POST", "/v1/sessions/close", `{"session":"0x7"}`, 404, "no such session"},
		{"POST", "/v1/recipes/kick", `{"bid":"/x","token":"0x1"}`, 409, "already been deleted"},
		{"POST", "/v1/leadership/transfer", `{}`, 409, "standalone"},
		{"POST", "/v1/tree/set", `{"path":"/` + strings.Repeat("x", bodyMax) + `"}`, 413, "larger than"},
	} {
		status, got := a.ask(ada, c.method, c.target, c.body)
		what, _ := at(got, "what").(string)
		if status != c.status || what == "" || !strings.Contains(what, c.what) {
			t.Errorf("%s %s %.60s: %d %v, want %d with %q", c.method, c.target, c.body, status, got, c.status, c.what)
		}
	}
	r := httptest.NewRequest("POST", "/v1/tree/set", strings.NewReader("path=/a"))
	w := httptest.NewRecorder()
	a.api.ServeHTTP(w, r.WithContext(access.WithViewer(r.Context(), ada)))
	if w.Code != http.StatusUnsupportedMediaType {
		t.Errorf("a form: %d", w.Code)
	}
	w = httptest.NewRecorder()
	r = httptest.NewRequest("POST", "/v1/tree/set", http.MaxBytesReader(w, io.NopCloser(strings.NewReader(`{"path":"/a"}`)), 10))
	r.Header.Set("Content-Type", "application/json")
	a.api.ServeHTTP(w, r.WithContext(access.WithViewer(r.Context(), ada)))
	if w.Code != 413 || !strings.Contains(w.Body.String(), "larger than 10 bytes") {
		t.Errorf("with the limit of another handler: %d %s", w.Code, w.Body)
	}
}

// TestChanges: an operator changes the tree and ends sessions; a viewer who is not signed in does not.
func TestChanges(t *testing.T) {
	a := start(t)
	for _, r := range routes {
		if r.body == nil {
			continue
		}
		if status, _ := a.ask(looker, "POST", r.path, "{}"); status != http.StatusForbidden {
			t.Errorf("%s without an operator: %d", r.path, status)
		}
	}
	change := func(path, body string) any {
		t.Helper()
		status, got := a.ask(ada, "POST", path, body)
		if status != 200 {
			t.Fatalf("%s %s: %d %v", path, body, status, got)
		}
		return got
	}
	change("/v1/tree/create", `{"path":"/x","data":"one"}`)
	change("/v1/tree/create", `{"path":"/c","kind":"container"}`)
	if got := at(change("/v1/tree/set", `{"path":"/x","version":0,"data_base64":"AAE="}`), "version"); got != 1.0 {
		t.Errorf("version after set: %v", got)
	}
	if data, _, err := a.zc.Get(t.Context(), "/x"); err != nil || string(data) != "\x00\x01" {
		t.Errorf("%q, %v", data, err)
	}
	change("/v1/tree/delete", `{"path":"/x","version":1}`)
	if got := change("/v1/snapshot", "{}"); at(got, "zxid") == "" || at(got, "bytes") == 0.0 {
		t.Errorf("snapshot: %v", got)
	}
	bid, st, err := a.zc.Create(t.Context(), "/c/lock-", nil, zk.Ephemeral, zk.Sequential)
	if err != nil {
		t.Fatal(err)
	}
	if status, _ := a.ask(ada, "POST", "/v1/recipes/kick", fmt.Sprintf(`{"bid":%q,"token":"0x1"}`, bid)); status != 409 {
		t.Errorf("kick with another token: %d", status)
	}
	change("/v1/recipes/kick", fmt.Sprintf(`{"bid":%q,"token":%q}`, bid, st.Czxid))
	if _, ok, err := a.zc.Exists(t.Context(), bid); ok || err != nil {
		t.Errorf("the bid exists: %v %v", ok, err)
	}
	id := a.zc.Session().ID
	change("/v1/sessions/close", fmt.Sprintf(`{"session":%q}`, id))
	for s := range a.zc.States(t.Context()) {
		if s.State == zk.Expired || a.zc.Session().ID != id {
			break
		}
	}
}

// TestTracing: an operator switches tracing on and off, and finds a request by its session and cxid. Others see nothing
// of the requests.
func TestTracing(t *testing.T) {
	a := start(t)
	session := a.zc.Session().ID.String()
	a.create("/before")
	if list := a.traces(""); len(list) != 0 {
		t.Errorf("while tracing is off: %v", list)
	}
	a.switchTracing(true)
	a.create("/traced")
	a.create("/last")
	last := a.awaitTrace("session="+session+"&limit=1", "/last")
	before := fmt.Sprintf("session=%s&cxid=%d", session, int(at(last, "cxid").(float64))-1)
	a.awaitTrace(before, "/traced")
	if list := a.traces("session=0x1"); len(list) != 0 {
		t.Errorf("traces of a session that does not exist: %v", list)
	}
	for _, body := range []string{`{}`, `{"enabled":null}`, `{"enabled":"yes"}`} {
		if status, _ := a.ask(ada, "POST", "/v1/tracing", body); status != 400 {
			t.Errorf("%s: %d", body, status)
		}
	}
	if status, _ := a.ask(looker, "GET", "/v1/tracing", ""); status != 403 {
		t.Errorf("traces without an operator: %d", status)
	}
	a.switchTracing(false)
	a.create("/after")
	a.switchTracing(true)
	a.create("/end")
	a.awaitTrace("limit=1", "/end")
	for _, x := range a.traces("") {
		if at(x, "path") == "/after" {
			t.Errorf("a request was traced while tracing was off: %v", x)
		}
	}
}

func (a *tested) create(path string) {
	a.Helper()
	if _, _, err := a.zc.Create(a.Context(), path, nil); err != nil {
		a.Fatal(err)
	}
}

func (a *tested) switchTracing(on bool) {
	a.Helper()
	if status, got := a.ask(ada, "POST", "/v1/tracing", fmt.Sprintf(`{"enabled":%v}`, on)); status != 200 || at(got, "enabled") != on {
		a.Fatalf("tracing: %v: %d %v", on, status, got)
	}
}

func (a *tested) traces(query string) []any {
	a.Helper()
	status, got := a.ask(ada, "GET", "/v1/tracing?"+query, "")
	list, ok := at(got, "traces").([]any)
	if status != 200 || !ok {
		a.Fatalf("%s: %d %v", query, status, got)
	}
	return list
}

// awaitTrace waits until a query finds the trace of a path and no other one. A request is traced a moment after its reply.
func (a *tested) awaitTrace(query, path string) any {
	a.Helper()
	for end := time.Now().Add(time.Minute); ; {
		list := a.traces(query)
		if len(list) == 1 && at(list[0], "path") == path {
			return list[0]
		}
		if time.Now().After(end) {
			a.Fatalf("%s: want only a trace of %s: %v", query, path, list)
		}
	}
}

// TestEventStreamsAreBounded: the server serves a limited number of event streams. Of 10,000 requests it refuses
// the others at once, with a time to try again, and it answers other operations meanwhile. A stream begins with the
// state of the ensemble, and ends with its client.
func TestEventStreamsAreBounded(t *testing.T) {
	a := start(t)
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.api.ServeHTTP(w, r.WithContext(access.WithViewer(r.Context(), looker)))
	}))
	defer h.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	var open []*http.Response
	most := a.srv.Config().Admin.EventStreams
	for range most {
		r, err := client.Get(h.URL + "/v1/events")
		if err != nil || r.StatusCode != 200 || r.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatal(r, err)
		}
		open = append(open, r)
	}
	var refused sync.WaitGroup
	places := make(chan struct{}, 64)
	for range 10_000 - most {
		places <- struct{}{}
		refused.Go(func() {
			defer func() { <-places }()
			r, err := client.Get(h.URL + "/v1/events")
			if err != nil {
				t.Error(err)
				return
			}
			defer r.Body.Close()
			if b, _ := io.ReadAll(r.Body); r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" || !strings.Contains(string(b), "close other pages") {
				t.Errorf("%s %s", r.Status, b)
			}
		})
	}
	refused.Wait()
	if status, _ := a.ask(looker, "GET", "/v1/server", ""); status != 200 {
		t.Errorf("another request: %d", status)
	}
	in := bufio.NewReader(open[0].Body)
	first, _ := in.ReadString('\n')
	data, _ := in.ReadString('\n')
	var got any
	if err := json.Unmarshal([]byte(strings.TrimPrefix(data, "data: ")), &got); first != "event: ensemble\n" || err != nil {
		t.Fatalf("%q %q: %v", first, data, err)
	}
	a.described("GET", "/v1/ensemble", 200, got)
	for _, r := range open {
		r.Body.Close()
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); a.api.streams.Load() > 0; <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%d streams are left", a.api.streams.Load())
		}
	}
}

// TestOddPathsSurvive: a znode with any name can be requested, and its name is returned unchanged.
func TestOddPathsSurvive(t *testing.T) {
	a := start(t)
	for _, name := range []string{"<script>alert(1)<", "\u202egnp", "ü&b=c", "日本", "a b", "%2f", `"'`, ".hidden", strings.Repeat("n", 5000)} {
		if _, _, err := a.zc.Create(t.Context(), "/"+name, nil); err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		status, got := a.ask(looker, "GET", "/v1/tree?path="+url.QueryEscape("/"+name), "")
		if status != 200 || at(got, "path") != "/"+name {
			t.Errorf("%q: %d %v", name, status, at(got, "path"))
		}
	}
	_, root := a.ask(looker, "GET", "/v1/tree", "")
	if c := at(root, "children").([]any); !slices.ContainsFunc(c, func(e any) bool { return at(e, "name") == "\u202egnp" }) {
		t.Errorf("%v", c)
	}
}
