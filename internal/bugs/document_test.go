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
	update      = flag.Bool("update", false, "rewrite the table of docs/testing.md")
	remeasure   = flag.Bool("measure", false, "count again how many random runs find each bug; takes long")
	measureOnly = flag.String("only", "", "with -measure: only this patch")
)

const (
	documentFile = root + "/docs/testing.md"
	seedsFile    = "testdata/seeds.txt"
	begin, end   = "<!-- bugs: go test ./internal/bugs -run TestDocument -update -->\n", "<!-- end of bugs -->\n"
)

// TestDocument fails when the table of docs/testing.md differs from the data. Run it with
// -update after a change to the data.
func TestDocument(t *testing.T) {
	b, err := os.ReadFile(documentFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	got, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s does not contain the markers of the table", documentFile)
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

// unpatched gives the reason why a scenario has no patch.
var unpatched = map[string]string{
	"TestCounterRolloverUnderLoad":        "the bug of the row above, in a whole server",
	"TestZK1277ClientsOverARollOver":      "the bug of the first row, as clients see it",
	"TestZK4541EndOfARoleInAWholeServer":  "the bug of the row above, in a whole server",
	"TestZK3829TheFourthLeadsAndCommits":  "the bug of the row above, in whole servers",
	"TestZK3769HalfDeliveredVote":         "the election has no thread that a message could end",
	"TestZK4537SyncsAndWritesOfOneClient": "one loop handles requests and commits, so there is no race",
	"TestZK975SmallerLeader":              "a joining server does not compare its vote with the leader's, so there is nothing to break",
}

// document returns the text of the table, and of the list of parts that have no scenario.
func document(t *testing.T) string {
	seeds := readSeeds(t)
	var b, rest strings.Builder
	patches := 0
	for _, part := range []struct {
		title string
		bugs  []bug
	}{{"Synchronisation, log and tree", synchronisation}, {"Elections", elections}, {"Orders of goroutines", orders}, {"Recipes", recipes}} {
		fmt.Fprintf(&b, "\n### %s\n\n| bug | what is brought back | found by | random runs |\n|---|---|---|---|\n", part.title)
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
					what, found = load(t, s.patch).What, "–"
					if n := seeds[s.patch]; n != "" {
						found = n
					}
					if models[s.pkg] == "" {
						found = ""
					}
				}
				fmt.Fprintf(&b, "| %s | %s | `%s` %s | %s |\n", x.tickets, what, s.pkg, strings.ReplaceAll(s.test, "_", `\_`), found)
			}
		}
	}
	if rest.Len() > 0 {
		b.WriteString("\nParts without a scenario, and where those belong:\n\n" + rest.String())
	}
	return fmt.Sprintf("%d bugs are brought back.\n%s\n", patches, &b)
}

// readSeeds reads the measured numbers of random runs.
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

// TestSeeds shows that each line of seedsFile belongs to a patch. With -measure, it counts how
// many random runs a package's model makes until it finds each bug, from a fixed seed, and
// writes the numbers to seedsFile.
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
			t.Errorf("%s has a line for %s, which is not a patch", seedsFile, patch)
		}
	}
	if !*remeasure {
		return
	}
	text := fmt.Sprintf("# random runs that a package's model makes until it finds a bug, at most %d\n%s", runsMax, strings.Join(lines, ""))
	if err := os.WriteFile(seedsFile, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
