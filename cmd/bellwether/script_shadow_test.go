package main

import (
	"regexp"

	"github.com/rogpeppe/go-internal/testscript"
)

// shadowAt matches the line of the log with the address for clients.
var shadowAt = regexp.MustCompile(`clients are forwarded.* address=([^ ]+)`)

// startShadow starts bellwether shadow.
func startShadow(ts *testscript.TestScript, neg bool, args []string) {
	refuse(ts, neg, args, 3, "shadow NAME OLD OBSERVER FLAG…")
	name := args[0]
	start(ts, false, append([]string{name, "bellwether", "shadow", "--listen", "127.0.0.1:0", "--old", args[1], "--observer", args[2]}, args[3:]...))
	p := stateOf(ts).processes[name]
	var found []string
	waitFor(ts, name+" to forward", func() bool {
		if p.hasEnded() {
			ts.Fatalf("it ended: %s", ts.ReadFile(name+".err"))
		}
		found = shadowAt.FindStringSubmatch(ts.ReadFile(name + ".err"))
		return found != nil
	})
	ts.Setenv(name, found[1])
}
