package server

import (
	"os"
	"regexp"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"bellwether/internal/metrics"
)

// catalogue returns the metrics of a member of an ensemble. It has all metrics that any server
// has.
func catalogue(t *testing.T) []metrics.Description {
	t.Helper()
	g := newTestEnsemble(t, 3, 0, false)
	g.start(g.servers[0])
	return g.servers[0].Metrics().Catalogue()
}

// metricRow is a row of the table in docs/metrics.md: name, kind, unit, meaning.
var metricRow = regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)(\\{key\\})?` \\| (gauge|counter|summary|summary with quantiles) \\| ([^|]*) \\| ([^|]+) \\|$")

// TestMetricsAreDocumented compares the table of docs/metrics.md with the registry: each
// metric has one row, and the row has its kind and says whether it has a key.
func TestMetricsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		kind string
		key  bool
	}
	rows := map[string]row{}
	for _, m := range metricRow.FindAllStringSubmatch(string(text), -1) {
		if _, twice := rows[m[1]]; twice {
			t.Errorf("docs/metrics.md has %s twice", m[1])
		}
		rows[m[1]] = row{kind: m[3], key: m[2] != ""}
	}
	for _, d := range catalogue(t) {
		want := row{kind: string(d.Kind), key: d.Keyed}
		if d.Quantiles {
			want.kind = "summary with quantiles"
		}
		if got, there := rows[d.Name]; !there {
			t.Errorf("docs/metrics.md has no row for %s, a %s", d.Name, want.kind)
		} else if got != want {
			t.Errorf("docs/metrics.md says of %s: %+v, the registry says: %+v", d.Name, got, want)
		}
		delete(rows, d.Name)
	}
	for name := range rows {
		t.Errorf("docs/metrics.md has a row for %s, which is not in the registry", name)
	}
}

// BenchmarkScrape measures what a scrape of a server's own metrics costs.
func BenchmarkScrape(b *testing.B) {
	s := start(b, Options{})
	r := prometheus.NewRegistry()
	r.MustRegister(s.Metrics())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}
