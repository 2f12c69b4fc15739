package web

import (
	"context"
	"net/http"
	"testing"

	"bellwether/internal/admin/access"
)

// TestNilHandlersAreNotFound shows that what is not plugged in answers 404, and that the API
// learns who asks.
func TestNilHandlersAreNotFound(t *testing.T) {
	seen := make(chan access.Viewer, 1)
	p, err := Open(Options{Address: "127.0.0.1:0", API: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- access.ViewerOf(r.Context()) })})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	for path, want := range map[string]int{"": 404, "metrics": 404, "v1/x": 200} {
		r, err := http.Get(p.URL() + path)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode != want {
			t.Errorf("/%s: %d, want %d", path, r.StatusCode, want)
		}
	}
	if v := <-seen; !v.Loopback || v.MayChange() {
		t.Errorf("viewer %+v", v)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
