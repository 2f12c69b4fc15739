package mutants

import (
	"strings"
	"testing"
)

// TestResults shows that results are written as they are read, and that the last line counts.
func TestResults(t *testing.T) {
	text := "a unit 0123456789ab killed internal/zab TestX 1.5\n" +
		"a simulator 0123456789ab survived - 120 60.0\n" +
		"b unit 0123456789ab invalid - - 0.0\n"
	r, err := ReadResults("r.txt", text+text)
	if err != nil || r.Text() != strings.Join(sorted(text), "") {
		t.Fatalf("%v\n%s", err, r.Text())
	}
	r, err = ReadResults("r.txt", text+"a unit ba9876543210 survived internal/zab,internal/replica - 9.0\n")
	if x := r["a"][Unit]; err != nil || x.Verdict != Survived || x.By != "" || x.Where != "internal/zab,internal/replica" || x.Seconds != 9 {
		t.Errorf("%v, %v", x, err)
	}
}

func sorted(text string) []string {
	r, _ := ReadResults("", text)
	return strings.SplitAfter(r.Text(), "\n")
}

// TestBadResults shows how lines that are no results are refused.
func TestBadResults(t *testing.T) {
	good := "a unit 0123456789ab killed p T 1.5\n"
	for line, want := range map[string]string{
		"\n":                                     "is no complete line of 7 fields",
		"a unit 0123456789ab killed p T\n":       "is no complete line of 7 fields",
		"a unit 0123456789ab killed p T 1.5":     "is no complete line of 7 fields",
		"a  0123456789ab killed p T 1.5\n":       "is no complete line of 7 fields",
		"a luck 0123456789ab killed p T 1.5\n":   `"luck" is no score`,
		"a unit 0123456789ab hurt p T 1.5\n":     `"hurt" is no verdict`,
		"a unit 0123456789 killed p T 1.5\n":     "is no hash of 12 hexadecimal digits",
		"a unit 0123456789ab killed p T x\n":     "is no number of seconds",
		"a unit 0123456789ab killed p T -1\n":    "is no number of seconds",
		"- unit 0123456789ab killed p T 1.5\n":   "the name of the mutant is missing",
		"a unit 0123456789ab killed p T 1.5 x\n": "is no complete line of 7 fields",
	} {
		_, err := ReadResults("r.txt", good+line)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "r.txt:2: ") || !strings.Contains(err.Error(), resultHelp) {
			t.Errorf("%q: %v, want %q", line, err, want)
		}
	}
}

// TestBeginningOfResult shows that every beginning of the line of a result is known as one, and that text which is
// something else is not.
func TestBeginningOfResult(t *testing.T) {
	all := []Mutant{{Name: "a-fault"}, {Name: "internal/zab/ping.go:ping:negate:1"}}
	for _, x := range []Result{
		{Mutant: "a-fault", Score: Unit, Hash: "0123456789ab", Verdict: Invalid},
		{Mutant: "internal/zab/ping.go:ping:negate:1", Score: Simulator, Hash: "0123456789ab", Verdict: Killed, Where: "Agreement", By: "7", Seconds: 12.5},
	} {
		line := strings.TrimSuffix(x.Line(), "\n")
		for n := range len(line) + 1 {
			if !IsBeginning(line[:n], all) {
				t.Errorf("%q is the beginning of a result", line[:n])
			}
		}
	}
	for _, text := range []string{"b", "a-fault ", "a-fault unite", "a-fault units 0", "a-fault unit 0123456789abc", "a-fault unit 0123 ", "a-fault unit 0123456789ab dead",
		"a-fault unit 0123456789ab killed  ", "a-fault unit 0123456789ab killed x y z", "a-fault unit 0123456789ab killed x y 1.0 "} {
		if got := IsBeginning(text, all); got != (text == "a-fault ") {
			t.Errorf("%q: %v", text, got)
		}
	}
}
