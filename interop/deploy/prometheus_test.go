package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bellwether/interop/target"
)

// programs is where interop/install-tools.sh puts the programs of Debian's package prometheus.
const programs = "/usr/local/lib/bellwether-interop"

// tool returns the path of promtool or prometheus.
func tool(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(programs, name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s is missing: make tools unpacks it", path)
	}
	return path
}

// prometheus is a running Prometheus.
type prometheus struct{ url string }

// startPrometheus runs Prometheus on loopback until the test ends. It scrapes the targets
// every second and evaluates the alert rules.
func startPrometheus(t *testing.T, targets []string) *prometheus {
	t.Helper()
	dir := t.TempDir()
	rules, err := filepath.Abs(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%s]\nscrape_configs:\n  - job_name: bellwether\n    static_configs:\n      - targets: [%s]\n",
		rules, strings.Join(targets, ", "))
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	address := "127.0.0.1:" + target.FreePort(t)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(tool(t, "prometheus"), "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		log.Close()
		if text, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("the end of Prometheus's log:\n%s", text[max(0, len(text)-4000):])
		}
	})
	p := &prometheus{url: "http://" + address}
	eventually(t, "Prometheus is ready", func() error {
		_, err := p.get(t.Context(), "/-/ready")
		return err
	})
	return p
}

func (p *prometheus) get(ctx context.Context, path string) ([]byte, error) {
	q, err := http.NewRequestWithContext(ctx, "GET", p.url+path, nil)
	if err != nil {
		return nil, err
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != 200 {
		err = fmt.Errorf("%s: %s: %s", path, r.Status, b)
	}
	return b, err
}

// query returns how many series an expression has now.
func (p *prometheus) query(ctx context.Context, expr string) (series int, err error) {
	b, err := p.get(ctx, "/api/v1/query?query="+url.QueryEscape(expr))
	if err != nil {
		return 0, err
	}
	var answer struct {
		Data struct{ Result []json.RawMessage }
	}
	err = json.Unmarshal(b, &answer)
	return len(answer.Data.Result), err
}

// rule is an alert rule as Prometheus reports it.
type rule struct{ Name, Query, Health, LastError, State string }

// rules returns the alert rules, with the results of their last evaluation.
func (p *prometheus) rules(ctx context.Context) ([]rule, error) {
	b, err := p.get(ctx, "/api/v1/rules")
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data struct{ Groups []struct{ Rules []rule } }
	}
	if err := json.Unmarshal(b, &answer); err != nil {
		return nil, err
	}
	var all []rule
	for _, g := range answer.Data.Groups {
		all = append(all, g.Rules...)
	}
	return all, nil
}

// eventually waits until f returns nil.
func eventually(t *testing.T, what string, f func() error) {
	t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(2 * time.Minute); ; <-tick.C {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not after two minutes: %s: %v", what, err)
		}
	}
}
