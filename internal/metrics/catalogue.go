package metrics

// Kind is the kind of a metric.
type Kind string

// The kinds of metrics, in the words of Prometheus.
const (
	KindGauge   Kind = "gauge"
	KindCounter Kind = "counter"
	KindSummary Kind = "summary"
)

// Description describes one metric of a registry.
type Description struct {
	Name      string
	Kind      Kind
	Quantiles bool // a summary with quantiles 0.5, 0.9 and 0.99
	Keyed     bool // a value for each key
}

// Catalogue describes all metrics, in order of registration.
func (r *Registry) Catalogue() []Description {
	var out []Description
	for _, e := range r.list() {
		d := Description{Name: e.name, Keyed: e.hasKey()}
		switch {
		case e.counter != nil:
			d.Kind = KindCounter
		case e.summary != nil:
			d.Kind, d.Quantiles = KindSummary, e.summary.windows != nil
		case e.keyed != nil:
			d.Kind, d.Quantiles = KindSummary, e.keyed.quantiles
		default:
			d.Kind = KindGauge
		}
		out = append(out, d)
	}
	return out
}
