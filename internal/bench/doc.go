// Package bench measures servers that speak ZooKeeper's protocol.
//
// [Load], [Fanout], [Watches], [Sessions] and [Elections] measure running servers. They use
// only packages zk and recipe, so they measure any ZooKeeper server in the same way. Each
// works below a znode of its own, which it creates and deletes: see [Setting]. [Restart],
// [Failover] and [Memory] start servers of their own, see [Owned], because they kill them or
// read how much memory their processes use. [Ceiling] measures what the machine allows
// without a server.
//
// Every Run returns [Report]s, and [Save] writes them to files. Latencies are recorded in HDR
// histograms with three significant digits, from a microsecond to a minute, and merged at the
// end. A load is closed or open. In a closed loop each worker sends its next request when the
// last one is answered, so the latency limits the throughput. In an open loop, operations are
// due at a fixed rate, and a latency counts from the time at which the operation was due: an
// operation that had to wait because earlier ones were slow was slow too.
//
// A [Lean] load sends its requests without package zk, because that costs this process less.
//
// There is one goroutine per outstanding request, candidate or watcher; Run waits for all of
// them. latencies.mu guards one histogram, and stopwatch.mu the start of the current
// handover; neither is held across I/O. Read setting.go first, then load.go.
package bench
