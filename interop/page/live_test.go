package page

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

// gate passes the requests of a browser on to a server, and can keep them back.
type gate struct {
	front *httptest.Server
	pass  *httputil.ReverseProxy

	mu      sync.Mutex
	refuse  int           // the status with which requests are refused, or with which a page leads to the sign-in; 0: they are passed on
	hang    chan struct{} // nil: none; otherwise requests wait until it is closed
	pages   int           // requests for pages by scripts
	streams int           // open event streams
	refused int           // event streams that were refused
	events  chan struct{} // nil: event streams are passed on; otherwise the gate sends an event for each value
}

func gateTo(t testing.TB, m *member) *gate {
	t.Helper()
	to, err := url.Parse(m.url("/"))
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{pass: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host }, FlushInterval: -1,
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {}}} // a browser that leaves a stream is no error
	g.front = httptest.NewServer(g)
	t.Cleanup(func() {
		g.set(0, nil)
		g.front.CloseClientConnections()
		g.front.Close()
	})
	return g
}

// member returns the address of the gate as if it were a server.
func (g *gate) member() *member { return &member{admin: g.front.Listener.Addr().String()} }

// set changes how requests are treated, and releases those that wait.
func (g *gate) set(refuse int, hang chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.hang != nil {
		close(g.hang)
	}
	g.refuse, g.hang = refuse, hang
}

// count changes the counters when a request begins, and returns a function for its end.
func (g *gate) count(r *http.Request) (refuse int, hang, events chan struct{}, end func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	stream := r.URL.Path == "/v1/events"
	switch {
	case stream && g.refuse != 0:
		g.refused++
	case stream:
		g.streams++
	case r.Header.Get("Sec-Fetch-Dest") == "empty":
		g.pages++
	}
	open := stream && g.refuse == 0
	return g.refuse, g.hang, g.events, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if open {
			g.streams--
		}
	}
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	refuse, hang, events, end := g.count(r)
	defer end()
	switch {
	case hang != nil:
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	case refuse == http.StatusSeeOther && r.URL.Path == "/":
		http.Redirect(w, r, "/signin", refuse)
	case refuse >= http.StatusBadRequest:
		http.Error(w, "refused by the test", refuse)
	case events != nil && r.URL.Path == "/v1/events":
		w.Header().Set("Content-Type", "text/event-stream")
		for r.Context().Err() == nil {
			_ = http.NewResponseController(w).Flush()
			select {
			case <-events:
				fmt.Fprint(w, "event: ensemble\ndata: {}\n\n")
			case <-r.Context().Done():
			}
		}
	default:
		g.pass.ServeHTTP(w, r)
	}
}

// await waits until the counters of the gate fulfil a condition.
func (g *gate) await(t testing.TB, what string, fulfilled func() bool) {
	t.Helper()
	until(t, what, func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		if !fulfilled() {
			return fmt.Errorf("there are %d renewals, %d streams, %d refused streams", g.pages, g.streams, g.refused)
		}
		return nil
	})
}

const isLive = `document.querySelector("#link.live") !== null`

// TestPageOutlivesARestart shows that an open page says that it is not live while its server ends, and while the server
// refuses all requests because it loads its data, and that it is live again afterwards, without a reload.
func TestPageOutlivesARestart(t *testing.T) {
	_, follows := leader(t, servers(t))
	g, b := gateTo(t, follows), browser(t)
	b.open(g.member(), "/")
	b.do("wait for the stream", poll(isLive))
	g.set(http.StatusServiceUnavailable, nil)
	g.front.CloseClientConnections()
	b.shows("not live")
	g.await(t, "a refused stream", func() bool { return g.refused > 0 })
	if _, _, err := client(t, follows).Create(t.Context(), "/meanwhile", nil); err != nil {
		t.Fatal(err)
	}
	g.set(0, nil)
	b.do("be live again", poll(isLive+` && [...document.querySelectorAll("#now div")].some(d => d.innerText.startsWith("Znodes") && d.innerText.endsWith("6"))`))
}

// TestFrozenServerIsNoticed shows that a page does not say that it is live if its server has stopped to answer and has
// closed no connection.
func TestFrozenServerIsNoticed(t *testing.T) {
	_, follows := leader(t, servers(t))
	g, b := gateTo(t, follows), browser(t)
	g.events = make(chan struct{})
	b.open(g.member(), "/")
	g.events <- struct{}{}
	b.do("wait for the stream", poll(isLive))
	g.set(0, make(chan struct{}))
	b.shows("not live: the server does not answer")
}

// TestLastChangeIsShown shows that a page that is seldom renewed does not forget a change that came shortly after a
// renewal.
func TestLastChangeIsShown(t *testing.T) {
	_, follows := leader(t, servers(t))
	g, b := gateTo(t, follows), browser(t)
	g.events = make(chan struct{})
	b.open(g.member(), "/recipes")
	for n := range 2 {
		g.events <- struct{}{}
		g.await(t, "a renewal", func() bool { return g.pages > n })
	}
}

// TestHiddenPageKeepsNoStream shows that a page which is not visible has no event stream, so that many open pages do not
// use up the connections of the browser, and that it is live again when it is shown.
func TestHiddenPageKeepsNoStream(t *testing.T) {
	_, follows := leader(t, servers(t))
	g, b := gateTo(t, follows), browser(t)
	b.open(g.member(), "/")
	b.do("wait for the stream", poll(isLive))
	hide := func(hidden bool) step {
		return script(fmt.Sprintf(`Object.defineProperty(document, "hidden", { value: %v, configurable: true }); document.dispatchEvent(new Event("visibilitychange"))`, hidden))
	}
	b.do("hide the page", hide(true))
	g.await(t, "no stream", func() bool { return g.streams == 0 })
	b.do("show the page", hide(false))
	g.await(t, "a stream", func() bool { return g.streams == 1 })
}

// TestSignedOutPageIsNotLive shows that a page says so if its viewer has been signed out.
func TestSignedOutPageIsNotLive(t *testing.T) {
	_, follows := leader(t, servers(t))
	g, b := gateTo(t, follows), browser(t)
	g.events = make(chan struct{})
	b.open(g.member(), "/")
	g.set(http.StatusSeeOther, nil)
	g.events <- struct{}{}
	b.do("read that it is signed out", chromedp.WaitVisible("#link.lost"), poll(`document.querySelector("#link").textContent.includes("signed out")`))
}
