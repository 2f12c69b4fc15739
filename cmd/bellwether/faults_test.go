package main

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"bellwether/embed"
	"bellwether/wire"
	"bellwether/zk"
)

var faultsAt = regexp.MustCompile(`(?m)^faults at (http://[^/]+)/$`)

// askFaults makes a call to the process that the script's command start has started, and returns the answer.
func askFaults(ts *testscript.TestScript, name, method, path string) (status int, body string) {
	found := faultsAt.FindStringSubmatch(ts.ReadFile(name + ".out"))
	if found == nil {
		ts.Fatalf("%s has not printed its address for calls", name)
	}
	q, err := http.NewRequest(method, found[1]+path, nil)
	ts.Check(err)
	r, err := http.DefaultClient.Do(q)
	ts.Check(err)
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	ts.Check(err)
	return r.StatusCode, string(b)
}

func callFaults(ts *testscript.TestScript, neg bool, args []string) {
	refuse(ts, neg, args, 3, "call NAME METHOD PATH")
	status, body := askFaults(ts, args[0], args[1], args[2])
	if status/100 != 2 {
		ts.Fatalf("status %d: %s", status, body)
	}
	fmt.Fprint(ts.Stdout(), body)
}

func refusedFaults(ts *testscript.TestScript, neg bool, args []string) {
	refuse(ts, neg, args, 5, "refused NAME METHOD PATH STATUS REGEX")
	status, body := askFaults(ts, args[0], args[1], args[2])
	if ok, err := regexp.MatchString(args[4], body); strconv.Itoa(status) != args[3] || !ok || err != nil {
		ts.Fatalf("status %d: %s", status, body)
	}
}

// nameServers sets $NAME, $NAME1, $NAME2 and so on to the addresses of a running ensemble.
func nameServers(ts *testscript.TestScript, neg bool, args []string) {
	refuse(ts, neg, args, 1, "servers NAME")
	found := ensembleAt.FindStringSubmatch(ts.ReadFile(args[0] + ".out"))
	if found == nil {
		ts.Fatalf("%s does not serve", args[0])
	}
	ts.Setenv(args[0], found[1])
	for i, address := range strings.Split(found[1], ",") {
		ts.Setenv(args[0]+strconv.Itoa(i+1), address)
	}
}

// TestFaultsOverHTTP shows that a call expires a session, whether it names the session in hex or in decimal, and
// that requests from web pages are refused.
func TestFaultsOverHTTP(t *testing.T) {
	e, err := embed.Start(t.Context(), embed.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	s := httptest.NewServer(faultsHandler(e, slog.New(slog.DiscardHandler)))
	defer s.Close()
	post := func(path string, header ...string) int {
		q, err := http.NewRequest("POST", s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			q.Header.Set(header[i], header[i+1])
		}
		if q.Header.Get("Host") != "" {
			q.Host = q.Header.Get("Host")
		}
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		return r.StatusCode
	}
	for _, name := range []func(wire.SessionID) string{
		wire.SessionID.String, func(id wire.SessionID) string { return strconv.FormatInt(int64(id), 10) },
	} {
		c, err := e.Client(t.Context(), &zk.Options{OneSession: true})
		if err != nil {
			t.Fatal(err)
		}
		if status := post("/sessions/" + name(c.Session().ID) + "/expire"); status != http.StatusNoContent {
			t.Errorf("status %d", status)
		}
		for st := range c.States(t.Context()) {
			if st.State == zk.Expired {
				break
			}
		}
		c.Detach()
	}
	if status := post("/heal", "Origin", "http://example.com"); status != http.StatusForbidden {
		t.Errorf("a page: status %d", status)
	}
	if status := post("/heal", "Host", "example.com"); status != http.StatusForbidden {
		t.Errorf("another name: status %d", status)
	}
}
