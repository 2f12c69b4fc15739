// Command bellwether-sim simulates ensembles under faults that a seed decides.
// It is for developers; the bellwether program does not contain the simulator.
package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"bellwether/internal/shell"
	"bellwether/internal/sim"
)

// gcPercent is how much the heap may grow before a garbage collection, in percent of the live memory. A run
// leaves little live memory and much garbage: with this value more than half as many seeds again are played
// in the same time as with Go's default, and the program takes 130 MB instead of 40 MB.
const gcPercent = 1600

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	os.Exit(shell.Execute(newRoot(), os.Args[1:]))
}

// simulation holds the flags of the command.
type simulation struct {
	options sim.Options
	during  time.Duration
	shrink  bool
	verbose bool
}

const simLong = `Simulate whole ensembles with clients under faults: crashes, partitions, stopped
processes, failing and full disks, clocks that drift and jump. A seed decides
everything; the same seed gives the same run. Without --seed, the command uses a
random seed and prints it. Each step is checked against the promises of the
protocol: one leader in an epoch, one history, no acknowledged write lost, and
each session in order. After the faults have ended, the ensemble and all clients
must recover.

Exit status: 0 no rule was broken, 1 a rule was broken; the end of the trace is
then printed; 2 usage.`

// shrinkRuns is the largest number of runs that --shrink makes.
const shrinkRuns = 400

func newRoot() *cobra.Command {
	var s simulation
	c := &cobra.Command{
		Use:     "bellwether-sim",
		Short:   "simulate ensembles under faults, by a seed",
		Long:    simLong,
		Example: "  bellwether-sim --seed 7\n  bellwether-sim --for 1h\n  bellwether-sim --seed 7 --shrink",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return s.run(cmd.OutOrStdout()) },
	}
	f := c.Flags()
	f.Var((*seed)(&s.options.Seed), "seed", "the seed of the run; 0: a random one")
	for _, x := range sim.Fields {
		f.Var(&simField{x, &s.options}, x.Name, x.Use)
	}
	f.DurationVar(&s.during, "for", 0, "run one seed after the other for this time")
	f.BoolVar(&s.shrink, "shrink", false, "remove from a failing run everything that the failure does not need")
	f.BoolVarP(&s.verbose, "verbose", "v", false, "print every packet and event")
	return c
}

// seed is the flag that holds the seed.
type seed uint64

func (s *seed) String() string { return strconv.FormatUint(uint64(*s), 10) }
func (s *seed) Type() string   { return "" }

func (s *seed) Set(text string) error {
	n, err := sim.ParseSeed(text)
	*s = seed(n)
	return err
}

// simField is one option of a simulation that is also a flag.
type simField struct {
	field   sim.Field
	options *sim.Options
}

func (f *simField) String() string        { return f.field.Get(f.options) }
func (f *simField) Set(text string) error { return f.field.Set(f.options, text) }
func (f *simField) Type() string          { return "" }

func (s *simulation) run(out io.Writer) error {
	if s.during < 0 {
		return shell.Usage(fmt.Errorf("--for %v: allowed is a time from 0, such as 90s or 1h", s.during))
	}
	if s.options.Seed == 0 {
		s.options.Seed = uint64(time.Now().UnixNano())
	}
	if s.verbose {
		s.options.Trace = func(line string) { fmt.Fprintln(out, line) }
	}
	for end := time.Now().Add(s.during); ; s.options.Seed = following(s.options.Seed) {
		if err := s.options.CheckActs(); err != nil {
			return shell.Usage(fmt.Errorf("--faults: %w", err))
		}
		if err := s.one(out); err != nil {
			return err
		}
		if !time.Now().Before(end) {
			return nil
		}
	}
}

// following returns the seed after another one. 0 is none: it stands for a random one.
func following(seed uint64) uint64 { return max(seed+1, 1) }

// one runs one seed and prints the result.
func (s *simulation) one(out io.Writer) error {
	r, err := sim.Run(s.options)
	var f *sim.Failure
	if errors.As(err, &f) {
		return s.failed(out, f)
	}
	_, err = fmt.Fprintf(out, "seed %d: %s, %s: %s in %.1f simulated seconds; %s, %s, %s; digest %016x\n",
		r.Options.Seed, shell.Count(r.Options.Voters, "voter"), shell.Count(max(r.Options.Observers, 0), "observer"), shell.Count(r.Events, "event"),
		float64(r.Simulated)/1e6, shell.Count(r.Leaders, "leader"), shell.Count(r.Committed, "transaction"), shell.Count(int(r.Answered), "answer"), r.Digest)
	for _, note := range r.Notes {
		fmt.Fprintf(out, "seed %d: %s\n", r.Options.Seed, note)
	}
	if s.during == 0 {
		for _, counts := range []map[string]int{r.Reached, r.Premises} {
			for _, name := range slices.Sorted(maps.Keys(counts)) {
				fmt.Fprintf(out, "%8d  %s\n", counts[name], name)
			}
		}
	}
	return err
}

// traceLines is the number of lines that are printed of the faults and of the trace.
const traceLines = 60

// failed prints the report of a run that broke a rule.
func (s *simulation) failed(out io.Writer, f *sim.Failure) error {
	if s.shrink {
		f.Options.Trace = nil
		f = sim.Shrink(f, shrinkRuns)
	}
	fmt.Fprint(out, f.Report(traceLines))
	return f
}
