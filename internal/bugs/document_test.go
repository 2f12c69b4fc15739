package bugs

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var (
	update      = flag.Bool("update", false, "write the table of docs/testing.md anew")
	remeasure   = flag.Bool("measure", false, "count anew how many random stories find each bug; takes long")
	measureOnly = flag.String("only", "", "with -measure: of this patch alone")
)

const (
	documentFile = root + "/docs/testing.md"
	seedsFile    = "testdata/seeds.txt"
	begin, end   = "<!-- bugs: go test ./internal/bugs -run TestDocument -update -->\n", "<!-- end of bugs -->\n"
)

// TestDocument fails when the table of docs/testing.md is not what the data
// makes. Run it with -update after a change to the data.
func TestDocument(t *testing.T) {
	b, err := os.ReadFile(documentFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	got, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", documentFile)
	}
	want := document(t)
	if *update {
		if err := os.WriteFile(documentFile, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Error("docs/testing.md is stale; run: go test ./internal/bugs -run TestDocument -update")
	}
}

// unpatched says of scenarios without a patch why there is none.
var unpatched = map[string]string{
	"TestEpochEndsUnderLoad":              "the fault of the row above, in a whole server",
	"TestZK1277ClientsOverARollOver":      "the fault of the first row, as clients see it",
	"TestZK4541EndOfARoleInAWholeServer":  "the fault of the row above, in a whole server",
	"TestZK3829TheFourthLeadsAndCommits":  "the fault of the row above, in whole servers",
	"TestZK3769HalfDeliveredVote":         "the election has no thread that a message could end",
	"TestZK4537SyncsAndWritesOfOneClient": "one loop takes requests and commits, there is nothing to race",
	"TestZK975SmallerLeader":              "who joins does not compare its vote with the leader's, so there is nothing to break",
}

// document is the table, and behind it what is still to come, if anything is.
func document(t *testing.T) string {
	seeds := readSeeds(t)
	var b, rest strings.Builder
	patches := 0
	for _, part := range []struct {
		title string
		bugs  []bug
	}{{"Synchronisation, log and tree", synchronisation}, {"Elections", elections}, {"Recipes", recipes}} {
		fmt.Fprintf(&b, "\n### %s\n\n| bug | what is brought back | found by | stories |\n|---|---|---|---|\n", part.title)
		for _, x := range part.bugs {
			if x.rest != "" {
				fmt.Fprintf(&rest, "- %s: %s\n", x.tickets, x.rest)
			}
			for _, s := range x.scenarios {
				what, found := "(no patch)", ""
				if why := unpatched[s.test]; why != "" {
					what = "(no patch: " + why + ")"
				}
				if s.patch != "" {
					patches++
					what, found = load(t, s.patch).what, "–"
					if n := seeds[s.patch]; n != "" {
						found = n
					}
					if models[s.room] == "" {
						found = ""
					}
				}
				fmt.Fprintf(&b, "| %s | %s | `%s` %s | %s |\n", x.tickets, what, s.room, strings.ReplaceAll(s.test, "_", `\_`), found)
			}
		}
	}
	if rest.Len() > 0 {
		b.WriteString("\nParts that are still without a scenario, and where those belong:\n\n" + rest.String())
	}
	return fmt.Sprintf("%d bugs are brought back.\n%s\n", patches, &b)
}

// readSeeds reads what was measured.
func readSeeds(t *testing.T) map[string]string {
	t.Helper()
	f, err := os.Open(seedsFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	seeds := map[string]string{}
	for s := bufio.NewScanner(f); s.Scan(); {
		if patch, n, ok := strings.Cut(s.Text(), " "); ok && patch != "#" {
			seeds[patch] = n
		}
	}
	return seeds
}

// TestSeeds measures with -measure how many random stories a room's model draws
// until it finds each bug, from a fixed seed, and writes it down.
func TestSeeds(t *testing.T) {
	seeds := readSeeds(t)
	var lines []string
	for _, b := range all() {
		for _, s := range b.scenarios {
			if s.patch == "" {
				continue
			}
			if *remeasure && (*measureOnly == "" || *measureOnly == s.patch) {
				seeds[s.patch] = measure(t, s)
				t.Logf("%s: %q", s.patch, seeds[s.patch])
			}
			if n := seeds[s.patch]; n != "" {
				lines = append(lines, s.patch+" "+n+"\n")
			}
		}
	}
	for patch := range seeds {
		if !slices.ContainsFunc(all(), func(b bug) bool {
			return slices.ContainsFunc(b.scenarios, func(s scenario) bool { return s.patch == patch })
		}) {
			t.Errorf("%s has %s, which is no patch", seedsFile, patch)
		}
	}
	if !*remeasure {
		return
	}
	text := fmt.Sprintf("# random stories that a room's model draws until it finds a bug, at most %d\n%s", seedsMax, strings.Join(lines, ""))
	if err := os.WriteFile(seedsFile, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
