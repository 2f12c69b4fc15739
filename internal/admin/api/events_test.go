package api

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"bellwether/internal/admin/access"
)

// TestEventStreamLasts: a stream continues after the time limit of its request, and ends when its operator is
// signed out.
func TestEventStreamLasts(t *testing.T) {
	const token = "0123456789abcdef"
	a, file := start(t), filepath.Join(t.TempDir(), "tokens")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("ada " + token)
	guard, err := access.New(access.Options{TokenFile: file})
	if err != nil {
		t.Fatal(err)
	}
	guarded, over := guard.Guard(a.api, true), make(chan struct{})
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		end := time.Now().Add(20 * time.Millisecond)
		_ = http.NewResponseController(w).SetReadDeadline(end)
		time.AfterFunc(time.Until(end), func() { close(over) })
		guarded.ServeHTTP(w, r)
	}))
	defer h.Close()
	q, _ := http.NewRequestWithContext(t.Context(), "GET", h.URL+"/v1/events", nil)
	q.Header.Set("Authorization", "Bearer "+token)
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer r.Body.Close()
	<-over
	if _, _, err := a.zc.Create(t.Context(), "/new", nil); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(r.Body)
	for events := 0; events < 2; {
		if !in.Scan() {
			t.Fatalf("the stream ended after %d events: %v", events, in.Err())
		}
		if in.Text() == "event: ensemble" {
			events++
		}
	}
	write("bob " + token + "2")
	if err := guard.Reload(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(r.Body); err != nil {
		t.Errorf("after the sign-out: %q, %v", rest, err)
	}
}
