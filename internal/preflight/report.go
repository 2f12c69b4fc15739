package preflight

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Severity says what a finding means for a takeover.
type Severity string

const (
	Prevents Severity = "prevents" // the takeover would fail, or lose something
	Unseen   Severity = "unseen"   // a part without which there is no verdict could not be examined
	Warns    Severity = "warns"    // changes with the takeover, or should be known before it
	Fine     Severity = "fine"     // was examined and needs nothing
)

// Finding is one thing that prevents a takeover, changes with it, or could not be seen.
type Finding struct {
	Severity Severity `json:"severity"`
	Where    string   `json:"where"` // a file with its line, a flag, or a server
	What     string   `json:"what"`
	Why      string   `json:"why,omitempty"` // why it prevents a takeover, or what changes
	Do       string   `json:"do,omitempty"`
}

// Report holds all findings.
type Report struct {
	Findings []Finding `json:"findings"`
}

// The verdicts.
const (
	Yes     = "yes"
	No      = "no"
	Unknown = "unknown"
)

// Add adds findings.
func (r *Report) Add(all ...Finding) { r.Findings = append(r.Findings, all...) }

// Fine adds what was examined and needs nothing.
func (r *Report) Fine(where, format string, args ...any) {
	r.Add(Finding{Severity: Fine, Where: where, What: fmt.Sprintf(format, args...)})
}

// Verdict returns Yes if nothing prevents a takeover, No if something does, and Unknown if nothing was
// found that does, but a part could not be examined.
func (r *Report) Verdict() string {
	switch {
	case r.count(Prevents) > 0:
		return No
	case r.count(Unseen) > 0:
		return Unknown
	}
	return Yes
}

func (r *Report) count(s Severity) int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// Sort puts first what prevents, then what could not be examined, then what warns, and last what is fine, each in the
// order in which it was found.
func (r *Report) Sort() {
	order := []Severity{Prevents, Unseen, Warns, Fine}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return slices.Index(order, a.Severity) - slices.Index(order, b.Severity)
	})
}

// Print prints the findings and the verdict.
func (r *Report) Print(w io.Writer) error {
	var b strings.Builder
	for _, f := range r.Findings {
		f.print(&b)
	}
	switch r.Verdict() {
	case Yes:
		fmt.Fprintf(&b, "yes: nothing prevents a takeover; %s\n", count(r.count(Warns), "warning"))
	case No:
		fmt.Fprintf(&b, "no: %s a takeover; %s\n", preventing(r.count(Prevents)), count(r.count(Warns), "warning"))
	default:
		fmt.Fprintf(&b, "unknown: %s could not be examined; %s\n", count(r.count(Unseen), "part"), count(r.count(Warns), "warning"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (f *Finding) print(b *strings.Builder) {
	fmt.Fprintf(b, "%s: %s: %s\n", f.Severity, f.Where, f.What)
	if f.Why != "" {
		fmt.Fprintf(b, "    why: %s\n", f.Why)
	}
	if f.Do != "" {
		fmt.Fprintf(b, "    do: %s\n", f.Do)
	}
}

func preventing(n int) string {
	if n == 1 {
		return "1 thing prevents"
	}
	return count(n, "thing") + " prevent"
}

// count prints a number of things.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
