package embed

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestAdminPort shows that each server of an ensemble has an admin port while it runs, if the options ask for one.
func TestAdminPort(t *testing.T) {
	e := started(t, Options{Servers: 3, Admin: true})
	for i := 1; i <= 3; i++ {
		r, err := http.Get(e.Server(i).AdminURL() + "commands/voting_view")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || r.StatusCode != 200 || !strings.Contains(string(text), `"3" : {`) {
			t.Errorf("server %d: %d %s %v", i, r.StatusCode, text, err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	if err := e.Server(1).Stop(); err != nil {
		t.Fatal(err)
	}
	if url := e.Server(1).AdminURL(); url != "" {
		t.Errorf("a stopped server has an admin port at %s", url)
	}
	if err := e.Server(1).Start(); err != nil {
		t.Fatal(err)
	}
	if e.Server(1).AdminURL() == "" || e.Server(2).AdminURL() == e.Server(1).AdminURL() {
		t.Error("no admin port after the next start")
	}
}

// TestNoAdminPort shows that a server has no admin port without the option Admin, and that the option cannot be
// combined with InMemory.
func TestNoAdminPort(t *testing.T) {
	if url := started(t, Options{}).Server(1).AdminURL(); url != "" {
		t.Errorf("an admin port at %s", url)
	}
	if _, err := Start(t.Context(), Options{Admin: true, InMemory: true}); err == nil {
		t.Error("Admin with InMemory is accepted")
	}
}
