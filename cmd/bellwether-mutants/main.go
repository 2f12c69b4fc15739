// Command bellwether-mutants measures how many faults in the core the tests find. It is for
// developers; see the section on mutants in docs/testing.md.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bellwether/internal/mutants"
	"bellwether/internal/mutants/measure"
	"bellwether/internal/shell"
)

func main() { os.Exit(shell.Execute(newRoot(), os.Args[1:])) }

// options holds the flags of the command.
type options struct {
	root, results, set, only, carry, cache string
	sample, jobs                           int
	seed                                   uint64
	budget                                 time.Duration
	noUnit, noSimulator, table, list       bool
}

const long = `Judge mutants, which are copies of the program with one small fault each: does a unit
test fail, and does the simulator break a rule? Each result is appended to the file of
results at once. A mutant whose result is known for the same source is skipped, so a
run that was interrupted can be continued. With --table, the command writes the
scores into docs/testing.md instead.

Exit status: 0 all selected mutants are judged, 1 something else went wrong, 2 usage,
128+n ended by a signal.`

func newRoot() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "bellwether-mutants",
		Short: "measure how many faults in the core the tests find",
		Long:  long,
		Example: "  bellwether-mutants --set semantic --budget 1m\n  bellwether-mutants --set generated --sample 60 --no-simulator\n" +
			"  bellwether-mutants --only '^internal/zab/ping.go:'\n  bellwether-mutants --table",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := combination(cmd.Flags()); err != nil {
				return shell.Usage(err)
			}
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.StringVar(&o.root, "root", ".", "the folder of the module")
	f.StringVar(&o.results, "results", "", "the file of results (default: "+measure.ResultsFile+" in the module)")
	f.StringVar(&o.set, "set", "", "judge only mutants of this set: semantic or generated")
	f.StringVar(&o.only, "only", "", "judge only mutants whose name matches this expression")
	o.seed, o.jobs = 1, runtime.NumCPU()
	f.Func("sample", "judge only so many `mutants` that are generated of each package, chosen at random; 0: all", into(&o.sample, 0, math.MaxInt32))
	f.Func("seed", "the `seed` that chooses the sample (default 1)", into(&o.seed, 0, math.MaxUint64))
	f.Func("jobs", "the `number` of mutants that are judged at the same time (default: one for each processor)", into(&o.jobs, 1, math.MaxInt32))
	f.DurationVar(&o.budget, "budget", 10*time.Minute, "processor time for one mutant in the simulator")
	f.BoolVar(&o.noUnit, "no-unit", false, "do not run unit tests")
	f.BoolVar(&o.noSimulator, "no-simulator", false, "do not run the simulator")
	f.StringVar(&o.cache, "cache", "", "a folder for a build cache that the command empties; for runs of thousands of mutants")
	f.BoolVar(&o.table, "table", false, "write the table of docs/testing.md and judge nothing")
	f.BoolVar(&o.list, "list", false, "print the selected mutants and judge nothing")
	f.StringVar(&o.carry, "carry", "", "bring forward the semantic mutants that do not apply any more, from a commit at which they applied")
	return c
}

// combination returns an error if the flags that are given contradict each other. --carry, --table and --list
// judge nothing, and each of them does something else. --table shows all mutants.
func combination(f *pflag.FlagSet) error {
	for _, flags := range [][]string{
		{"carry", "table", "list", "set", "only", "sample"},
		{"table", "list", "set", "only", "sample"},
	} {
		mode := flags[0]
		for _, other := range flags[1:] {
			if f.Changed(mode) && f.Changed(other) {
				return fmt.Errorf("--%s goes without --%s", mode, other)
			}
		}
	}
	if f.Changed("carry") && f.Lookup("carry").Value.String() == "" {
		return errors.New(`--carry "": name the last commit at which the mutants applied`)
	}
	return nil
}

// into returns a function that reads a number from least to most. Its error says at which character the text
// is wrong.
func into[N int | uint64](to *N, least, most uint64) func(text string) error {
	return func(text string) error {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil || n < least || n > most {
			at := max(0, strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' }))
			return fmt.Errorf("character %d, at %q: allowed here is a number from %d to %d", at+1, text[at:], least, most)
		}
		*to = N(n)
		return nil
	}
}

// selection returns what the flags select.
func (o *options) selection() (s measure.Selection, err error) {
	s = measure.Selection{Set: mutants.Set(o.set), Sample: o.sample, Seed: o.seed, Unit: !o.noUnit, Simulator: !o.noSimulator}
	switch {
	case s.Set != "" && s.Set != mutants.Semantic && s.Set != mutants.Generated:
		return s, fmt.Errorf("--set %q: the sets are semantic and generated", o.set)
	case o.budget <= 0:
		return s, fmt.Errorf("--budget %v: the budget must be more than 0", o.budget)
	case o.noUnit && o.noSimulator:
		return s, errors.New("--no-unit and --no-simulator: nothing is left that could judge a mutant")
	}
	if o.only != "" {
		if s.Only, err = regexp.Compile(o.only); err != nil {
			return s, fmt.Errorf("--only: %w", err)
		}
	}
	return s, nil
}

func (o *options) run(ctx context.Context, out, log io.Writer) error {
	s, err := o.selection()
	if err != nil {
		return shell.Usage(err)
	}
	m, err := measure.Open(o.root)
	if err != nil {
		return err
	}
	if o.results == "" {
		o.results = m.Path(measure.ResultsFile)
	}
	r := &measure.Runner{Module: m, Results: o.results, Budget: o.budget, Jobs: o.jobs, Cache: o.cache, Log: log}
	switch {
	case o.carry != "":
		return carry(m, o.carry)
	case o.table:
		return r.WriteDocument()
	case o.list:
		selected, err := s.Of(m.Mutants)
		if err != nil {
			return err
		}
		for _, x := range selected {
			fmt.Fprintf(out, "%s: %s\n", x.Name, x.What)
		}
		return nil
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	if err := r.Run(ctx, s); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	return nil
}

// untilSignal returns a context that the first SIGINT or SIGTERM ends, so that the run deletes its files. The
// cause has the exit status. A second signal ends the process at once.
func untilSignal(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(&shell.StatusError{Status: 128 + int(s.(syscall.Signal)), Err: errors.New("interrupted")})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// carry brings forward the semantic mutants.
func carry(m *measure.Module, commit string) error {
	byHand, err := m.Carry(commit)
	if err == nil && len(byHand) > 0 {
		err = errors.New("these mutants must be rewritten by hand:\n" + strings.Join(byHand, "\n"))
	}
	return err
}
