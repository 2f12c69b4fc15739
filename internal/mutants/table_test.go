package mutants

import (
	"strings"
	"testing"
)

// TestTable shows how mutants are counted: equivalent ones, those that do not compile and those that the simulator
// cannot see are counted apart, and a score covers only what was judged and says so.
func TestTable(t *testing.T) {
	list := ""
	for _, name := range []string{"killed", "survives", "alike", "broken", "open", "hidden"} {
		list += "== " + name + "\n# It breaks " + name + ".\n--- internal/zab/a.go\n@@\n-x\n+y\n"
	}
	all, err := ReadList("", list+"== other\n# It breaks.\n--- zk/a.go\n@@\n-x\n+y\n")
	if err != nil {
		t.Fatal(err)
	}
	results, err := ReadResults("", `killed unit 0123456789ab killed internal/zab TestX 1.0
killed simulator 0123456789ab survived - 12 60.0
hidden simulator 0123456789ab survived - 13 60.0
survives unit 0123456789ab survived internal/zab - 1.0
survives simulator 0123456789ab killed Agreement 7 3.0
alike unit 0123456789ab survived internal/zab - 1.0
broken unit 0123456789ab invalid - - 0.0
other unit 0123456789ab survived zk - 1.0
gone unit 0123456789ab killed zk TestY 1.0
internal/zab/f.go:f:drop:1 unit 0123456789ab killed internal/zab TestX 1.0
`)
	if err != nil {
		t.Fatal(err)
	}
	got := Table(all, map[string]string{"alike": "why"}, map[string]string{"hidden": "why"}, results)
	for _, want := range []string{
		"| `zab` | 6 | 1 | 1 | 1 of 2, 2 not judged | 50 % | 1 | 1 of 2, 1 not judged | 50 % |\n",
		"| `zk` | 1 | 0 | 0 | 0 of 1 | 0 % | 1 | – | – |\n",
		"| together | 7 | 1 | 1 | 1 of 3, 2 not judged | 33 % | 2 | 1 of 2, 1 not judged | 50 % |\n",
		"| `zab` | 1 | 0 | 0 | 1 of 1 | 100 % | 0 | – | – |\n",
		"| killed | It breaks killed. | 12 |\n",
		"| survives | It breaks survives. | Agreement, seed 7 |\n",
		"| other | It breaks. | – |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the table does not have %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "alike") || strings.Contains(got, "gone") {
		t.Errorf("the table lists mutants that it must not list:\n%s", got)
	}
}

// TestAreas shows which files are mutated, and whose tests judge them.
func TestAreas(t *testing.T) {
	for file, want := range map[string]bool{
		"internal/zab/ping.go": true, "internal/zab/ping_test.go": false, "internal/claim/lines/look.go": true,
		"internal/claim/claimtest/claimtest.go": false, "internal/store/memfs.go": false, "internal/store/log.go": true,
		"internal/server/loop.go": true, "internal/server/tls.go": false, "internal/ensemble/quorum.go": false,
		"wire/code.go": false, "zk/lease.go": true, "internal/zab/testdata/x.txt": false,
	} {
		if Mutated(file) != want {
			t.Errorf("%s is mutated: %v", file, !want)
		}
	}
	if got := strings.Join(TestsOf("internal/claim/lines"), " "); got != "internal/claim/lines internal/claim/modeltest" {
		t.Errorf("the tests of lines are %s", got)
	}
	if !Simulated("internal/claim/lines") || Simulated("zk") || Simulated("wire") {
		t.Error("the packages that the simulator runs are wrong")
	}
}
