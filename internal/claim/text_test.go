package claim

import (
	"errors"
	"testing"
	"time"
)

// TestTexts checks the texts of errors and names that operators see.
func TestTexts(t *testing.T) {
	cause := errors.New("line 1: no token")
	for _, c := range []struct{ got, want string }{
		{(&NoProof{Timeout: 2 * time.Second, Delay: 3 * time.Second}).Error(), "session timeout 2s is too short beside the 3s within which the server learns of a ping: " +
			"ask for at least 3.65s, or say how soon this server confirms"},
		{(&DataError{Path: "/app", Err: cause}).Error(), "/app holds data of another recipe: line 1: no token"},
		{(&OtherRecipeError{Path: "/app", Want: "a queue", Found: "a lock"}).Error(), "/app is in use by another recipe (a lock), and cannot be used as a queue: give each a path of its own"},
		{Own.String(), "own"},
		{KazooItem.String(), "kazoo-item"},
		{(KazooItem + 1).String(), "naming 22"},
		{LeaseLapsed.String(), "no proof in time that the session lives"},
		{Reason(100).String(), "reason 100"},
		{OpJoin.String(), "join"},
		{Unclear.String(), "unclear"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
	if !errors.Is(&DataError{Err: cause}, cause) {
		t.Error("a DataError does not wrap its cause")
	}
}
