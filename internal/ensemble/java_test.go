package ensemble

import (
	"encoding/hex"
	"os"
	"slices"
	"strings"
	"testing"
)

// recorded reads a file of fields in hexadecimal. Each field begins with an x.
func recorded(t *testing.T, file string) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		rows = append(rows, strings.Fields(line))
	}
	return rows
}

func plain(t *testing.T, field string) string {
	t.Helper()
	b, err := hex.DecodeString(strings.TrimPrefix(field, "x"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestReadsAsJava shows that random texts are read as Java 17 read them. The file has
// the keys and values of each text, or ERR.
func TestReadsAsJava(t *testing.T) {
	for _, row := range recorded(t, "testdata/java-properties.txt") {
		text := Latin1([]byte(plain(t, row[0])))
		props, err := ReadProperties(text)
		if row[1] == "ERR" || err != nil {
			if row[1] != "ERR" || err == nil {
				t.Errorf("%q: error %v, recorded %s", text, err, row[1])
			}
			continue
		}
		last := make(map[string]string)
		for _, p := range props {
			last[p.Key] = p.Value
		}
		want := make(map[string]string)
		for pair := range strings.SplitSeq(strings.TrimSuffix(row[1], ","), ",") {
			k, v, _ := strings.Cut(pair, "=")
			want[plain(t, k)] = plain(t, v)
		}
		if len(last) != len(want) {
			t.Errorf("%q: got %q, want %q", text, last, want)
		}
		for k, v := range want {
			if last[k] != v {
				t.Errorf("%q: got %q, want %q", text, last, want)
			}
		}
	}
}

// TestDecidesAsZooKeeper shows that random memberships are printed as ZooKeeper 3.8.0
// printed them, and that the same sets of servers are quorums. The file has one digit
// for each set, 1 for a quorum; bit N-1 of the set's index stands for server N.
func TestDecidesAsZooKeeper(t *testing.T) {
	for _, row := range recorded(t, "testdata/java-membership.txt") {
		m := parse(t, plain(t, row[0]))
		if got, want := m.String(), plain(t, row[1]); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		var got []byte
		for set := range len(row[2]) {
			has := func(id ServerID) bool { return set>>(id-1)&1 == 1 }
			got = append(got, '0')
			if m.HasQuorum(has) {
				got[set] = '1'
			}
		}
		if !slices.Equal(got, []byte(row[2])) {
			t.Errorf("quorums %s, want %s, of\n%s", got, row[2], m)
		}
	}
}
