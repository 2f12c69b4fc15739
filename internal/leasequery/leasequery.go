// Package leasequery holds the paths with which a native client asks a native server how old
// the server's knowledge of sessions may be when it answers a ping. Read [Question] first.
package leasequery

import (
	"math"
	"strconv"
	"strings"
)

// Question is a path for sync with which a client asks a server how old the
// server's knowledge of sessions may be when it answers a ping. A server that does not
// know the question returns the path, as sync does with any path; a server that knows it
// appends its answer, see Answer.
const Question = "bellwether:lease"

// Answer returns the path that answers the question: at most ms milliseconds.
func Answer(ms int64) string { return Question + "=" + strconv.FormatInt(ms, 10) }

// ParseAnswer reads the answer. It returns false for the unchanged question, and for
// anything that is not a number of milliseconds that a session timeout could be.
func ParseAnswer(path string) (ms int64, ok bool) {
	text, ok := strings.CutPrefix(path, Question+"=")
	if !ok {
		return 0, false
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	return ms, err == nil && ms > 0 && ms <= math.MaxInt32
}
