package bugs

// recipes are bugs of the recipes' state machines, which the simulator finds.
var recipes = []bug{
	{"a begin that comes too late", []scenario{{"sim", "TestTransactionBegunTooLate", "tx-tombstone"}}, ""},
	{"a decision that is forgotten too early", []scenario{{"sim", "TestTransactions", "tx-sweep"}}, ""},
	{"acting on votes", []scenario{{"sim", "TestTransactions", "tx-votes"}}, ""},
	{"an abort that is not presumed", []scenario{{"sim", "TestTransactionCrashAtEveryStep", "tx-presumed"}}, ""},
	{"a coordinator that is not replaced", []scenario{{"sim", "TestTransactionNobodyIsBlocked", "tx-chair"}}, ""},
	{"an item that is put again", []scenario{{"claim", "TestPutThatWasTakenAtOnce", "queue-put"}}, ""},
	{"an acknowledgement sent twice", []scenario{{"sim", "TestWork", "queue-over"}}, ""},
	{"items out of order", []scenario{{"sim", "TestWork", "queue-order"}}, ""},
	{"a place in a queue left behind", []scenario{{"claim", "TestTakeInDoubtEndsWithItsSession", "queue-place"}}, ""},
	{"another's claim ended", []scenario{{"claim", "TestHandInLeavesAnothersClaimAlone", "queue-owner"}}, ""},
	{"a number counted twice", []scenario{{"sim", "TestWork", "count-mark"}}, ""},
	{"a number lost", []scenario{{"sim", "TestWork", "count-version"}}, ""},
	{"what the dead have left at a barrier", []scenario{{"sim", "TestDoubleBarrierRemnant", "gate-remnant"}}, ""},
	{"a barrier that opens too early", []scenario{{"sim", "TestDoubleBarriers", "gate-count"}}, ""},
	{"Curator GH-1290", []scenario{{"sim", "TestDoubleBarriers", "gate-woken"}}, ""},
	{"a barrier that is left too early", []scenario{{"sim", "TestDoubleBarriers", "gate-out"}}, ""},
	{"a barrier as kazoo has it that is left too early", []scenario{{"sim", "TestDoubleBarriersOfKazoo", "gate-kazoo"}}, ""},
	{"a barrier passed on old news", []scenario{{"sim", "TestWork", "barrier-old-news"}}, ""},
	{"a barrier that is not seen to open", []scenario{{"sim", "TestWork", "barrier-watch"}}, ""},
	{"a configuration that goes back", []scenario{{"sim", "TestConfigurations", "config-back"}}, ""},
	{"a configuration of a former leader", []scenario{{"sim", "TestADeposedLeaderAnnouncesNothing", "config-guard"}}, ""},
	{"a configuration announced twice", []scenario{{"sim", "TestConfigurations", "config-doubt"}}, ""},
}
