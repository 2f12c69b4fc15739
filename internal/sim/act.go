package sim

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"bellwether/internal/sim/machine"
)

// String returns the act as a trace prints it and as [ParseActs] reads it: the time, the
// kind, the machine, the second machine, and, after an equals sign, the value.
func (a Act) String() string {
	return fmt.Sprintf("%.6f %s", float64(a.At)/float64(machine.Second), a.what())
}

// what returns the text of the act without its time.
func (a Act) what() string {
	s := fmt.Sprintf("%s %d", a.Kind, a.A)
	if a.B != 0 {
		s += fmt.Sprintf(" %d", a.B)
	}
	if a.Value != 0 {
		s += fmt.Sprintf(" =%d", a.Value)
	}
	return s
}

// noActs is the text for an empty list of faults. An empty text would let the seed draw the
// faults.
const noActs = "none"

// formatActs returns a list of acts as text that [ParseActs] reads.
func formatActs(acts []Act) string {
	if acts != nil && len(acts) == 0 {
		return noActs
	}
	texts := make([]string, len(acts))
	for i, a := range acts {
		texts[i] = a.String()
	}
	return strings.Join(texts, "; ")
}

// actsMax is the largest number of acts that ParseActs accepts.
const actsMax = 10_000

// ParseActs reads faults in the form in which a failure prints them, separated by
// semicolons.
func ParseActs(text string) ([]Act, error) {
	if text == "" {
		return nil, nil
	}
	acts := []Act{}
	if text == noActs {
		return acts, nil
	}
	for part := range strings.SplitSeq(text, ";") {
		a, err := parseAct(part)
		if err != nil || len(acts) == actsMax {
			return nil, fmt.Errorf("%q is not a fault such as \"1.5 slow 1 2 =3000\", or there are more than %d faults", strings.TrimSpace(part), actsMax)
		}
		acts = append(acts, a)
	}
	return acts, nil
}

func parseAct(text string) (a Act, err error) {
	when, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	at, err := strconv.ParseFloat(when, 64)
	if err != nil || !(at >= 0 && at < 1e6) {
		return a, strconv.ErrSyntax
	}
	a.At = int64(math.Round(at * float64(machine.Second)))
	rest, value, given := strings.Cut(rest, " =")
	if given {
		if a.Value, err = strconv.ParseInt(value, 10, 64); err != nil {
			return a, err
		}
	}
	words := strings.Fields(rest)
	who := len(words)
	for who > 0 && strings.ContainsAny(words[who-1], "0123456789") {
		who--
	}
	a.Kind = Kind(strings.Join(words[:who], " "))
	if n := len(words) - who; !slices.Contains(kinds, a.Kind) || n < 1 || n > 2 {
		return a, strconv.ErrSyntax
	}
	for i, word := range words[who:] {
		if *[]*int{&a.A, &a.B}[i], err = strconv.Atoi(word); err != nil {
			return a, err
		}
	}
	return a, nil
}
