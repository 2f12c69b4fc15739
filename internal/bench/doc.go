// Package bench measures servers that speak ZooKeeper's protocol.
//
// [Load], [Fanout], [Watches], [Sessions], [Abandon], [Elections] and [Departures] measure running servers. They use
// only the protocol, and packages zk and recipe, so they measure any ZooKeeper server in the same way. Each
// works below a znode of its own, which it creates and deletes: see [Setting]. [Restart],
// [Failover] and [Memory] start servers of their own, see [Owned], because they kill them or
// read how much memory their processes use. [Ceiling] measures what the machine allows
// without a server.
//
// Every Run returns [Report]s, and [Files.Save] writes them to files. If Run returns both reports and an error, the
// measurement is complete and only the clean-up has failed. Latencies are recorded in HDR
// histograms with three significant digits, from a microsecond to an hour, and merged at the
// end. A load is closed or open. In a closed loop each worker sends its next request when the
// last one is answered, so the latency limits the throughput. In an open loop, operations are
// due at a fixed rate, and a latency counts from the time at which the operation was due: an
// operation that had to wait because earlier ones were slow was slow too.
//
// A [Load] sends its requests without package zk if it can, because that costs this process less
// than the servers. Each loop is one goroutine that drives many connections: on Linux it waits for
// all of them with one system call. On other systems, and with TLS, a loop has one connection. A
// load whose Setting has no [Raw] has one goroutine per outstanding request and uses package zk.
//
// Elections, Fanout and the like have one goroutine per candidate or watcher. Run waits for all
// goroutines. latencies.mu guards one histogram, and stopwatch.mu the start of the current
// handover; neither is held across I/O. Read setting.go first, then load.go and loop.go.
package bench
