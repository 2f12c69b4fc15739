package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
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
	if err := run(t.Context(), []string{at}, time.Second, true); err != nil {
		t.Fatal(err)
	}
	body := <-bodies
	for _, want := range []string{"/v1/traces", "/exported", "fsync", "quorum", "server create", "zookeeper.cxid"} {
		if !strings.Contains(body, want) {
			t.Errorf("what the collector got does not contain %q", want)
		}
	}
	if err := run(t.Context(), []string{serve(t, "ruok")}, time.Second, true); err == nil || !strings.Contains(err.Error(), "4lw.commands.whitelist") {
		t.Errorf("a server that does not show its traces: %v", err)
	}
}
