package bugs

// recipes are bugs of the recipes' state machines, which the simulator finds.
var recipes = []bug{
	{"a begin that comes too late", []scenario{{"sim", "TestTransactionBegunTooLate", "tx-tombstone"}}, ""},
	{"a decision that is forgotten too early", []scenario{{"sim", "TestTransactions", "tx-sweep"}}, ""},
	{"acting on votes", []scenario{{"sim", "TestTransactions", "tx-votes"}}, ""},
	{"an abort that is not presumed", []scenario{{"sim", "TestTransactionCrashAtEveryStep", "tx-presumed"}}, ""},
	{"a coordinator that is not replaced", []scenario{{"sim", "TestTransactionNobodyIsBlocked", "tx-chair"}}, ""},
}
