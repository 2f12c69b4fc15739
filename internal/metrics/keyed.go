package metrics

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Keyed holds summaries of one name, one for each key. mntr prefixes the name with the
// key; Prometheus has the key as a label.
type Keyed struct {
	quantiles bool
	max       int

	mu   sync.Mutex
	keys []keyedSummary // sorted by key
}

type keyedSummary struct {
	key string
	*Summary
}

// BasicKeyed registers summaries without quantiles for at most max keys.
func (r *Registry) BasicKeyed(name string, max int) *Keyed { return r.keyed(name, false, max) }

// AdvancedKeyed registers summaries with quantiles for at most max keys.
func (r *Registry) AdvancedKeyed(name string, max int) *Keyed { return r.keyed(name, true, max) }

func (r *Registry) keyed(name string, quantiles bool, max int) *Keyed {
	k := &Keyed{quantiles: quantiles, max: max}
	r.add(entry{name: name, keyed: k})
	return k
}

// Of returns the summary of a key. It takes a lock, so a caller that adds often should keep
// the result. If there are max keys already, Of returns a summary that is not exported.
func (k *Keyed) Of(key string) *Summary {
	k.mu.Lock()
	defer k.mu.Unlock()
	at, there := slices.BinarySearchFunc(k.keys, key, func(e keyedSummary, key string) int { return cmp.Compare(e.key, key) })
	if there {
		return k.keys[at].Summary
	}
	s := NewSummary(k.quantiles)
	if len(k.keys) < k.max {
		k.keys = slices.Insert(k.keys, at, keyedSummary{strings.Clone(key), s})
	}
	return s
}

// all returns a copy of the summaries.
func (k *Keyed) all() []keyedSummary {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.keys)
}

func (k *Keyed) rotate() {
	for _, e := range k.all() {
		e.rotate()
	}
}

func (k *Keyed) reset() {
	for _, e := range k.all() {
		e.Reset()
	}
}

func (k *Keyed) samples(name string) (out []Sample) {
	for _, e := range k.all() {
		out = append(out, e.Summary.samples(e.key+"_"+name)...)
	}
	return out
}

func (k *Keyed) collect(d *prometheus.Desc, ch chan<- prometheus.Metric) {
	for _, e := range k.all() {
		ch <- e.metric(d, e.key)
	}
}
