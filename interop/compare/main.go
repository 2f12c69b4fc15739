// Command compare measures Apache ZooKeeper and Bellwether one after the other
// on this machine and prints a table: throughput and latency of reads and
// writes, processor time for each operation, time from exec to the first
// answer, and memory. Both servers run with their defaults, a tickTime of 2000
// and nothing else; Apache's gets the heap that -heap says.
//
// With -failover it measures ensembles of three servers: how long writes are
// interrupted when the leader is killed, stops or stalls, seen by clients of
// another server and of its own, how many connections that costs, cold starts
// and the throughput of writes.
//
// Run it with make bench, on a machine that does nothing else.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"text/tabwriter"
	"time"

	"bellwether/interop/target"
)

// plan is what one run measures.
type plan struct {
	duration time.Duration // of each load
	warmup   time.Duration // before each load
	starts   int           // of which the median is shown
	znodes   int           // for memory and the time to start
	heap     string        // of Apache's Java process
	failover bool          // measure an ensemble of three, and its leader changes
	rounds   int           // of each way in which a leader goes
}

func main() {
	var p plan
	flag.DurationVar(&p.duration, "duration", 10*time.Second, "time of each load")
	flag.DurationVar(&p.warmup, "warmup", 5*time.Second, "time before each load that does not count")
	flag.IntVar(&p.starts, "starts", 5, "starts over an empty directory; the median is shown")
	flag.IntVar(&p.znodes, "znodes", 1_000_000, "znodes of 100 bytes, for memory and the time to start")
	flag.StringVar(&p.heap, "heap", "2g", "heap of Apache's Java process")
	flag.BoolVar(&p.failover, "failover", false, "measure three servers and the departure of their leaders instead")
	flag.IntVar(&p.rounds, "rounds", 10, "with -failover, departures of each kind and cold starts")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, p); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, p plan) error {
	defer target.RemoveBinary()
	kinds := target.Kinds()
	figuresOf := measure
	if p.failover {
		figuresOf = failover
	}
	var columns [][]figure
	for _, kind := range kinds {
		figures, err := figuresOf(ctx, kind, p)
		if err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		columns = append(columns, figures)
	}
	return table(kinds, columns)
}

// figure is one row of the table, for one server.
type figure struct {
	what, value string
}

func table(kinds []target.Kind, columns [][]figure) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', 0)
	fmt.Fprint(w, "| \t")
	for _, kind := range kinds {
		fmt.Fprintf(w, "| %s \t", kind)
	}
	fmt.Fprint(w, "|\n|---\t")
	for range kinds {
		fmt.Fprint(w, "|---\t")
	}
	fmt.Fprint(w, "|\n")
	for row := range columns[0] {
		fmt.Fprintf(w, "| %s \t", columns[0][row].what)
		for _, column := range columns {
			fmt.Fprintf(w, "| %s \t", column[row].value)
		}
		fmt.Fprint(w, "|\n")
	}
	return w.Flush()
}
