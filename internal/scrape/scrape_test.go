package scrape

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"bellwether/internal/metrics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// page returns a handler over a registry with one metric of each kind.
func page(process bool) http.Handler {
	r := metrics.New()
	r.Counter("commit_count").Add(7)
	r.Gauge("znode_count", func() float64 { return 5 })
	r.KeyedGauge("learner_lag_txns", func() map[string]float64 { return map[string]float64{"2": 0, "3": 12} })
	r.Basic("fsynctime").Observe(4*metrics.Unit, 1)
	r.Advanced("readlatency")
	r.AdvancedKeyed("ack_latency", 3).Of("2").Observe(metrics.Unit, 1)
	return Handler(Options{Metrics: r, Version: "1.2", Process: process, Memory: 1 << 30, Log: slog.New(slog.DiscardHandler)})
}

// open runs a port until the test ends, and returns its address.
func open(t *testing.T, h http.Handler) string {
	t.Helper()
	p, err := Open("127.0.0.1:0", h, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return p.Addr().String()
}

// get returns the status and the body of an answer.
func get(t *testing.T, method, url string) (int, string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

// TestPageHasZooKeepersForm shows the names, types and labels of ZooKeeper's page: counters
// without _total, the label key, and summaries with quantiles.
func TestPageHasZooKeepersForm(t *testing.T) {
	status, text := get(t, "GET", "http://"+open(t, page(false))+"/metrics")
	if status != 200 {
		t.Fatalf("status %d", status)
	}
	for _, line := range []string{
		"# HELP commit_count commit_count", "# TYPE commit_count counter", "commit_count 7",
		"# TYPE znode_count gauge", "znode_count 5", `learner_lag_txns{key="3"} 12`,
		"# TYPE fsynctime summary", `fsynctime{quantile="0.5"} 4`, "fsynctime_sum 4", "fsynctime_count 1",
		`readlatency{quantile="0.99"} NaN`, "readlatency_count 0", `ack_latency{key="2",quantile="0.9"} 1`,
		`bellwether_build_info{goversion="go`,
	} {
		if !strings.Contains(text, "\n"+line) && !strings.HasPrefix(text, line) {
			t.Errorf("no line begins with %s", line)
		}
	}
	for _, prefix := range []string{"jvm_", "go_", "process_"} {
		if strings.Contains(text, "\n"+prefix) {
			t.Errorf("metrics %s* are there although exportJvmInfo is false", prefix)
		}
	}
}

// TestPageStandsInForJava shows the metrics of the process, with those of Java that alert
// rules divide by.
func TestPageStandsInForJava(t *testing.T) {
	_, text := get(t, "GET", "http://"+open(t, page(true))+"/metrics")
	for _, line := range []string{
		`jvm_memory_bytes_max{area="heap"} 1.073741824e+09`, `jvm_memory_bytes_used{area="heap"} `, "jvm_threads_deadlocked 0", "jvm_threads_current ",
		`jvm_gc_collection_seconds_count{gc="go"} `, "process_cpu_seconds_total ", "process_resident_memory_bytes ", "process_start_time_seconds ", "go_goroutines ",
	} {
		if !strings.Contains(text, "\n"+line) {
			t.Errorf("no line begins with %s", line)
		}
	}
}

// TestPageTakesNames shows the selection of metrics, which ZooKeeper's page has too.
func TestPageTakesNames(t *testing.T) {
	_, text := get(t, "GET", "http://"+open(t, page(true))+"/metrics?name[]=commit_count&name[]=znode_count")
	if want := 2; strings.Count(text, "# TYPE ") != want {
		t.Errorf("not only two metrics:\n%s", text)
	}
}

// TestPortInUse shows the error for a port that another process uses.
func TestPortInUse(t *testing.T) {
	address := open(t, page(false))
	_, err := Open(address, page(false), slog.New(slog.DiscardHandler))
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "metricsProvider.httpPort") {
		t.Errorf("error %v", err)
	}
	if _, err := Open("192.0.2.1:0", page(false), slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "metricsProvider.httpHost") {
		t.Errorf("error for an address of another machine: %v", err)
	}
}

// TestHostileRequests shows that wrong paths, methods and headers are refused, each with its
// status, and that the page is answered afterwards.
func TestHostileRequests(t *testing.T) {
	address := open(t, page(false))
	for _, c := range []struct{ text, want string }{
		{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "404"},
		{"GET /metrics/../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", "307"}, // to the cleaned path, which is 404
		{"GET /etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", "404"},
		{"GET /metrics/x HTTP/1.1\r\nHost: x\r\n\r\n", "404"},
		{"TRACE /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "405"},
		{"DELETE /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "405"},
		{"GET /metrics HTTP/1.1\r\n\r\n", "400"},
		{"\x00\x00\x00\x2d\x00\x00\x00\x00\r\n\r\n", "400"}, // a ZooKeeper client
		{"GET /metrics HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("a", headerMax+8<<10) + "\r\n\r\n", "431"},
	} {
		nc, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		nc.SetDeadline(time.Now().Add(time.Minute))
		io.WriteString(nc, c.text) // the server may refuse before it has read everything
		line, _ := bufio.NewReader(nc).ReadString('\n')
		if !strings.Contains(line, " "+c.want+" ") && !strings.HasSuffix(strings.TrimSpace(line), c.want) {
			t.Errorf("%.40q: answer %q, want %s", c.text, line, c.want)
		}
		nc.Close()
	}
	if status, _ := get(t, "GET", "http://"+address+"/metrics"); status != 200 {
		t.Errorf("afterwards the page has status %d", status)
	}
}

// TestSlowRequestsEnd shows that a client that does not finish its request is disconnected.
func TestSlowRequestsEnd(t *testing.T) {
	address := open(t, page(false))
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprint(nc, "GET /metrics HTTP/1.1\r\nHost: x\r\n")
	begin := time.Now()
	if _, err := io.Copy(io.Discard, nc); err != nil {
		t.Fatalf("after %v: %v", time.Since(begin), err)
	}
	if took := time.Since(begin); took > 4*headerTime {
		t.Errorf("disconnected after %v", took)
	}
}

// TestManyConnections shows that connections beyond the limit are closed at once, and that
// the page is answered when others end.
func TestManyConnections(t *testing.T) {
	address := open(t, page(false))
	var idle []net.Conn
	for range connectionsMax {
		nc, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		idle = append(idle, nc)
	}
	more, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer more.Close()
	more.SetDeadline(time.Now().Add(time.Minute))
	if n, err := io.Copy(io.Discard, more); n != 0 || errors.Is(err, syscall.ETIMEDOUT) {
		t.Errorf("one connection too many got %d bytes, %v", n, err)
	}
	for _, nc := range idle {
		nc.Close()
	}
	for end := time.Now().Add(time.Minute); ; {
		r, err := http.Get("http://" + address + "/metrics")
		if err == nil {
			r.Body.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}
