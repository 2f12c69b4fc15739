package target

import (
	"os"
	"regexp"
	"slices"
)

// What a server of Apache logs about digests and snapshots that leaders send.
var (
	differs  = regexp.MustCompile(`First digest mismatch|Digests are not matching`)
	sent     = regexp.MustCompile(`Sending snapshot last zxid .* send zxid of db as (0x[0-9a-f]+),`)
	received = regexp.MustCompile(`(?s)Getting a snapshot from leader (0x[0-9a-f]+)\n.*?(?:Learner received NEWLEADER|$)`)
)

// Mismatch returns the log of server i from the first place on where it says that its tree has another digest than its
// leader's; empty: there is none. Only servers of Apache say so.
//
// What a server of Apache says while another one synchronises it by a snapshot does not count: the snapshot may contain
// transactions that follow, and its stream has no digest that says where it is complete, so the server compares the
// digests of transactions with a tree that has later ones.
func (e *Ensemble) Mismatch(i int) (string, error) {
	logs := make([]string, len(e.Servers))
	for j, s := range e.Servers {
		text, err := os.ReadFile(s.logPath())
		if err != nil {
			return "", err
		}
		logs[j] = string(text)
	}
	return mismatch(logs, i), nil
}

// mismatch is Mismatch for the logs of all servers.
func mismatch(logs []string, i int) string {
	var snapshots []string
	for _, log := range logs {
		for _, found := range sent.FindAllStringSubmatch(log, -1) {
			snapshots = append(snapshots, found[1])
		}
	}
	log := received.ReplaceAllStringFunc(logs[i], func(phase string) string {
		if slices.Contains(snapshots, received.FindStringSubmatch(phase)[1]) {
			return ""
		}
		return phase
	})
	if at := differs.FindStringIndex(log); at != nil {
		return log[at[0]:]
	}
	return ""
}
