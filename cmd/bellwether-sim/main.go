// Command bellwether-sim simulates ensembles under faults that a seed decides.
// It is for developers; the bellwether program does not contain the simulator.
package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"bellwether/internal/shell"
	"bellwether/internal/sim"
)

func main() { os.Exit(shell.Execute(newRoot(), os.Args[1:])) }

// simulation holds the flags of the command.
type simulation struct {
	options sim.Options
	during  time.Duration
	shrink  bool
	verbose bool
}

const simLong = `Simulate whole ensembles with clients under faults: crashes, partitions, stopped
processes, failing and full disks, clocks that drift and jump. A seed decides
everything; the same seed gives the same run. Without --seed a new one is
taken, and printed. What is checked at each step are the promises of the
protocol: one leader in an epoch, one history, no acknowledged write lost, the
order of each session, and that all is well again once the faults have ended.

Exit status: 0 no rule is broken, 1 one is; then the end of the trace is printed.`

// shrinkRuns is how many runs --shrink makes at most.
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
	f.Uint64Var(&s.options.Seed, "seed", 0, "the seed; 0 takes a new one")
	for _, x := range sim.Fields {
		f.Var(&simField{x, &s.options}, x.Name, x.Use)
	}
	f.DurationVar(&s.during, "for", 0, "run seed after seed for so long")
	f.BoolVar(&s.shrink, "shrink", false, "leave out of a failing run what it does not need")
	f.BoolVarP(&s.verbose, "verbose", "v", false, "print every packet and event")
	return c
}

// simField is an option as a flag.
type simField struct {
	field   sim.Field
	options *sim.Options
}

func (f *simField) String() string        { return f.field.Get(f.options) }
func (f *simField) Set(text string) error { return f.field.Set(f.options, text) }
func (f *simField) Type() string          { return "" }

func (s *simulation) run(out io.Writer) error {
	if s.options.Seed == 0 {
		s.options.Seed = uint64(time.Now().UnixNano())
	}
	if s.verbose {
		s.options.Trace = func(line string) { fmt.Fprintln(out, line) }
	}
	for end := time.Now().Add(s.during); ; s.options.Seed++ {
		if err := s.one(out); err != nil {
			return err
		}
		if !time.Now().Before(end) {
			return nil
		}
	}
}

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
	if s.during == 0 {
		for _, name := range slices.Sorted(maps.Keys(r.Reached)) {
			fmt.Fprintf(out, "%8d  %s\n", r.Reached[name], name)
		}
	}
	return err
}

// traceLines is how many lines of the faults and of the trace are printed.
const traceLines = 60

// failed prints a failing run.
func (s *simulation) failed(out io.Writer, f *sim.Failure) error {
	if s.shrink {
		f.Options.Trace = nil
		f = sim.Shrink(f, shrinkRuns)
	}
	fmt.Fprint(out, f.Report(traceLines))
	return f
}
