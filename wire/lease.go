package wire

import (
	"math"
	"strconv"
	"strings"
)

// LeaseQuestion is a path for sync with which a client asks a server how old the
// server's knowledge of sessions may be when it answers a ping. A server that does not
// know the question returns the path, as sync does with any path; a server that does
// appends its answer, see LeaseAnswer.
const LeaseQuestion = "bellwether:lease"

// LeaseAnswer returns the path that answers the question: at most ms milliseconds.
func LeaseAnswer(ms int64) string { return LeaseQuestion + "=" + strconv.FormatInt(ms, 10) }

// ParseLeaseAnswer reads the answer. It returns false for a repeated question, and for
// anything that is not a number of milliseconds that a session timeout could be.
func ParseLeaseAnswer(path string) (ms int64, ok bool) {
	text, ok := strings.CutPrefix(path, LeaseQuestion+"=")
	if !ok {
		return 0, false
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	return ms, err == nil && ms > 0 && ms <= math.MaxInt32
}
