// Package metrics keeps a server's figures under the names that dashboards
// and alert rules for Apache ZooKeeper know: a [Counter], a gauge (a function
// that is asked), a [Summary] (count, sum, least, most, and for an advanced
// one the quantiles of the last minutes), a [Keyed] set of these.
//
// A [Registry] holds them and gives them out twice: Samples in the form of
// the four-letter word mntr (there with zk_ in front), and, as a
// prometheus.Collector, under the bare name, a counter without _total.
//
// Adding is cheap and never locks: atomics alone. The package starts no
// goroutine; somebody who has a clock calls [Registry.Rotate]. Read
// registry.go first.
package metrics
