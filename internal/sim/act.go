package sim

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

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
// semicolons. An error says at which character the text is wrong, and what is allowed there.
func ParseActs(text string) ([]Act, error) {
	acts := []Act{}
	if text == noActs {
		return acts, nil
	}
	at := 1
	for part := range strings.SplitSeq(text, ";") {
		words := wordsOf(part, at)
		if at == 1 && words[0].text == "" {
			return nil, words[0].refused("the first fault, or %q for no faults", noActs)
		}
		at += utf8.RuneCountInString(part) + 1
		if len(acts) == actsMax {
			return nil, fmt.Errorf("%v: allowed are at most %d faults", words[0], actsMax)
		}
		a, err := parseAct(words)
		if err != nil {
			return nil, err
		}
		acts = append(acts, a)
	}
	return acts, nil
}

// word is a word of a list of faults. An empty one is the end of a fault.
type word struct {
	text string
	at   int // place of its first character in the list, from 1
}

func (w word) String() string {
	if w.text == "" {
		return fmt.Sprintf("character %d, at the end", w.at)
	}
	return fmt.Sprintf("character %d, at %q", w.at, w.text)
}

// refused returns the error of a word in place of which something else is allowed.
func (w word) refused(allowed string, args ...any) error {
	return fmt.Errorf("%v: allowed here is "+allowed, append([]any{w}, args...)...)
}

// wordsOf returns the words of a text, and the end of the text as an empty word. The text
// begins at the character at of its list.
func wordsOf(text string, at int) (all []word) {
	begun := false
	for _, r := range text {
		switch space := r == ' ' || r == '\t' || r == '\n'; {
		case space:
			begun = false
		case begun:
			all[len(all)-1].text += string(r)
		default:
			all, begun = append(all, word{string(r), at}), true
		}
		at++
	}
	return append(all, word{"", at})
}

// Numbers are written with decimal digits only.
var (
	decimal = regexp.MustCompile(`^\d+(\.\d+)?$`)
	integer = regexp.MustCompile(`^-?\d+$`)
)

// parseAct reads one fault.
func parseAct(words []word) (a Act, err error) {
	when, err := strconv.ParseFloat(words[0].text, 64)
	if err != nil || !decimal.MatchString(words[0].text) || when >= 1e6 {
		return a, words[0].refused("the second at which a fault occurs, a number from 0 to below 1000000, as in \"1.5 slow 1 2 =3000\"")
	}
	a.At = int64(math.Round(when * float64(machine.Second)))
	f, rest := formOf(words[1:])
	if f == nil {
		return a, words[1].refused("a kind of fault, which is one of: %s", kindNames())
	}
	a.Kind = f.kind
	if a.A, err = parseMachine(rest[0], f.on); err != nil {
		return a, err
	}
	rest = rest[1:]
	next := "the end of the fault"
	if w := rest[0]; f.second && w.text != "" && w.text[0] != '=' {
		if a.B, err = parseMachine(w, onServers|onClients); err != nil {
			return a, err
		}
		if a.toItself() {
			return a, w.refused("the number of another machine than %d", a.A)
		}
		rest = rest[1:]
	}
	if f.least != 0 || f.most != 0 {
		next = fmt.Sprintf("= and an amount from %d to %d", f.least, f.most)
		amount, given := strings.CutPrefix(rest[0].text, "=")
		if given {
			if a.Value, err = strconv.ParseInt(amount, 10, 64); err != nil || !integer.MatchString(amount) {
				return a, rest[0].refused("%s", next)
			}
		}
		if a.Value < f.least || a.Value > f.most {
			return a, rest[0].refused("%s", next)
		}
		if given {
			rest, next = rest[1:], "the end of the fault"
		}
	}
	if rest[0].text != "" {
		return a, rest[0].refused("%s", next)
	}
	return a, nil
}

// formOf returns the form of the longest kind with which the words begin, and the words
// behind it; nil: there is no such kind.
func formOf(words []word) (found *form, rest []word) {
	longest := 0
	for i := range forms {
		name := strings.Fields(string(forms[i].kind))
		same := func(w word, n string) bool { return w.text == n }
		if len(name) > longest && len(words) > len(name) && slices.EqualFunc(words[:len(name)], name, same) {
			found, rest, longest = &forms[i], words[len(name):], len(name)
		}
	}
	return found, rest
}

// parseMachine reads the number of a machine.
func parseMachine(w word, allowed targets) (int, error) {
	n, err := strconv.Atoi(w.text)
	if err != nil || !integer.MatchString(w.text) || !allowed.has(n) {
		return 0, w.refused("the number of %v", allowed)
	}
	return n, nil
}

// toItself reports whether an act is a fault of the network between a machine and itself, which has no effect.
func (a Act) toItself() bool {
	return a.A == a.B && slices.Contains([]Kind{Block, Cut, Join, Slow, Reset}, a.Kind)
}

// CheckActs returns an error if the acts name a server that the ensemble of the run does not have. The seed may draw how
// many servers there are. While servers come and go, the run may get every server up to the largest ensemble.
func (o Options) CheckActs() error {
	o = drawn(o, machine.NewRandom(o.Seed).Fork())
	for i, a := range o.Acts {
		for _, id := range []int{a.A, a.B} {
			if most := o.servers(); a.onServers() && id > most {
				return fmt.Errorf("fault %d, %q: the ensemble of seed %d has no server %d; allowed are 1 to %d", i+1, a, o.Seed, id, most)
			}
		}
	}
	return nil
}

// servers returns the largest id of a server that a run with these options may have.
func (o Options) servers() int {
	n := o.Voters + max(o.Observers, 0)
	if o.Moves > 0 || o.Reconfig > 0 || slices.ContainsFunc(o.Acts, Act.enlarges) {
		n = max(n, serversMax)
	}
	return n
}

// enlarges reports whether an act may add a server.
func (a Act) enlarges() bool { return a.Kind == Enrol || a.Kind == Recruit }

// onServers reports whether an act needs the servers that it names. One that changes the membership does not: it may
// name a server that is new, or one more than there may be.
func (a Act) onServers() bool {
	i := slices.IndexFunc(forms, func(f form) bool { return f.kind == a.Kind })
	return forms[i].on&onServers != 0 && !a.enlarges() && a.Kind != Reconfigure
}

// ParseSeed reads a seed.
func ParseSeed(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, firstBad(text).refused("a number from 0 to %d", uint64(math.MaxUint64))
	}
	return n, nil
}

// firstBad returns the part of a number that begins with its first character that is no
// digit, or the whole number if there is none.
func firstBad(number string) word {
	digits := strings.TrimPrefix(number, "-")
	i := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' })
	if i < 0 {
		return word{number, 1}
	}
	i += len(number) - len(digits)
	return word{number[i:], i + 1}
}
