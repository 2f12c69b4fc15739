package sim

import (
	"fmt"
	"runtime"
	"strings"
)

// Failure describes a rule that was broken, and how to see it again.
type Failure struct {
	Rule    string // name of the rule
	Wrong   string // how it was broken
	Options Options
	Acts    []Act    // the faults until then
	Trace   []string // the end of the trace
	Lines   int      // number of lines of the whole trace
	Digest  uint64   // digest of the whole trace
	Notes   []string // which promises did not hold in the run, and why
	Events  int
}

func (f *Failure) Error() string {
	return fmt.Sprintf("seed %d: %s: %s", f.Options.Seed, f.Rule, f.Wrong)
}

// fail ends the run: the rule is broken.
func (s *Sim) fail(rule, format string, args ...any) {
	if s.ended() {
		return
	}
	wrong := fmt.Sprintf(format, args...)
	s.tell("%s is broken: %s", rule, wrong)
	s.failed = &Failure{Rule: rule, Wrong: wrong, Options: s.opt, Acts: s.nemesis.done, Trace: s.trace.lines(),
		Lines: s.trace.n, Digest: s.trace.digest, Notes: s.notes, Events: s.steps}
}

// framesMax is the number of stack frames that the report of a panic contains.
const framesMax = 8

// panicked turns a panic into a failure, which reports the seed as any other failure does.
func (s *Sim) panicked(p any) {
	pc := make([]uintptr, 64)
	frames := runtime.CallersFrames(pc[:runtime.Callers(3, pc)])
	for n := 0; n < framesMax; {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, "runtime.") {
			s.tell("panic in %s, line %d", f.Function, f.Line)
			n++
		}
		if !more {
			break
		}
	}
	s.fail("NoPanic", "%v", p)
}

// Report returns what is needed to understand the failure and to see it again. It contains
// at most the given number of last lines of the faults, and as many of the trace.
func (f *Failure) Report(lines int) string {
	var b strings.Builder
	o := &f.Options
	fmt.Fprintf(&b, "seed %d breaks %s: %s\n", o.Seed, f.Rule, f.Wrong)
	fmt.Fprintf(&b, "after %d events, with %d voters, %d observers, %d clients, %d candidates for the recipe %s, tick %d ms\n",
		f.Events, o.Voters, max(o.Observers, 0), max(o.Clients, 0), max(o.Candidates, 0), o.Recipe, o.TickMS)
	for _, n := range f.Notes {
		fmt.Fprintf(&b, "note:    %s\n", n)
	}
	acts := make([]string, len(f.Acts))
	for i, a := range f.Acts {
		acts[i] = a.String()
	}
	section(&b, "faults", acts, len(acts), lines)
	section(&b, "trace", f.Trace, f.Lines, lines)
	fmt.Fprintf(&b, "again:   %s\n", o.Command())
	if o.Acts == nil {
		fmt.Fprintf(&b, "smaller: %s --shrink\n", o.Command())
	}
	fmt.Fprintf(&b, "digest:  %016x\n", f.Digest)
	return b.String()
}

// section prints the last lines of a list. all is the length of the whole list, and most
// the largest number of lines to print.
func section(b *strings.Builder, name string, list []string, all, most int) {
	shown := list[max(0, len(list)-most):]
	fmt.Fprintf(b, "%s (%d", name, all)
	if len(shown) < all {
		fmt.Fprintf(b, ", the last %d of them", len(shown))
	}
	b.WriteString("):\n")
	for _, line := range shown {
		fmt.Fprintf(b, "  %s\n", line)
	}
}
