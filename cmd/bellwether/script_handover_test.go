package main

import (
	"regexp"

	"github.com/rogpeppe/go-internal/testscript"
)

var (
	// transferDone matches the message of a successful leadership transfer, as text or as JSON.
	transferDone = regexp.MustCompile(`^(?:server (?P<to>\d) leads epoch \d+; server (?P<from>\d) transferred|\{"from":(?P<from>\d),"to":(?P<to>\d),)`)
	// transferFailed matches the messages of a transfer that failed because the machine was too busy. The leader
	// gives up a transfer after half a second, and an election follows. A server that was silent for half a
	// second cannot become the leader by a transfer.
	transferFailed = regexp.MustCompile(`does not lead yet|an election chose|none of these servers is the leader|` +
		`no other server can take over|it has been silent|it has not acknowledged|it does not follow|are no quorum|is already transferring leadership`)
)

// transferLeadership makes the leader transfer leadership. If the transfer fails for lack of time, it tries again
// until waitMax has passed. Every other refusal fails the script.
func transferLeadership(ts *testscript.TestScript, neg bool, args []string) {
	refuse(ts, neg, args, 1, "handover NAME [ID] FLAG…")
	name, to, flags := args[0], "", args[1:]
	if len(flags) > 0 && flags[0][0] != '-' {
		to, flags = flags[0], flags[1:]
	}
	waitFor(ts, "a leadership transfer", func() bool {
		awaitLeader(ts, false, args[:1])
		command := []string{"election", "handover", "--server", ts.Getenv(name)}
		if to != "" && ts.Getenv("leader") != to {
			command = append(command, to)
		}
		err := ts.Exec("bellwether", append(command, flags...)...)
		if why := ts.ReadFile("stderr"); err != nil && !transferFailed.MatchString(why) {
			ts.Fatalf("leadership transfer: %v: %s", err, why)
		}
		handed := transferDone.FindStringSubmatch(ts.ReadFile("stdout"))
		if err != nil || handed == nil {
			return false
		}
		from, now := handed[2]+handed[3], handed[1]+handed[4]
		ts.Setenv("was", from)
		awaitLeader(ts, false, []string{name, from})
		return ts.Getenv("leader") == now && (to == "" || to == now)
	})
}
