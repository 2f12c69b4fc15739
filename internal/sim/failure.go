package sim

import (
	"fmt"
	"runtime"
	"strings"
)

// Failure is a rule that was broken.
type Failure struct {
	Rule    string // by its name
	Wrong   string // what happened
	Options Options
	Acts    []Act    // the faults until then
	Trace   []string // the end of it
	Lines   int      // of the whole trace
	Digest  uint64   // of the whole trace
	Events  int
}

func (f *Failure) Error() string {
	return fmt.Sprintf("seed %d: %s: %s", f.Options.Seed, f.Rule, f.Wrong)
}

// fail ends the run.
func (s *Sim) fail(rule, format string, args ...any) {
	if s.failed != nil {
		return
	}
	wrong := fmt.Sprintf(format, args...)
	s.tell("%s is broken: %s", rule, wrong)
	s.failed = &Failure{Rule: rule, Wrong: wrong, Options: s.opt, Acts: s.nemesis.done, Trace: s.trace.lines(),
		Lines: s.trace.n, Digest: s.trace.digest, Events: s.steps}
}

// framesMax is how much is told of where a panic comes from.
const framesMax = 8

// panicked makes a failure of a panic: it tells its seed as any other does.
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

// Report tells of a failure what it takes to understand it, and how to see it
// again: the last so many lines of each the faults and the trace.
func (f *Failure) Report(lines int) string {
	var b strings.Builder
	o := &f.Options
	fmt.Fprintf(&b, "seed %d breaks %s: %s\n", o.Seed, f.Rule, f.Wrong)
	fmt.Fprintf(&b, "after %d events, with %d voters, %d observers, %d clients, %d candidates for the recipe %s, tick %d ms\n",
		f.Events, o.Voters, max(o.Observers, 0), max(o.Clients, 0), max(o.Candidates, 0), o.Recipe, o.TickMS)
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

// section prints the last lines of a list, of which there were so many.
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
