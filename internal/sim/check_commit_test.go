package sim

import (
	"bellwether/internal/claim/commit"
	"bellwether/internal/record"
	"bellwether/internal/sim/check"
)

// brokenCommits are sequences of observations that break the rule of two-phase commit.
var brokenCommits = []broken{
	{"a commit of what another aborted", commitRule, func(_ *check.History, _ *Sim, a, _ *server) []any {
		d, one, two := twoSites()
		return []any{txCarried{one, d, commit.Abort}, written(a, d, commit.Abort), txLearned{two, d, commit.Abort}, txCarried{two, d, commit.Commit}}
	}},
	{"an abort presumed of what was committed", commitRule, func(_ *check.History, _ *Sim, a, _ *server) []any {
		d, one, two := twoSites()
		return []any{txVoted{one, d}, txVoted{two, d}, written(a, d, commit.Commit), txLearned{one, d, commit.Commit}, txLearned{two, d, commit.Abort}}
	}},
	{"a commit that one has not voted for", commitRule, func(_ *check.History, _ *Sim, a, _ *server) []any {
		d, one, _ := twoSites()
		return []any{txVoted{one, d}, written(a, d, commit.Commit)}
	}},
	{"a commit that stands nowhere", commitRule, func(_ *check.History, _ *Sim, _, _ *server) []any {
		d, one, two := twoSites()
		return []any{txVoted{one, d}, txVoted{two, d}, txLearned{one, d, commit.Commit}}
	}},
	{"a decision that is changed", commitRule, func(_ *check.History, _ *Sim, a, _ *server) []any {
		d, _, _ := twoSites()
		return []any{written(a, d, commit.Abort), check.Committed{Server: a.id, Index: 2, Txn: &record.Txn{Body: &record.SetDataTxn{Path: d.path + "/decision", Data: []byte("commit")}}}}
	}},
	{"a commit forgotten before all have carried it out", commitRule, func(_ *check.History, _ *Sim, a, _ *server) []any {
		d, one, two := twoSites()
		return []any{
			txVoted{one, d}, txVoted{two, d}, written(a, d, commit.Commit), txCarried{one, d, commit.Commit}, txCarried{&party{}, d, commit.Commit},
			check.Committed{Server: a.id, Index: 2, Txn: &record.Txn{Body: &record.DeleteTxn{Path: d.path + "/decision"}}},
		}
	}},
}

func commitRule(*check.History, *Sim) check.Checker { return newCommits() }

// twoSites returns a transaction and its two sites.
func twoSites() (d *deal, one, two *party) {
	return &deal{path: txRoot + "/tx-1", sites: []string{"s1", "s2"}}, &party{name: "s1"}, &party{name: "s2"}
}

// written returns the transaction by which the decision is stored in the tree.
func written(v *server, d *deal, as commit.Decision) check.Committed {
	return check.Committed{Server: v.id, Index: 1, Txn: &record.Txn{Body: &record.CreateTxn{Path: d.path + "/decision", Data: []byte(as.String())}}}
}
