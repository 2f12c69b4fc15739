// Command compare measures Apache ZooKeeper and Bellwether one after the other on this
// machine and prints a table: throughput and latency of reads and writes, CPU time per
// operation, time from exec to the first answer, and memory. Both servers run with their
// defaults and a tickTime of 2000; Apache's gets the heap given by -heap.
//
// With -failover it measures ensembles of three servers: how long writes are interrupted
// when the leader is killed, stops or stalls, for clients of another server and of the
// leader, how many connections are lost, cold starts, and the throughput of writes.
//
// With -recipes it measures clients: how fast Bellwether's elections and locks pass from one
// client to the next, compared with Curator's, on both servers; the memory that an open
// session costs its process; and how long 1,000 caches are stale after a leader was killed.
//
// With -bulk it measures how long large requests of one client (large multis, the end of a
// session with very many ephemerals, mass deletions, snapshots, four-letter words about a
// million watches) delay the writes of another client, and the longest batch of the loop.
//
// With -readers it measures ensembles of three servers whose leader gets requests for large
// replies from many connections: how long others wait for a write and for a small read,
// whether the leader changes, and the resources that the leader uses.
//
// With -tls it measures reads and writes with TLS and without, by turns on one server and with
// the same client, and prints how much TLS costs.
//
// With -handshakes it measures ensembles of three servers whose leader is killed while very many
// TLS clients are connected to it: how long it takes until all are served again. Then it
// measures how long a server takes to serve a new certificate.
//
// With -metrics it measures how much processor time metrics cost: Bellwether as it is, scraped every
// second, and built without updates of metrics, by turns.
//
// With -hung it measures ensembles in which one disk stops answering without an error: how
// long no write is acknowledged. This needs root or sudo.
//
// Run it with make bench, on a machine that runs nothing else.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"
	"time"

	"bellwether/interop/target"
)

// plan holds the flags: what one run measures.
type plan struct {
	duration time.Duration // duration of each load
	warmup   time.Duration // time before the measurement of each load
	starts   int           // number of starts whose median is shown
	znodes   int           // number of znodes for the measurement of memory and start time
	heap     string        // heap size of Apache's Java process
	failover bool          // measure an ensemble of three and its leader changes
	recipes  bool          // measure Bellwether's recipes and Curator's
	hung     bool          // measure ensembles with a disk that hangs
	bulk     bool          // measure how one client's large requests delay another client
	only     string        // with bulk and hung: run the loads and scenarios whose description contains this
	ensemble bool          // with bulk: use three servers instead of one
	binary   string        // the Bellwether binary; empty: built from this repository
	readers  bool          // measure an ensemble of three under large reads
	tls      bool          // measure what TLS costs
	metrics  bool          // measure what metrics cost
	pairs    int           // with metrics: number of pairs
	shakes   bool          // measure reconnecting TLS clients and the reload of a certificate
	clients  int           // with shakes: number of TLS clients
	rounds   int           // failures of each kind
	json     bool          // print the results as JSON
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == clientWord {
		if err := beClient(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	var p plan
	flag.DurationVar(&p.duration, "duration", 10*time.Second, "time of each load")
	flag.DurationVar(&p.warmup, "warmup", 5*time.Second, "time before each measurement")
	flag.IntVar(&p.starts, "starts", 5, "number of starts with an empty directory; the median is shown")
	flag.IntVar(&p.znodes, "znodes", 1_000_000, "znodes of 100 bytes, for memory and start time")
	flag.StringVar(&p.heap, "heap", "2g", "heap of Apache's Java process")
	flag.BoolVar(&p.failover, "failover", false, "instead of one server, measure three servers and failures of their leaders")
	flag.BoolVar(&p.recipes, "recipes", false, "instead of a server, measure elections, locks, sessions and caches of Bellwether and of Curator")
	flag.BoolVar(&p.bulk, "bulk", false, "measure instead how long one client's large requests delay another client")
	flag.StringVar(&p.only, "only", "", "with -bulk and -hung, only the loads and scenarios whose description contains this")
	flag.BoolVar(&p.ensemble, "ensemble", false, "with -bulk, load the leader of three servers; the other client is at a follower")
	flag.StringVar(&p.binary, "binary", "", "the Bellwether binary to measure; empty: built from this repository")
	flag.BoolVar(&p.readers, "readers", false, "instead of one server, measure three servers whose leader gets requests for many large replies")
	flag.BoolVar(&p.hung, "hung", false, "instead of one server, measure ensembles in which one disk hangs; needs root or sudo")
	flag.BoolVar(&p.tls, "tls", false, "measure instead reads and writes with TLS and without")
	flag.BoolVar(&p.metrics, "metrics", false, "measure instead how much processor time metrics cost")
	flag.IntVar(&p.pairs, "pairs", 20, "with -metrics, the number of pairs whose median is shown")
	flag.BoolVar(&p.shakes, "handshakes", false, "measure instead TLS clients that connect again after their leader was killed, and the reload of a certificate")
	flag.IntVar(&p.clients, "clients", 10_000, "with -handshakes, the number of TLS clients")
	flag.IntVar(&p.rounds, "rounds", 10, "with -failover, failures of each kind and cold starts; with -recipes, failovers with caches; with -hung, rounds of each scenario; with -handshakes, reloads")
	flag.BoolVar(&p.json, "json", false, "print the results as JSON instead of a table")
	flag.Parse()
	if p.binary != "" {
		target.UseBinary(p.binary)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
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
	switch {
	case p.failover:
		figuresOf = failover
	case p.recipes:
		figuresOf = recipes
	case p.hung:
		figuresOf = hung
	case p.bulk:
		figuresOf = measureBulk
	case p.readers:
		figuresOf = readers
	case p.metrics:
		kinds, figuresOf = []target.Kind{target.Bellwether}, costOfMetrics
	case p.tls:
		figuresOf = costOfTLS
	case p.shakes:
		figuresOf = handshakes
	}
	var columns [][]figure
	for _, kind := range kinds {
		figures, err := figuresOf(ctx, kind, p)
		if err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		columns = append(columns, figures)
	}
	if p.json {
		return printJSON(kinds, columns)
	}
	return table(kinds, columns)
}

// figure is one row of the table for one server.
type figure struct {
	what, value string
}

// printJSON prints for each server an object that maps descriptions to values.
func printJSON(kinds []target.Kind, columns [][]figure) error {
	out := map[target.Kind][]map[string]string{}
	for i, kind := range kinds {
		for _, f := range columns[i] {
			out[kind] = append(out[kind], map[string]string{"what": f.what, "value": f.value})
		}
	}
	return json.NewEncoder(os.Stdout).Encode(out)
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
