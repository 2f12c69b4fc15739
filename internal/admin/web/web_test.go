package web

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"bellwether/internal/admin"
	"bellwether/internal/admin/access"
	"bellwether/internal/authority"
	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/portblock"
	"bellwether/internal/server"
	"bellwether/internal/store"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const version = "3.9.5-test"

// rig is an admin port with its server.
type rig struct {
	*Port
	server *server.Server
	stop   func() // ends both
	failed bool   // the server ends with an error
}

// load returns a configuration from these lines of a zoo.cfg, in which DIR stands for the folder of
// the file.
func load(t *testing.T, lines ...string) *config.Config {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data", "myid"), []byte("1"), 0o644); err != nil {
		t.Fatal(err)
	}
	text := "tickTime=2000\ndataDir=DIR/data\nclientPort=0\nclientPortAddress=127.0.0.1\nadmin.serverPort=0\n4lw.commands.whitelist=*\n" + strings.Join(lines, "\n")
	file := filepath.Join(dir, "zoo.cfg")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "DIR", dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(file, "")
	if err != nil {
		t.Fatal(err)
	}
	c.Client = ensemble.HostPort{Host: "127.0.0.1"}
	return c
}

// open runs a server and its admin port. change changes the options of the port.
func open(t *testing.T, c *config.Config, change func(*Options)) *rig {
	t.Helper()
	if c.Admin.Address.Host == "0.0.0.0" {
		c.Admin.Address.Host = "127.0.0.1"
	}
	a := admin.New(version)
	s, err := server.New(server.Options{Config: c, FS: store.NewMem(1), FourLetterWords: a.Word})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Server: s, Admin: a, Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&o)
	}
	p, err := Open(o)
	if err != nil {
		s.Close()
		t.Fatal(err)
	}
	serverCtx, stopServer := context.WithCancel(context.Background())
	portCtx, stopPort := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- s.Run(serverCtx) }()
	go func() { ended <- p.Run(portCtx) }()
	g := &rig{Port: p, server: s}
	g.stop = sync.OnceFunc(func() {
		stopServer()
		err := <-ended
		stopPort()
		if err := errors.Join(err, <-ended); (err != nil) != g.failed {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	t.Cleanup(g.stop)
	if c.Standalone() {
		<-s.Ready()
	}
	return g
}

// get sends a GET and returns the status, the body and the headers.
func get(t *testing.T, url string, headers ...string) (int, string, http.Header) {
	t.Helper()
	return do(t, http.DefaultClient, http.MethodGet, url, "", headers...)
}

// do sends a request. headers alternate names and values; Host is a header too.
func do(t *testing.T, client *http.Client, method, url, body string, headers ...string) (int, string, http.Header) {
	t.Helper()
	q, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			q.Host = headers[i+1]
		}
	}
	r, err := client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(text), r.Header
}

// viewers returns a handler that answers with the viewer of the request.
func viewers() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := access.ViewerOf(r.Context())
		fmt.Fprintf(w, "loopback=%v tls=%v operator=%q change=%v", v.Loopback, v.TLS, v.Operator, v.MayChange())
	})
}

func plugged(o *Options) { o.API, o.Page = viewers(), viewers() }

// TestNilHandlersAreNotFound shows that the paths of a handler that is nil answer 404, as ZooKeeper's root does.
func TestNilHandlersAreNotFound(t *testing.T) {
	p := open(t, load(t), nil)
	for path, want := range map[string]int{"": 404, "metrics": 404, "v1/x": 404, "commands/ruok": 200, "livez": 200} {
		if status, text, _ := get(t, p.URL()+path); status != want {
			t.Errorf("/%s: %d, want %d: %s", path, status, want, text)
		}
	}
}

// TestHealth shows the health checks of a server that serves, and of one that has ended.
func TestHealth(t *testing.T) {
	p := open(t, load(t), nil)
	p.failed = true // by Abort, below
	for path, want := range map[string]string{"livez": "ok\n", "readyz": "ok\n",
		"readyz?verbose": "ok\ndata: ok\nrunning: ok\nloop: ok\ndisk: ok\nleader: ok\nwrites: ok\n"} {
		if status, text, h := get(t, p.URL()+path); status != 200 || text != want || h.Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("%s: %d %q", path, status, text)
		}
	}
	p.server.Abort(errors.New("test"))
	if status, text, _ := get(t, p.URL()+"readyz"); status != 503 || text != "not ready: the server is stopping\n" {
		t.Errorf("of an ended server: %d %q", status, text)
	}
}

