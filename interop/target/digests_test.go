package target

import (
	"strings"
	"testing"
)

// TestMismatch shows that a mismatch counts, unless a server of Apache has it while it gets a snapshot of another one.
func TestMismatch(t *testing.T) {
	const (
		getting = "INFO Learner - Getting a snapshot from leader 0x2000004b7\n"
		differs = "WARN DataTree - Message:Digests are not matching. Value is Zxid. Value:8589935800\nERROR DataTree - First digest mismatch on txn: 1\n"
		again   = "WARN DataTree - [2 times] Message: Digests are not matching. Value is Zxid. Last value:8589935802\n"
		done    = "INFO Learner - Learner received NEWLEADER message\n"
		sending = "INFO LearnerHandler - Sending snapshot last zxid of peer is 0x1, zxid of leader is 0x2000004b7, send zxid of db as 0x2000004b7, 1 concurrent snapshot sync\n"
	)
	for _, c := range []struct{ learner, leader, want string }{
		{"all is well\n", "", ""},
		{differs, sending, "Digests are not matching. Value is Zxid. Value:8589935800"},
		{getting + differs + again + done, sending, ""},
		{getting + differs + again + done, "", "Digests"}, // a leader of another kind
		{getting + differs + again + done, strings.ReplaceAll(sending, "4b7", "4b8"), "Digests"},
		{getting + done + differs, sending, "Digests"},
		{getting + differs + done + again, sending, "Digests are not matching. Value is Zxid. Last value:8589935802"},
		{getting + done + getting + differs + done, sending, ""},
		{getting + differs, sending, ""}, // it ended before it had everything
		{done + differs + getting + done, sending, "Digests"},
	} {
		if got := mismatch([]string{c.learner, c.leader}, 0); !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%q, leader %q: %q, want %q", c.learner, c.leader, got, c.want)
		}
	}
}
