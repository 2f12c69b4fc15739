package main

import (
	"regexp"

	"github.com/rogpeppe/go-internal/testscript"
)

var (
	// handedText is what a hand-over that was done is told in, as text or JSON.
	handedText = regexp.MustCompile(`^(?:server (?P<to>\d) leads epoch \d+; server (?P<from>\d) transferred|\{"from":(?P<from>\d),"to":(?P<to>\d),)`)
	// notHanded is what is said of one that the machine was too busy for: it is
	// given up within half a second, and an election chooses whom it likes; who
	// was silent for as long cannot take over.
	notHanded = regexp.MustCompile(`does not lead yet|an election chose|none of these servers is the leader|` +
		`no other server can take over|it has been silent|it has not acknowledged|it does not follow|are no quorum|is already transferring leadership`)
)

// handOver has the leader hand over. One that is not done because time ran out
// is tried again for a minute; every other refusal fails.
func handOver(ts *testscript.TestScript, neg bool, args []string) {
	refuse(ts, neg, args, 1, "handover NAME [ID] FLAG…")
	name, to, flags := args[0], "", args[1:]
	if len(flags) > 0 && flags[0][0] != '-' {
		to, flags = flags[0], flags[1:]
	}
	waitFor(ts, "a hand-over", func() bool {
		awaitLeader(ts, false, args[:1])
		command := []string{"election", "handover", "--server", ts.Getenv(name)}
		if to != "" && ts.Getenv("leader") != to {
			command = append(command, to)
		}
		err := ts.Exec("bellwether", append(command, flags...)...)
		if why := ts.ReadFile("stderr"); err != nil && !notHanded.MatchString(why) {
			ts.Fatalf("hand-over: %v: %s", err, why)
		}
		handed := handedText.FindStringSubmatch(ts.ReadFile("stdout"))
		if err != nil || handed == nil {
			return false
		}
		from, now := handed[2]+handed[3], handed[1]+handed[4]
		ts.Setenv("was", from)
		awaitLeader(ts, false, []string{name, from})
		return ts.Getenv("leader") == now && (to == "" || to == now)
	})
}