// TestHealthWithoutQuorum shows that a member without a quorum is alive and says why it is not ready, and what
// its commands answer.
func TestHealthWithoutQuorum(t *testing.T) {
	free, err := portblock.Free("127.0.0.1", 4)
	if err != nil {
		t.Fatal(err)
	}
	c := load(t, "initLimit=10", "syncLimit=5", fmt.Sprintf("server.1=127.0.0.1:%d:%d", free[0], free[1]), fmt.Sprintf("server.2=127.0.0.1:%d:%d", free[2], free[3]))
	p := open(t, c, nil)
	awaits(t, "the server looks for a leader", func() bool {
		status, text, _ := get(t, p.URL()+"readyz")
		return status == 503 && text == "not ready: there is no leader: the server is looking for one\n"
	})
	if status, text, _ := get(t, p.URL()+"livez"); status != 200 {
		t.Errorf("livez: %d %s", status, text)
	}
	if _, text, _ := get(t, p.URL()+"readyz?verbose"); !strings.HasSuffix(text, "writes: the server carries out no writes without a leader\n") {
		t.Errorf("readyz?verbose: %s", text)
	}
	const why = "This ZooKeeper instance is not currently serving requests"
	for path, want := range map[string]string{
		"ruok": "{\n  \"command\" : \"ruok\",\n  \"error\" : \"" + why + "\"\n}", "lead": "\"command\" : \"lead\",\n  \"error\" : \"" + why,
		"mntr": "\"command\" : \"mntr\",\n  \"error\" : \"" + why, "zabstate": "{\n  \"voting\" : false,\n  \"zabstate\" : \"\",\n  \"command\" : \"zabstate\",\n  \"error\" : null\n}",
		"env": "\"zookeeper.version\" : \"" + version, "gtmk": "\"tracemask\" : 306", "sysp": "\"zookeeper.4lw.commands.whitelist\" : \"*\"",
	} {
		if status, text, _ := get(t, p.URL()+"commands/"+path); status != 200 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}

// awaits waits for a condition.
func awaits(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); !holds(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("timed out: %s", what)
		}
	}
}

// TestPortInUse shows the error for a port that is in use.
func TestPortInUse(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c := load(t)
	c.Admin.Address = ensemble.HostPort{Host: "127.0.0.1", Port: ln.Addr().(*net.TCPAddr).Port}
	s, err := server.New(server.Options{Config: c, FS: store.NewMem(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var used *InUseError
	if _, err = Open(Options{Server: s, Admin: admin.New(version)}); !errors.As(err, &used) || !strings.Contains(err.Error(), ln.Addr().String()) {
		t.Errorf("error %v", err)
	}
}

// TestStops shows that Run ends event streams and connections that are idle or in the middle of a
// request.
func TestStops(t *testing.T) {
	begun := make(chan struct{})
	p := open(t, load(t), func(o *Options) {
		o.API = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(begun)
			<-r.Context().Done()
		})
	})
	half, err := net.Dial("tcp", p.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer half.Close()
	fmt.Fprintf(half, "GET /livez HTTP/1.1\r\n")
	stream, err := net.Dial("tcp", p.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	fmt.Fprintf(stream, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
	<-begun
	p.stop()
	if _, err := bufio.NewReader(half).ReadByte(); err == nil {
		t.Error("a connection is still answered")
	}
}

// certificates makes a private authority, a server certificate for 127.0.0.1, and one for each client.
func certificates(t *testing.T, clients ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	subjects := []authority.Subject{{File: "server.pem", Name: "server", Hosts: []string{"127.0.0.1"}}}
	for _, name := range clients {
		subjects = append(subjects, authority.Subject{File: name + ".pem", Name: name})
	}
	if _, err := authority.Init(authority.Plan{Dir: dir, Subjects: subjects, Now: time.Now()}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// clientOf returns a client that knows the authority and shows the certificate of name; empty: none.
func clientOf(t *testing.T, dir, name string) *http.Client {
	t.Helper()
	c := &tls.Config{InsecureSkipVerify: true} // the server's certificate is not what these tests are about
	if name != "" {
		k, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".pem"))
		if err != nil {
			t.Fatal(err)
		}
		c.Certificates = []tls.Certificate{k}
	}
	tr := &http.Transport{TLSClientConfig: c}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}
