package page

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"bellwether/internal/admin"
	"bellwether/internal/admin/history"
	"bellwether/internal/admin/operate"
	"bellwether/internal/admin/view"
	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/portblock"
	"bellwether/internal/server"
	"bellwether/internal/store"
)

// member is a server of an ensemble of this process.
type member struct {
	*server.Server
	stop func()
}

// ensembleOf runs an ensemble until the test ends, and waits until all servers serve.
func ensembleOf(t *testing.T, n int) []*member {
	t.Helper()
	free, err := portblock.Free("127.0.0.1", 3*n)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "server.%d=127.0.0.1:%d:%d:participant;127.0.0.1:%d\n", i+1, free[3*i], free[3*i+1], free[3*i+2])
	}
	m, err := ensemble.Parse(text.String())
	if err != nil {
		t.Fatal(err)
	}
	var all []*member
	for i := range n {
		c := config.Default()
		c.Client = ensemble.HostPort{Host: "127.0.0.1", Port: free[3*i+2]}
		c.DataDir, c.DataLogDir = "data", "data"
		c.Ensemble.Members, c.Ensemble.ID, c.Ensemble.HasID = m, ensemble.ServerID(i+1), true
		c.Ensemble.InitLimit, c.Ensemble.SyncLimit = 10, 5
		s, err := server.New(server.Options{Config: c, FS: store.NewMem(1), FourLetterWords: admin.New("1").Word})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if err := s.Run(ctx); err != nil {
				t.Error(err)
			}
		}()
		one := &member{s, func() { cancel(); <-ended }}
		t.Cleanup(one.stop)
		all = append(all, one)
	}
	for _, one := range all {
		until(t, "all servers serve", one.Serving)
	}
	return all
}

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); !holds(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}

// leaderOf returns the index of the leader; -1: there is none.
func leaderOf(all []*member) int {
	for i, m := range all {
		if st := m.ReplicaStatus(); st != nil && st.Serving && m.Status().Mode == "leader" {
			return i
		}
	}
	return -1
}

// pageWithHistory returns the page of a server with the last hour of its figures.
func pageWithHistory(t *testing.T, s *server.Server) *Page {
	t.Helper()
	h := history.New(s)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	p, err := New(Options{Server: s, View: view.New(s, "1"), Changes: operate.New(s), History: h, Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "figures have been read", func() bool { return len(h.Series()[0].Values) > 0 })
	return p
}

var compareLink = regexp.MustCompile(`href="(/elections\?left=[0-9.]+&amp;right=[0-9.]+)"`)

// TestElectionsOfAnEnsemble: the page draws the last election with the records of all
// servers that answer, names those that do not, and shows two elections side by side.
func TestElectionsOfAnEnsemble(t *testing.T) {
	all := ensembleOf(t, 3)
	leader := leaderOf(all)
	other := (leader + 1) % 3
	p := pageWithHistory(t, all[other].Server)
	body := bodyOf(t, ask(p, looker, "GET", "/elections", ""))
	for _, want := range []string{`<svg xmlns="http://www.w3.org/2000/svg" class="theatre"`, `id="left-title"`, "It ended because", " clock", "All recorded elections"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not contain %q", want)
		}
	}
	all[leader].stop()
	until(t, "another server leads", func() bool { l := leaderOf(all); return l >= 0 && l != leader })
	missing := fmt.Sprintf("No record of server %d:", leader+1)
	until(t, "the page shows two elections side by side, and names the server that has ended", func() bool {
		link := compareLink.FindStringSubmatch(bodyOf(t, ask(p, looker, "GET", "/elections", "")))
		if link == nil {
			return false
		}
		body = bodyOf(t, ask(p, looker, "GET", strings.ReplaceAll(link[1], "&amp;", "&"), ""))
		return strings.Contains(body, `id="left-title"`) && strings.Contains(body, `id="right-title"`) && strings.Contains(body, missing)
	})
	if strings.Contains(body, " style=") {
		t.Error("the page has inline styles, which its policy forbids")
	}
	for _, target := range []string{"/elections?left=1.1", "/elections?left=%3Cscript%3E"} {
		r := ask(p, looker, "GET", target, "")
		if body := bodyOf(t, r); r.StatusCode != http.StatusNotFound || !strings.Contains(body, "No server has a record") || strings.Contains(body, "left=<script>") {
			t.Errorf("%s: %d %s", target, r.StatusCode, body)
		}
	}
}

// TestFiguresOfAnIdleEnsemble: the figures of servers without clients do not count the connections by which they were
// read, so they stay the same; and learners that lack nothing of a new epoch have no lag.
func TestFiguresOfAnIdleEnsemble(t *testing.T) {
	all := ensembleOf(t, 3)
	v := view.New(all[0].Server, "1")
	until(t, "two learners have no lag", func() bool {
		learners := 0
		for _, m := range v.Ensemble(t.Context()).Servers {
			if m.Connections != 0 {
				t.Fatalf("server %d has %d connections", m.ID, m.Connections)
			}
			if m.Mode == "follower" && m.Behind != nil && *m.Behind == 0 {
				learners++
			}
		}
		return learners == 2
	})
}

// TestServerWithoutLeaderSaysSo: each page of a server that has no leader says that the tree may be out of date.
func TestServerWithoutLeaderSaysSo(t *testing.T) {
	all := ensembleOf(t, 3)
	p := pageOf(t, all[0].Server)
	warns := func() bool { return strings.Contains(show(t, p, looker, "/tree", 200), "may be out of date") }
	if warns() {
		t.Error("a server that serves warns of old data")
	}
	all[1].stop()
	all[2].stop()
	until(t, "the page warns", warns)
}

// TestElectionsOfAStandaloneServer: the page of elections says that a standalone server has none, and the page of
// the last hour answers 404 without a history.
func TestElectionsOfAStandaloneServer(t *testing.T) {
	p := pageOf(t, serve(t))
	if body := bodyOf(t, ask(p, looker, "GET", "/elections", "")); !strings.Contains(body, "takes part in no election") {
		t.Error(body)
	}
	p.o.History = nil
	if r := ask(p, looker, "GET", "/history", ""); r.StatusCode != http.StatusNotFound {
		t.Errorf("the last hour without a history: %d", r.StatusCode)
	}
}

// TestLastHour: the page shows each figure as a chart, with a text that says the same.
func TestLastHour(t *testing.T) {
	p := pageWithHistory(t, serve(t))
	body := bodyOf(t, ask(p, looker, "GET", "/history", ""))
	if n := strings.Count(body, `<svg xmlns="http://www.w3.org/2000/svg" class="chart"`); n != 12 {
		t.Errorf("%d charts", n)
	}
	for _, want := range []string{"Outstanding requests in the last hour: minimum", "Znodes", "Resident memory", "per second"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not contain %q", want)
		}
	}
	if strings.Contains(body, " style=") {
		t.Error("the page has inline styles, which its policy forbids")
	}
}
