package web

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"bellwether/internal/server"
)

// check is one condition of a health check. why says why it does not hold; empty: it holds.
type check struct{ name, why string }

// livez answers 200 unless the process should be restarted.
func (p *Port) livez(w http.ResponseWriter, r *http.Request) {
	report(w, r, "not alive", []check{{"loop", p.loop(r.Context())}})
}

// readyz answers 200 if the server serves reads and writes.
func (p *Port) readyz(w http.ResponseWriter, r *http.Request) {
	s := p.opt.Server
	checks := []check{{"data", whyNotLoaded(s)}, {"running", whyEnding(s)}, {"loop", p.loop(r.Context())}}
	if s.Loaded() {
		st := s.Status()
		checks = append(checks, check{"disk", whyDisk(&st)}, check{"leader", whyNoLeader(s, &st)}, check{"writes", whyNoWrites(s, &st)})
	}
	report(w, r, "not ready", checks)
}

// report sends the outcome: one line, or a line for each check with ?verbose.
func report(w http.ResponseWriter, r *http.Request, bad string, checks []check) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	var lines strings.Builder
	first := "ok"
	for _, c := range checks {
		if c.why == "" {
			fmt.Fprintf(&lines, "%s: ok\n", c.name)
			continue
		}
		fmt.Fprintf(&lines, "%s: %s\n", c.name, c.why)
		if first == "ok" {
			first = bad + ": " + c.why
		}
	}
	if first != "ok" {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	text := first + "\n"
	if r.URL.Query().Has("verbose") {
		text += lines.String()
	}
	_, _ = w.Write([]byte(text)) // the client may have gone
}

// loopMax is how long the server's loop may take to answer.
const loopMax = 5 * time.Second

// loop returns why the check of the server's loop fails; empty: the loop answers, or a restore has stopped it.
func (p *Port) loop(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, loopMax)
	defer cancel()
	if p.opt.Server.Restoring() || p.opt.Server.Answers(ctx) {
		return ""
	}
	return fmt.Sprintf("the server's loop has not answered for %v", loopMax)
}

func whyNotLoaded(s *server.Server) string {
	if s.Loaded() {
		return ""
	}
	return "the server is loading its data"
}

func whyEnding(s *server.Server) string {
	if s.Stopping() {
		return "the server is stopping"
	}
	return ""
}

func whyDisk(st *server.Status) string {
	if st.Disk == nil {
		return ""
	}
	return "the disk does not answer: " + st.Disk.String()
}

func whyNoLeader(s *server.Server, st *server.Status) string {
	switch {
	case s.ReplicaStatus() == nil && st.Mode != "standalone":
		return "the server has not begun to look for a leader"
	case st.Mode == "looking":
		return "there is no leader: the server is looking for one"
	case st.Mode != "standalone" && !s.ReplicaStatus().Serving && !st.ReadOnly:
		return "the server does not serve yet as " + st.Mode + ": it is being synchronised"
	}
	return ""
}

func whyNoWrites(s *server.Server, st *server.Status) string {
	switch {
	case !st.ReadOnly && whyNoLeader(s, st) != "":
		return "the server carries out no writes without a leader"
	case !st.ReadOnly:
		return ""
	case st.Reason != "":
		return "the server is read-only: " + st.Reason
	}
	return "the server is read-only: there is no quorum"
}
