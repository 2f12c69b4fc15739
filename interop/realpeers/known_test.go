package realpeers

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// kind returns the first word of a line: what type of packet it is.
func kind(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}

// knownDifference is a row of the table of known differences: a line of the simulated
// server, and what ZooKeeper sends instead. A name in angle brackets stands for a word, the
// same one in both.
type knownDifference struct {
	row       string
	phase     phase
	simulated *regexp.Regexp
	actual    string
	seen      int
}

// nothing is the text of a row for what ZooKeeper does not send.
const nothing = "nothing"

// occurs reports whether ZooKeeper's line is the one that the row names. What follows in the
// two lines must be the same.
func (d *knownDifference) occurs(ph phase, want, got string) bool {
	words := d.simulated.FindStringSubmatch(want)
	if d.phase != ph || words == nil {
		return false
	}
	if d.actual == nothing {
		return got == nothing
	}
	pattern := placeholder.ReplaceAllStringFunc(regexp.QuoteMeta(d.actual), func(name string) string {
		if i := d.simulated.SubexpIndex(strings.Trim(name, "<>")); i > 0 {
			return regexp.QuoteMeta(words[i])
		}
		return word
	})
	begin := regexp.MustCompile("^" + pattern).FindString(got)
	return begin != "" && got[len(begin):] == want[len(words[0]):]
}

// knowledge is the table of known differences. It counts how often each one occurs. A
// lock guards the counts, because runs are compared at the same time.
type knowledge struct {
	mu   sync.Mutex
	rows []*knownDifference
}

// tableStart is the first line of the table in the documentation.
const tableStart = "| phase | the simulated server sends | ZooKeeper sends | reason |"

// readKnowledge reads the table of known differences in docs/testing.md.
func readKnowledge(t *testing.T) *knowledge {
	t.Helper()
	text, err := os.ReadFile("../../docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), tableStart+"\n|---|---|---|---|\n")
	if !found {
		t.Fatalf("docs/testing.md has no table %q", tableStart)
	}
	k := &knowledge{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 4 {
			break
		}
		k.rows = append(k.rows, rowOf(strings.TrimPrefix(cells[0], "| "), strings.Trim(cells[1], "`"), strings.Trim(cells[2], "`")))
	}
	return k
}

// placeholder is a name in a row, such as <epoch>. It stands for a word.
var placeholder = regexp.MustCompile(`<([a-z]+)>`)

const word = `[^ .]+`

func rowOf(ph, want, got string) *knownDifference {
	pattern := placeholder.ReplaceAllString(regexp.QuoteMeta(want), "(?P<$1>"+word+")")
	return &knownDifference{row: want, phase: phase(ph), simulated: regexp.MustCompile("^" + pattern), actual: got}
}

// explains reports whether a line of ZooKeeper takes the place of another one in a known way.
// It counts the difference.
func (k *knowledge) explains(ph phase, want, got string) bool {
	for _, row := range k.rows {
		if row.occurs(ph, want, got) {
			k.count(row)
			return true
		}
	}
	return false
}

// replaces is explains without counting.
func (k *knowledge) replaces(ph phase, want, got string) bool {
	return slices.ContainsFunc(k.rows, func(row *knownDifference) bool { return row.occurs(ph, want, got) })
}

func (k *knowledge) count(row *knownDifference) {
	k.mu.Lock()
	defer k.mu.Unlock()
	row.seen++
}

// outlived returns the rows that have not occurred.
func (k *knowledge) outlived() (all []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, row := range k.rows {
		if row.seen == 0 {
			all = append(all, row.row)
		}
	}
	return all
}
