// Package scrape answers Prometheus: [Handler] is the page /metrics, and [Open] opens a port
// that serves only this page, as ZooKeeper's PrometheusMetricsProvider does.
//
// The page has a server's registry (package metrics) under ZooKeeper's names, the build
// information, and, unless the operator excludes it, the metrics of the process: process_*
// and go_* of the Prometheus library, and stand-ins for the jvm_* that alert rules for
// ZooKeeper use (jvm.go).
//
// Goroutines: those of net/http, one for each connection; [Port.Run] ends all of them.
// Limits of the port bound what a hostile client can use (port.go).
package scrape
