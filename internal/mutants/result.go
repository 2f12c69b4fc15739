package mutants

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Score says by what a mutant was judged.
type Score string

// The two scores.
const (
	Unit      Score = "unit"      // the unit tests of its package and of those that use it
	Simulator Score = "simulator" // the checkers of the simulator
)

// Verdict is what became of a mutant.
type Verdict string

// The verdicts.
const (
	Killed   Verdict = "killed"
	Survived Verdict = "survived"
	Invalid  Verdict = "invalid" // the mutant does not compile
)

// Result is the judgement about a mutant by one score.
type Result struct {
	Mutant string
	Score  Score
	// Hash is that of everything on which the result depends; see measure.
	Hash    string
	Verdict Verdict
	// Where and By say what has killed the mutant: a package and a test, or a rule of the
	// simulator and a seed. If the mutant survived, Where has the packages whose tests were
	// run, separated by commas, or By has the number of seeds. Empty otherwise.
	Where, By string
	// Seconds is how long the tests ran, or the processor time of the simulator.
	Seconds float64
}

// none stands for an empty field in a line.
const none = "-"

// Line returns the line of a result in a file of results.
func (r Result) Line() string {
	field := func(s string) string {
		if s == "" {
			return none
		}
		return s
	}
	return fmt.Sprintf("%s %s %s %s %s %s %.1f\n", r.Mutant, r.Score, field(r.Hash), r.Verdict, field(r.Where), field(r.By), r.Seconds)
}

// Results are the last results by mutant and score.
type Results map[string]map[Score]Result

// Add records a result. It replaces an earlier one of the same mutant and score.
func (r Results) Add(x Result) {
	if r[x.Mutant] == nil {
		r[x.Mutant] = map[Score]Result{}
	}
	r[x.Mutant][x.Score] = x
}

// Text returns the text of a file of results with one line for each, sorted.
func (r Results) Text() string {
	var lines []string
	for _, scores := range r {
		for _, x := range scores {
			lines = append(lines, x.Line())
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// resultHelp says what a line of results contains.
const resultHelp = `a line is: mutant, "unit" or "simulator", hash, "killed", "survived" or "invalid", ` +
	`package or rule, test or seed, seconds; separated by single blanks, - for an empty field`

// ReadResults parses a file of results. A later line replaces an earlier one of the same
// mutant and score. file is its name, for errors.
func ReadResults(file, text string) (Results, error) {
	out := Results{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		x, err := readResult(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w; %s; delete the line to judge this mutant again", file, n, err, resultHelp)
		}
		out.Add(x)
	}
	return out, nil
}

// secondsPart matches what is written of a number of seconds before the line is complete.
var secondsPart = regexp.MustCompile(`^(\d+(\.\d?)?)?$`)

var hashPart = regexp.MustCompile(`^([0-9a-f]{0,11}|[0-9a-f]{12} ?)$`)

// IsBeginning reports whether text, which has no end of line, is what a run that was killed has written of the line of
// a result of one of these mutants.
func IsBeginning(text string, all []Mutant) bool {
	f := strings.SplitAfter(text, " ") // a blank at its end shows that a field is complete
	begins := func(part string) func(word string) bool {
		return func(word string) bool { return strings.HasPrefix(word+" ", part) }
	}
	for i, part := range f {
		var possible bool
		switch i {
		case 0:
			possible = slices.ContainsFunc(all, func(m Mutant) bool { return begins(part)(m.Name) })
		case 1:
			possible = slices.ContainsFunc([]string{string(Unit), string(Simulator)}, begins(part))
		case 2:
			possible = hashPart.MatchString(part)
		case 3:
			possible = slices.ContainsFunc([]string{string(Killed), string(Survived), string(Invalid)}, begins(part))
		case 4, 5:
			possible = part != " "
		case 6:
			possible = secondsPart.MatchString(part)
		}
		if !possible {
			return false
		}
	}
	return true
}

var validHash = regexp.MustCompile(`^[0-9a-f]{12}$`)

func readResult(line string) (Result, error) {
	text, whole := strings.CutSuffix(line, "\n")
	f := strings.Split(text, " ")
	if !whole || len(f) != 7 || slices.Contains(f, "") {
		return Result{}, fmt.Errorf("%q is no complete line of 7 fields", text)
	}
	for i := range f {
		if f[i] == none {
			f[i] = ""
		}
	}
	x := Result{Mutant: f[0], Score: Score(f[1]), Hash: f[2], Verdict: Verdict(f[3]), Where: f[4], By: f[5]}
	var err error
	x.Seconds, err = strconv.ParseFloat(f[6], 64)
	switch {
	case x.Score != Unit && x.Score != Simulator:
		return x, fmt.Errorf("%q is no score", f[1])
	case x.Verdict != Killed && x.Verdict != Survived && x.Verdict != Invalid:
		return x, fmt.Errorf("%q is no verdict", f[3])
	case !validHash.MatchString(x.Hash):
		return x, fmt.Errorf("%q is no hash of 12 hexadecimal digits", f[2])
	case err != nil || !(x.Seconds >= 0):
		return x, fmt.Errorf("%q is no number of seconds", f[6])
	case x.Mutant == "":
		return x, fmt.Errorf("the name of the mutant is missing")
	}
	return x, nil
}
