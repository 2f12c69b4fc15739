package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bellwether/internal/admin"
	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/server"
	"bellwether/internal/store"
	"bellwether/zk"
)

// serve runs a server until the test ends, and returns its address.
func serve(t *testing.T, words ...string) string {
	t.Helper()
	c := config.Default()
	c.Client = ensemble.HostPort{Host: "127.0.0.1"}
	c.DataDir, c.DataLogDir = "data", "data"
	c.FourLetterWords, c.Tracing.Enabled = words, true
	s, err := server.New(server.Options{Config: c, FS: store.NewMem(1), FourLetterWords: admin.New("3.9.5").Word})
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
	return s.Addr().String()
}

// TestTracesReachACollector runs a server whose requests are traced, and a collector: the spans
// of a request arrive there by OTLP. For a server that does not show its traces, the error names
// the key that makes it show them.
func TestTracesReachACollector(t *testing.T) {
	bodies := make(chan string, 100)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies <- r.URL.Path + " " + string(b)
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
	at := serve(t, "trac")
	c, err := zk.Connect(t.Context(), at, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Create(t.Context(), "/exported", nil); err != nil {
		t.Fatal(err)
	}
	c.Close(t.Context())
	waitForTraces(t, at, "/exported", 1)
	if err := run(t.Context(), []string{at}, time.Second, true); err != nil {
		t.Fatal(err)
	}
	body := ""
	for len(bodies) > 0 {
		body += <-bodies
	}
	for _, want := range []string{"/v1/traces", "/exported", "fsync", "quorum", "server create", "zookeeper.cxid"} {
		if !strings.Contains(body, want) {
			t.Errorf("what the collector got does not contain %q", want)
		}
	}
	silent := serve(t, "ruok")
	if err := run(t.Context(), []string{silent}, time.Second, true); err == nil || !strings.Contains(err.Error(), "4lw.commands.whitelist") || !strings.Contains(err.Error(), silent) {
		t.Errorf("a server that does not show its traces: %v", err)
	}
}

// TestNoSpanIsDropped: more spans than the queue holds reach a collector, and --once fails if it refuses them.
func TestNoSpanIsDropped(t *testing.T) {
	var created, status atomic.Int64
	status.Store(http.StatusOK)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		created.Add(int64(strings.Count(string(b), "server create")))
		w.WriteHeader(int(status.Load()))
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "1")
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
	at := serve(t, "trac")
	c, err := zk.Connect(t.Context(), at, nil)
	if err != nil {
		t.Fatal(err)
	}
	const nodes = 50
	for i := range nodes {
		if _, _, err := c.Create(t.Context(), fmt.Sprintf("/%d", i), nil); err != nil {
			t.Fatal(err)
		}
	}
	c.Close(t.Context())
	waitForTraces(t, at, `"op":"create`, nodes)
	if err := run(t.Context(), []string{at}, time.Second, true); err != nil {
		t.Fatal(err)
	}
	if n := created.Load(); n < nodes {
		t.Errorf("the collector got %d spans of %d requests", n, nodes)
	}
	status.Store(http.StatusForbidden)
	if err := run(t.Context(), []string{at}, time.Second, true); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("the collector refuses spans: %v", err)
	}
}

// waitForTraces waits until the traces of a server contain text n times: the server shows the
// trace of a request a little after its reply.
func waitForTraces(t *testing.T, server, text string, n int) {
	t.Helper()
	for strings.Count(traces(t, server), text) < n {
	}
}

// traces returns the traces of a server as it shows them.
func traces(t *testing.T, server string) string {
	t.Helper()
	conn, err := net.Dial("tcp", server)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "trac"); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
