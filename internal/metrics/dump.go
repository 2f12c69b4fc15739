package metrics

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Line is a metric as the four-letter word mntr shows it, without the prefix zk_.
type Line struct{ Name, Value string }

// PrometheusLines returns all metrics as ZooKeeper's mntr shows them with its provider for
// Prometheus: one line for each sample, with its labels in the name, and each value as a
// Java double.
func (r *Registry) PrometheusLines() ([]Line, error) {
	all := prometheus.NewRegistry()
	if err := all.Register(r); err != nil {
		return nil, err
	}
	families, err := all.Gather()
	if err != nil {
		return nil, err
	}
	var out []Line
	for _, f := range families {
		for _, m := range f.Metric {
			out = append(out, sampleLines(f.GetName(), m)...)
		}
	}
	return out, nil
}

// sampleLines returns the samples of a metric.
func sampleLines(name string, m *dto.Metric) []Line {
	labels := make([]string, 0, len(m.Label)+1)
	for _, l := range m.Label {
		labels = append(labels, fmt.Sprintf(`%s="%s"`, l.GetName(), l.GetValue()))
	}
	line := func(suffix string, v float64, more ...string) Line {
		full := name + suffix
		if all := append(labels, more...); len(all) > 0 {
			full += "{" + strings.Join(all, ",") + "}"
		}
		return Line{full, JavaDouble(v)}
	}
	switch {
	case m.Gauge != nil:
		return []Line{line("", m.Gauge.GetValue())}
	case m.Counter != nil:
		return []Line{line("", m.Counter.GetValue())}
	}
	var out []Line
	for _, q := range m.GetSummary().GetQuantile() {
		out = append(out, line("", q.GetValue(), fmt.Sprintf(`quantile="%v"`, q.GetQuantile())))
	}
	s := m.GetSummary()
	return append(out, line("_count", float64(s.GetSampleCount())), line("_sum", s.GetSampleSum()))
}

// JavaDouble returns a number as Java's Double.toString does: with at least one digit after
// the point, and with an exponent below 1E-3 and from 1E7 on.
func JavaDouble(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 0):
		return strings.TrimPrefix(strconv.FormatFloat(v, 'f', -1, 64), "+") + "inity"
	case v == 0, a >= 1e-3 && a < 1e7:
		return withPoint(strconv.FormatFloat(v, 'f', -1, 64))
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'E', -1, 64), "E")
	n, _ := strconv.Atoi(exponent)
	return withPoint(mantissa) + "E" + strconv.Itoa(n)
}

// withPoint adds a fraction to a decimal number without one.
func withPoint(s string) string {
	if strings.Contains(s, ".") {
		return s
	}
	return s + ".0"
}
