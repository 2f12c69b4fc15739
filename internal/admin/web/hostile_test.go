package web

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// dial opens a connection to the port.
func dial(t *testing.T, p *rig) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return c
}

// raw sends bytes as a request and returns the status of the answer; 0: the connection was closed without one.
func raw(t *testing.T, p *rig, request string) (status int, body string) {
	t.Helper()
	c := dial(t, p)
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, err.Error()
	}
	defer r.Body.Close()
	text, _ := io.ReadAll(r.Body) // a server that refuses a request may close the connection early
	return r.StatusCode, string(text)
}

// TestStrangeRequests shows that requests with strange paths, methods, names and sizes are refused or mean what
// they seem to mean.
func TestStrangeRequests(t *testing.T) {
	p := open(t, load(t), plugged)
	const rest = " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
	for request, want := range map[string]int{
		"GET /" + rest:                                 200,
		"GET /v1/../commands" + rest:                   400,
		"GET /commands/../v1/x" + rest:                 200, // an unknown command
		"GET //v1/x" + rest:                            400,
		"GET /v1//x" + rest:                            400,
		"GET /v1/%2e%2e/x" + rest:                      400,
		"GET /v1/%5c" + rest:                           400,
		"GET /v1/%00" + rest:                           400,
		"GET /v1/a%2fb" + rest:                         200,
		"GET http://localhost/v1/x" + rest:             200,
		"GET http://evil.example/v1/x" + rest:          403,
		"GET http://evil.example/commands/ruok" + rest: 403, // the port is on a loopback address
		"GET * HTTP/1.1\r\nHost: localhost\r\n\r\n":    400,
		"OPTIONS *" + rest:                             200, // net/http itself answers
		"CONNECT evil.example:80" + rest:               405,
		"TRACE /" + rest:                               403,
		"DELETE /v1/x" + rest:                          405,
		"BREW /" + rest:                                405,
		"GET /%zz" + rest:                              400,
		"GET / HTTP/1.1\r\n\r\n":                       400,
		"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n": 400,
		"GET / HTTP/3.0\r\nHost: localhost\r\n\r\n":    505,
		"hello\r\n\r\n":                                400,
		"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n":                                             431,
		"POST /v1/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n": 200, // the length does not count
		"POST /v1/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n":                                                            400,
	} {
		if status, text := raw(t, p, request); status != want {
			t.Errorf("%.60q: %d %.100s, want %d", request, status, text, want)
		}
	}
}

// TestHeaders shows the headers that every answer has.
func TestHeaders(t *testing.T) {
	p := open(t, load(t), plugged)
	for _, path := range []string{"", "commands", "commands/ruok", "livez", "v1/x", "signin", "nosuch"} {
		_, _, h := get(t, p.URL()+path)
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "Strict-Transport-Security": "", "Server": ""} {
			if h.Get(name) != want {
				t.Errorf("/%s: %s: %q", path, name, h.Get(name))
			}
		}
		if !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'self'") {
			t.Errorf("/%s: no policy", path)
		}
	}
}

// TestSlowHeader shows that a client that sends its header slowly is cut off.
func TestSlowHeader(t *testing.T) {
	p := open(t, load(t), func(o *Options) { o.headerTime = 50 * time.Millisecond })
	c := dial(t, p)
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: local")
	if text, err := io.ReadAll(c); err != nil || strings.Contains(string(text), "200") {
		t.Errorf("%q, %v", text, err)
	}
}

// TestBodiesAreBounded shows that a handler gets an error from a body that is too large, and from a body that stops
// arriving.
func TestBodiesAreBounded(t *testing.T) {
	p := open(t, load(t, "admin.idleTimeout=2000"), func(o *Options) {
		o.API = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if n, err := io.Copy(io.Discard, r.Body); err != nil {
				http.Error(w, fmt.Sprintf("%d bytes, then %v", n, err), http.StatusBadRequest)
			}
		})
	})
	head := func(n int) string {
		return fmt.Sprintf("POST /v1/x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n", n)
	}
	if status, _ := raw(t, p, head(bodyMax)+strings.Repeat("x", bodyMax)); status != 200 {
		t.Errorf("the largest body: %d", status)
	}
	if status, text := raw(t, p, head(bodyMax+1)+strings.Repeat("x", bodyMax+1)); status != 400 || !strings.Contains(text, "too large") {
		t.Errorf("a larger one: %d %s", status, text)
	}
	if status, text := raw(t, p, head(10)+"x"); status == 200 {
		t.Errorf("one that stands still: %d %s", status, text)
	}
}

// TestSlowReader shows that a client that does not read its answer is cut off.
func TestSlowReader(t *testing.T) {
	ended := make(chan error, 1)
	p := open(t, load(t, "admin.idleTimeout=100"), func(o *Options) {
		o.API = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			b := make([]byte, 1<<20)
			for {
				if _, err := w.Write(b); err != nil {
					ended <- err
					return
				}
			}
		})
	})
	fmt.Fprint(dial(t, p), "GET /v1/x HTTP/1.1\r\nHost: localhost\r\n\r\n")
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("the handler still writes")
	}
}

