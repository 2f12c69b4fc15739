// Package bench measures a server by a load of reads or writes over several connections,
// or by elections. It uses only packages zk and recipe, so it can measure any ZooKeeper
// server in the same way.
//
// [Load.Run] and [Elections.Run] return a [Report]. Latencies are measured around each
// call, recorded in HDR histograms with three significant digits up to a minute, and
// merged at the end. The loop is closed: each worker sends its next request when the last
// one is answered, so the latency limits the throughput.
//
// There is one goroutine per outstanding request or candidate; Run waits for all of
// them. latencies.mu guards one histogram, and stopwatch.mu the start of the current
// handover; neither is held across I/O. Read setting.go first, then load.go.
package bench
