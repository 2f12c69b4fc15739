// Package bench measures a server: a load of reads or writes over a number
// of connections, or elections, through packages zk and recipe, so that any
// ZooKeeper server can be compared in the same way.
//
// [Load.Run] and [Elections.Run] return a [Report]. Latencies are taken around
// each call, recorded without loss up to a minute in HDR histograms with three
// digits, and merged at the end. A closed loop: each worker sends its next
// request when the last one is answered, so the throughput is what the latency
// allows.
//
// Goroutines: one per outstanding request or candidate; Run waits for all of
// them. latencies.mu guards one histogram, baton.mu the time of the present
// handover; neither is held across I/O. Read setting.go first, then load.go.
package bench
