package check

import (
	"bellwether/internal/claim/commit"
	"bellwether/internal/ensemble"
	"bellwether/internal/record"
)

// brokenCommits are sequences of observations that break the rule of two-phase commit.
var brokenCommits = []broken{
	{"a commit of what another aborted", commitRule, func(_ *History) []any {
		return []any{CarriedOut{txPath, one, twoSites, commit.Abort}, written(a, commit.Abort), Learned{txPath, two, commit.Abort}, CarriedOut{txPath, two, twoSites, commit.Commit}}
	}},
	{"an abort presumed of what was committed", commitRule, func(_ *History) []any {
		return []any{Voted{txPath, one, twoSites}, Voted{txPath, two, twoSites}, written(a, commit.Commit), Learned{txPath, one, commit.Commit}, Learned{txPath, two, commit.Abort}}
	}},
	{"a commit that one has not voted for", commitRule, func(_ *History) []any {
		return []any{Voted{txPath, one, twoSites}, written(a, commit.Commit)}
	}},
	{"a commit that stands nowhere", commitRule, func(_ *History) []any {
		return []any{Voted{txPath, one, twoSites}, Voted{txPath, two, twoSites}, Learned{txPath, one, commit.Commit}}
	}},
	{"a decision that is changed", commitRule, func(_ *History) []any {
		return []any{written(a, commit.Abort), Committed{Server: a, Index: 2, Txn: &record.Txn{Body: &record.SetDataTxn{Path: txPath + "/decision", Data: []byte("commit")}}}}
	}},
	{"a commit forgotten before all have carried it out", commitRule, func(_ *History) []any {
		return []any{
			Voted{txPath, one, twoSites}, Voted{txPath, two, twoSites}, written(a, commit.Commit), CarriedOut{txPath, one, twoSites, commit.Commit}, CarriedOut{txPath, "", twoSites, commit.Commit},
			Committed{Server: a, Index: 2, Txn: &record.Txn{Body: &record.DeleteTxn{Path: txPath + "/decision"}}},
		}
	}},
}

func commitRule(*History) Checker { return newCommits() }

// txPath is a transaction, and twoSites are its sites.
const (
	txPath   = TxRoot + "/tx-1"
	one, two = "s1", "s2"
)

var twoSites = []string{one, two}

// written returns the transaction by which the decision is stored in the tree.
func written(v ensemble.ServerID, as commit.Decision) Committed {
	return Committed{Server: v, Index: 1, Txn: &record.Txn{Body: &record.CreateTxn{Path: txPath + "/decision", Data: []byte(as.String())}}}
}
