// Command bellwether-mutants measures how many faults in the core the tests find. It is for
// developers; see the section on mutants in docs/testing.md.
package main

import (
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
	"time"

	"github.com/spf13/cobra"

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

Exit status: 0 all selected mutants are judged, 1 something else went wrong.`

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
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.StringVar(&o.root, "root", ".", "the folder of the module")
	f.StringVar(&o.results, "results", "", "the file of results (default: "+measure.ResultsFile+" in the module)")
	f.StringVar(&o.set, "set", "", "judge only mutants of this set: semantic or generated")
	f.StringVar(&o.only, "only", "", "judge only mutants whose name matches this expression")
	o.seed, o.jobs = 1, runtime.NumCPU()
	f.Func("sample", "judge only so many `mutants` that are generated of each package, chosen at random; 0: all", into(&o.sample, math.MaxInt32))
	f.Func("seed", "the `seed` that chooses the sample (default 1)", into(&o.seed, math.MaxUint64))
	f.Func("jobs", "the `number` of mutants that are judged at the same time (default: one for each processor)", into(&o.jobs, math.MaxInt32))
	f.DurationVar(&o.budget, "budget", 10*time.Minute, "processor time for one mutant in the simulator")
	f.BoolVar(&o.noUnit, "no-unit", false, "do not run unit tests")
	f.BoolVar(&o.noSimulator, "no-simulator", false, "do not run the simulator")
	f.StringVar(&o.cache, "cache", "", "a folder for a build cache that the command empties; for runs of thousands of mutants")
	f.BoolVar(&o.table, "table", false, "write the table of docs/testing.md and judge nothing")
	f.BoolVar(&o.list, "list", false, "print the selected mutants and judge nothing")
	f.StringVar(&o.carry, "carry", "", "bring forward the semantic mutants that do not apply any more, from a commit at which they applied")
	return c
}

// into returns a function that reads a number up to most. Its error says at which character the text
// is wrong.
func into[N int | uint64](to *N, most uint64) func(text string) error {
	return func(text string) error {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil || n > most {
			at := max(0, strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' }))
			return fmt.Errorf("character %d, at %q: allowed here is a number from 0 to %d", at+1, text[at:], most)
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
	case o.jobs < 1:
		return s, fmt.Errorf("--jobs %d: the least number is 1", o.jobs)
	case o.budget <= 0:
		return s, fmt.Errorf("--budget %v: the budget must be more than 0", o.budget)
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
		for _, x := range s.Of(m.Mutants) {
			fmt.Fprintf(out, "%s: %s\n", x.Name, x.What)
		}
		return nil
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	return r.Run(ctx, s)
}

// carry brings forward the semantic mutants.
func carry(m *measure.Module, commit string) error {
	byHand, err := m.Carry(commit)
	if err == nil && len(byHand) > 0 {
		err = errors.New("these mutants must be rewritten by hand:\n" + strings.Join(byHand, "\n"))
	}
	return err
}
