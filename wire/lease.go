package wire

import (
	"math"
	"strconv"
	"strings"
)

// LeaseQuestion is a path for sync by which a client asks a server for how
// long its knowledge of sessions may be out of date when it answers a ping. A
// server that does not know the question echoes the path, as sync does with
// any path; one that does appends its answer, see LeaseAnswer.
const LeaseQuestion = "bellwether:lease"

// LeaseAnswer is the path that answers the question: at most ms milliseconds.
func LeaseAnswer(ms int64) string { return LeaseQuestion + "=" + strconv.FormatInt(ms, 10) }

// ParseLeaseAnswer reads the answer; false for an echo, and for what is no
// number of milliseconds that a session timeout could be.
func ParseLeaseAnswer(path string) (ms int64, ok bool) {
	text, ok := strings.CutPrefix(path, LeaseQuestion+"=")
	if !ok {
		return 0, false
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	return ms, err == nil && ms > 0 && ms <= math.MaxInt32
}
