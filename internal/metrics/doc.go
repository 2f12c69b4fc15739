// Package metrics holds a server's metrics under the names that dashboards and alert rules
// for Apache ZooKeeper use. Its kinds are [Counter], gauge (a function that returns the
// value), [Summary] (count, sum, minimum, maximum, and optionally the quantiles of the last
// minutes), and [Keyed], a set of summaries.
//
// A [Registry] holds all metrics and exports them in two ways: Samples returns them as the
// lines of the four-letter word mntr (there prefixed with zk_), and the Registry is a
// prometheus.Collector that uses the names as they are, counters without _total.
//
// Updates use only atomics and never lock. The package starts no goroutine; a caller with
// a clock must call [Registry.Rotate]. Read registry.go first.
package metrics