// TestConnectionsAreBounded shows that connections without a request, or with one that comes slowly or without its
// body, do not keep others out, and that a further connection waits while all others have a request in process.
func TestConnectionsAreBounded(t *testing.T) {
	release, begun := make(chan struct{}), make(chan struct{}, 8)
	p := open(t, load(t, "admin.maxConnections=3"), func(o *Options) {
		o.API = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			begun <- struct{}{}
			select {
			case <-release:
			case <-r.Context().Done():
			}
		})
	})
	for range 20 {
		fmt.Fprint(dial(t, p), "GET / HTTP/1.1\r\nX: ")
		fmt.Fprint(dial(t, p), "POST /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n")
	}
	if status, text := raw(t, p, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"); status != 200 {
		t.Errorf("behind 40 slow connections: %d %s", status, text)
	}
	for range 3 {
		fmt.Fprint(dial(t, p), "GET /v1/x HTTP/1.1\r\nHost: localhost\r\n\r\n")
		<-begun
	}
	late := dial(t, p)
	fmt.Fprint(late, "GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	if err := late.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := late.Read(make([]byte, 1)); err == nil {
		t.Fatal("a fourth connection is answered")
	}
	close(release)
	if err := late.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if r, err := http.ReadResponse(bufio.NewReader(late), nil); err != nil || r.StatusCode != 200 {
		t.Errorf("after another one has ended: %v", err)
	}
}

// TestPanicOfAHandler shows that a panic of a handler affects only its own request, and that the client does not
// see its reason.
func TestPanicOfAHandler(t *testing.T) {
	p := open(t, load(t), func(o *Options) {
		o.API = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("secret") })
	})
	if status, text := raw(t, p, "GET /v1/x HTTP/1.1\r\nHost: localhost\r\n\r\n"); status != 500 || strings.Contains(text, "secret") {
		t.Errorf("%d %s", status, text)
	}
	if status, _, _ := get(t, p.URL()+"livez"); status != 200 {
		t.Errorf("afterwards: %d", status)
	}
}

// TestOtherSitesResetNothing shows that a web page of another site cannot use the commands that reset something with
// GET, and that people and programs can.
func TestOtherSitesResetNothing(t *testing.T) {
	p := open(t, load(t), nil)
	for site, want := range map[string]int{"cross-site": 403, "same-site": 403, "same-origin": 200, "none": 200, "": 200} {
		for _, command := range []string{"stat_reset", "srst", "connection_stat_reset", "set_trace_mask?traceMask=1"} {
			if status, text, _ := get(t, p.URL()+"commands/"+command, "Sec-Fetch-Site", site); status != want {
				t.Errorf("%s from %q: %d %s, want %d", command, site, status, text, want)
			}
		}
	}
	if status, text, _ := get(t, p.URL()+"commands/ruok", "Sec-Fetch-Site", "cross-site"); status != 200 {
		t.Errorf("ruok: %d %s", status, text)
	}
}

// addressed is a connection from an address.
type addressed struct {
	net.Conn
	from string
}

func (a addressed) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(a.from))
}

// TestNetworksCountAsOne shows which addresses count as one address in the limit of connections.
func TestNetworksCountAsOne(t *testing.T) {
	for from, want := range map[string]string{
		"192.0.2.7:5": "192.0.2.7/32", "[::ffff:192.0.2.7]:5": "192.0.2.7/32", "[2001:db8::7]:5": "2001:db8::/64", "[fe80::7%eth0]:5": "fe80::/64", "[::1]:5": "::1/128",
	} {
		if got := networkOf(addressed{from: from}); got.String() != want {
			t.Errorf("%s: %v, want %s", from, got, want)
		}
	}
}

// TestRebinding shows that a web page of a site whose name resolves to this machine can neither take nor restore a
// snapshot, even if the port is on every address.
func TestRebinding(t *testing.T) {
	c := load(t, "admin.serverAddress=0.0.0.0")
	c.Admin.Address.Host = "" // every address
	p := open(t, c, nil)
	_, port, _ := net.SplitHostPort(p.Addr().String())
	url := "http://127.0.0.1:" + port + "/commands/"
	for _, host := range []string{"evil.example", "evil.example:" + port} {
		for _, command := range []string{"snapshot", "restore"} {
			method := map[string]string{"snapshot": "GET", "restore": "POST"}[command]
			if status, text, _ := do(t, http.DefaultClient, method, url+command, "x", "Host", host, "Authorization", "ip"); status != 403 || !strings.Contains(text, "localhost") {
				t.Errorf("%s of %s: %d %s", command, host, status, text)
			}
		}
		if status, text, _ := get(t, url+"ruok", "Host", host); status != 200 {
			t.Errorf("ruok of %s: %d %s", host, status, text)
		}
	}
	if status, text, _ := get(t, url+"snapshot", "Authorization", "ip"); status != 200 {
		t.Errorf("without another name: %d %s", status, text)
	}
}
