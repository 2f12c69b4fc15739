package theatre

import (
	"fmt"
	"math"
	"strconv"

	"bellwether/internal/admin/elog"
	"bellwether/internal/election"
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
)

// inconclusive are the endings of elections without a decision.
var inconclusive = map[string]bool{
	election.Unfinished.String(): true, election.Superseded.String(): true, election.Reconfigured.String(): true,
}

// changesMind holds the verdicts about a vote after which the receiver changes its own vote.
var changesMind = func() map[string]bool {
	all := map[string]bool{}
	for _, v := range election.Adopting() {
		all[v.String()] = true
	}
	return all
}()

// noHistory is the zxid of votes that do not count, as records print it.
var noHistory = election.NoHistory.String()

// chipOf returns the text of a label: what a server says from here on.
func chipOf(state string, v elog.Vote, round wireEpoch) string {
	switch {
	case state != looking:
		return fmt.Sprintf("%s · %s · r%d", roleOf(state, v.Leader), zxid(v), round)
	case v.Leader == peerwire.NoServer:
		return fmt.Sprintf("nobody · r%d", round)
	}
	return fmt.Sprintf("%d · %s · r%d", v.Leader, zxid(v), round)
}

// zxid returns the zxid of a vote.
func zxid(v elog.Vote) string {
	switch {
	case v.Zxid == noHistory:
		return "no history"
	case v.Zxid == "":
		return "0x0"
	}
	return v.Zxid
}

// roleOf names a role in a few letters.
func roleOf(state string, leader ensemble.ServerID) string {
	switch state {
	case leading:
		return "leads"
	case following:
		return fmt.Sprintf("follows %d", leader)
	case looking:
		return "looks"
	}
	return fmt.Sprintf("observes %d", leader)
}

// voteText says what a vote is for, in words.
func voteText(v elog.Vote, round wireEpoch) string {
	if v.Leader == peerwire.NoServer {
		return fmt.Sprintf("nobody, in round %d", round)
	}
	return fmt.Sprintf("%d at %s of epoch %d, in round %d", v.Leader, zxid(v), v.Epoch, round)
}

// duration prints a time with its unit.
func duration(ms int64) string {
	switch {
	case ms < 10_000:
		return strconv.FormatInt(ms, 10) + " ms"
	case ms < 600_000:
		return strconv.FormatFloat(math.Round(float64(ms)/100)/10, 'f', -1, 64) + " s"
	case ms < 48*3_600_000:
		return strconv.FormatInt(ms/60_000, 10) + " min"
	}
	return strconv.FormatInt(ms/86_400_000, 10) + " days"
}

// cut shortens a text to a number of characters.
func cut(s string, n int) string {
	r := []rune(s)
	switch {
	case len(r) <= n:
		return s
	case n < 4:
		return ""
	}
	return string(r[:n-1]) + "…"
}
