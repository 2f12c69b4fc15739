package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/zk"
)

const (
	rulesFile     = "../../deploy/prometheus/bellwether.rules.yml"
	rulesTest     = "../../deploy/prometheus/bellwether.test.yml"
	exampleFile   = "../../deploy/prometheus/prometheus.yml"
	dashboardFile = "../../deploy/grafana/bellwether.json"
)

// TestMain removes the program that package target has built.
func TestMain(m *testing.M) {
	code := m.Run()
	if err := target.RemoveBinary(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// TestRulesPassPromtool shows that the alert rules and the example of a configuration are
// valid, and that the unit tests of the rules pass.
func TestRulesPassPromtool(t *testing.T) {
	for _, args := range [][]string{{"check", "rules", rulesFile}, {"check", "config", exampleFile}, {"test", "rules", rulesTest}} {
		if out, err := exec.Command(tool(t, "promtool"), args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// TestRulesAreTested shows that the unit tests name every alert, and that docs/operate.md
// explains every alert.
func TestRulesAreTested(t *testing.T) {
	alerts := regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(read(t, rulesFile), -1)
	if len(alerts) == 0 {
		t.Fatal("there are no alerts")
	}
	tests, page := read(t, rulesTest), read(t, "../../docs/operate.md")
	for _, a := range alerts {
		if !strings.Contains(tests, a[1]) {
			t.Errorf("%s does not test %s", rulesTest, a[1])
		}
		if !strings.Contains(page, "`"+a[1]+"`") {
			t.Errorf("docs/operate.md does not explain %s", a[1])
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// dashboard returns the expressions of the dashboard by the title of their panel.
func dashboard(t *testing.T) map[string][]string {
	t.Helper()
	var board struct {
		Panels []struct {
			Type, Title, Description string
			Targets                  []struct{ Expr string }
		}
		Annotations struct{ List []struct{ Name, Expr string } }
	}
	if err := json.Unmarshal([]byte(read(t, dashboardFile)), &board); err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, p := range board.Panels {
		if p.Type == "row" {
			continue
		}
		if p.Description == "" || len(p.Targets) == 0 || all[p.Title] != nil {
			t.Errorf("the panel %q has no description, no expression, or the title of another one", p.Title)
		}
		for _, x := range p.Targets {
			all[p.Title] = append(all[p.Title], concrete(x.Expr))
		}
	}
	return all
}

// concrete replaces the variables of the dashboard.
func concrete(expr string) string {
	return strings.NewReplacer("$job", "bellwether", "$instance", ".*", "$__rate_interval", "10s").Replace(expr)
}

// TestExpressionsHaveSeries runs an ensemble of three with TLS under load, and Debian's
// Prometheus, which scrapes it. Every expression of the dashboard returns a series. Every
// alert rule is evaluated without an error, does not fire on the healthy ensemble, and each of its
// metrics has a series. When a follower is killed, its alert is raised.
func TestExpressionsHaveSeries(t *testing.T) {
	e, targets := startEnsemble(t)
	p := startPrometheus(t, targets)
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for i, s := range e.Servers {
		clients.Go(func() {
			if err := load(ctx, s.Addr, i); err != nil {
				t.Errorf("the load of server %d ended: %v", i+1, err)
			}
		})
	}
	for title, exprs := range dashboard(t) {
		for _, expr := range exprs {
			hasSeries(t, p, title, expr)
		}
	}
	rules := checkRules(t, p)
	for _, name := range slices.Sorted(maps.Keys(metricsOf(rules))) {
		hasSeries(t, p, "an alert rule", name)
	}
	stop()
	clients.Wait()
	killedFollowerAlerts(t, e, p)
}

func hasSeries(t *testing.T, p *prometheus, what, expr string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s: %s has a series", what, expr), func() error {
		n, err := p.query(t.Context(), expr)
		if err == nil && n == 0 {
			err = fmt.Errorf("no series")
		}
		return err
	})
}

// checkRules waits until every rule is evaluated, and returns the rules.
func checkRules(t *testing.T, p *prometheus) []rule {
	t.Helper()
	var rules []rule
	eventually(t, "all rules are evaluated", func() (err error) {
		if rules, err = p.rules(t.Context()); err != nil {
			return err
		}
		for _, r := range rules {
			if r.Health != "ok" {
				return fmt.Errorf("%s: %s %s", r.Name, r.Health, r.LastError)
			}
		}
		return nil
	})
	if len(rules) == 0 {
		t.Fatal("Prometheus has no rules")
	}
	for _, r := range rules {
		if r.State == "firing" {
			t.Errorf("%s fires on a healthy ensemble", r.Name)
		}
	}
	return rules
}

var (
	metricName = regexp.MustCompile(`[a-z_][a-zA-Z0-9_]*`)
	inBraces   = regexp.MustCompile(`\{[^}]*\}|\[[^\]]*\]|(?:by|on) ?\([^)]*\)`)
	// words are the names in the rules that are not metrics.
	words = []string{"sum", "count", "max", "floor", "rate", "increase", "predict_linear", "and", "or", "e", "by", "on"}
)

// metricsOf returns the metrics that the rules use.
func metricsOf(rules []rule) map[string]bool {
	names := map[string]bool{}
	for _, r := range rules {
		for _, name := range metricName.FindAllString(inBraces.ReplaceAllString(r.Query, ""), -1) {
			if !slices.Contains(words, name) {
				names[name] = true
			}
		}
	}
	return names
}

// startEnsemble runs three servers, each with a port for metrics, and TLS for the certificate
// metrics. It returns the addresses of the ports.
func startEnsemble(t *testing.T) (*target.Ensemble, []string) {
	t.Helper()
	bin, err := target.Binary()
	if err != nil {
		t.Fatal(err)
	}
	certs := t.TempDir()
	if out, err := exec.Command(bin, "tls", "init", "--dir", certs, "--server", "1=localhost,127.0.0.1").CombinedOutput(); err != nil {
		t.Fatalf("tls init: %v\n%s", err, out)
	}
	extra := map[string]string{
		"metricsProvider.className": "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider",
		"metricsProvider.httpHost":  "127.0.0.1", "metricsProvider.httpPort": "0",
		"sslQuorum": "true", "client.portUnification": "true", "tickTime": "1000", "initLimit": "20", "syncLimit": "10",
	}
	for _, prefix := range []string{"ssl.", "ssl.quorum."} {
		extra[prefix+"keyStore.location"], extra[prefix+"trustStore.location"] = filepath.Join(certs, "server.1.pem"), filepath.Join(certs, "ca.pem")
	}
	e := target.EnsembleFor(t, target.EnsembleOptions{Kinds: []target.Kind{target.Bellwether, target.Bellwether, target.Bellwether}, Extra: extra})
	if _, err := e.AwaitWhole(time.Minute); err != nil {
		t.Fatal(err)
	}
	var targets []string
	port := regexp.MustCompile(`metrics at http://([^/]+)/metrics`)
	for _, s := range e.Servers {
		found := port.FindStringSubmatch(s.Log())
		if found == nil {
			t.Fatalf("the log names no port for metrics:\n%s", s.Log())
		}
		targets = append(targets, found[1])
	}
	return e, targets
}

// load writes, reads and watches on one server until its context ends.
func load(ctx context.Context, server string, number int) error {
	c, err := zk.Connect(ctx, server, nil)
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	for i := 0; ctx.Err() == nil; i++ {
		if err := round(ctx, c, fmt.Sprintf("/load-%d-%d", number, i)); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// round creates, reads, watches, changes and deletes a znode.
func round(ctx context.Context, c *zk.Client, path string) error {
	_, _, err := c.Create(ctx, path, []byte("x"))
	if err == nil {
		_, _, _, err = c.GetW(ctx, path)
	}
	if err == nil {
		_, _, _, err = c.ChildrenW(ctx, path)
	}
	if err == nil {
		_, err = c.Set(ctx, path, []byte("yy"), zk.AnyVersion)
	}
	if err == nil {
		_, _, err = c.Create(ctx, path+"/e", nil, zk.Ephemeral)
	}
	if err == nil {
		err = c.Sync(ctx, "/")
	}
	if err == nil {
		err = c.DeleteRecursive(ctx, path)
	}
	return err
}

// killedFollowerAlerts kills a follower and waits until the alerts about it are raised.
func killedFollowerAlerts(t *testing.T, e *target.Ensemble, p *prometheus) {
	t.Helper()
	leader, err := e.AwaitWhole(time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	e.Servers[(leader+1)%len(e.Servers)].Kill()
	for _, name := range []string{"BellwetherServerDown", "BellwetherNoSpareServer", "BellwetherFollowerMissing"} {
		hasSeries(t, p, "a killed follower", `ALERTS{alertname="`+name+`"}`)
	}
}
