package bugs

import "slices"

// bug is one row of the list of known bugs.
type bug struct {
	// tickets names the bug: numbers of ZOOKEEPER tickets, or words.
	tickets   string
	scenarios []scenario
	// rest says which part of the row has no scenario and where that belongs, or why it
	// cannot occur here; empty if nothing is left.
	rest string
}

// scenario is a test that fails if the code has the bug.
type scenario struct {
	pkg, test string // a package in internal, and one of its tests
	patch     string // the name of a patch in testdata, without its suffix; empty: no patch
}

// synchronisation are the bugs of Zab, the log and the tree.
var synchronisation = []bug{
	{"1277, 2789, 4883", []scenario{
		{"zab", "TestZK1277CounterEnds", "1277"},
		{"server", "TestCounterRolloverUnderLoad", ""},
		{"sim", "TestZK1277ClientsOverARollOver", ""},
	}, ""},
	{"2355", []scenario{{"zab", "TestZK2355UnreadableProposalEndsTheTerm", "2355"}}, ""},
	{"2845", []scenario{{"zab", "TestZK2845LoggedTailCounts", "2845"}}, ""},
	{"2846", []scenario{{"zab", "TestZK2846LogOfAnotherHistory", "2846"}}, ""},
	{"2418", []scenario{
		{"zab", "TestZK2418GapBetweenLogAndMemory", "2418"},
		{"store", "TestReadLogBeginsTooLate_ZOOKEEPER_2418", "2418-store"},
		{"store", "TestReadLogOverInstalledSnapshot_ZOOKEEPER_2418", "2418-installed"},
	}, ""},
	{"3104", []scenario{{"zab", "TestZK3104NewLeaderBehindTheWholeHistory", "3104"}}, ""},
	{"3144", []scenario{{"tree", "TestSessionTableIsInStep_ZOOKEEPER_3144", "3144"}}, ""},
	{"3526", []scenario{{"zab", "TestZK3526UnknownZxidGetsSnapshot", "3526"}}, ""},
	{"3642", []scenario{
		{"zab", "TestZK3642SnapshotInterrupted", "3642"},
		{"store", "TestInstalledSnapshotSurvives_ZOOKEEPER_3642", "3642-store"},
		{"store", "TestBrokenSnapshotInTheMiddleIsRefused", "3642-broken"},
	}, ""},
	{"3911", []scenario{{"zab", "TestZK3911HistoryIsLoggedBeforeItIsAcknowledged", "3911"}}, ""},
	{"3023", []scenario{{"zab", "TestZK3023AcknowledgementWaitsForTheSync", "3023"}}, ""},
	{"4352", []scenario{{"zab", "TestZK4352LearnerWithoutHistory", "4352"}}, ""},
	{"4394", []scenario{{"zab", "TestZK4394CommitBetweenNewLeaderAndUpToDate", "4394"}}, ""},
	{"4643", []scenario{{"zab", "TestZK4643EpochBehindTheLog", "4643"}}, ""},
	{"4646", []scenario{{"zab", "TestZK4646AcknowledgedHistorySurvives", "4646"}}, ""},
	{"4685", []scenario{{"zab", "TestZK4685ProposalAckBeforeNewLeaderAck", "4685"}}, ""},
	{"4785", []scenario{{"zab", "TestZK4785OutstandingIsAcknowledgedWhenDurable", "4785"}}, ""},
	{"4925", []scenario{{"zab", "TestZK4925NoHoleInTheCommittedLog", "4925"}}, ""},
	{"4882", []scenario{
		{"zab", "TestZK4882DiskErrorIsNoHole", "4882"},
		{"store", "TestFailedSyncPoisons", "4882-store"},
		{"store", "TestFailedSyncIsMendedAtTheNextStart", "4882-start"},
	}, ""},
	{"5094", []scenario{
		{"zab", "TestZK5094TruncationInterrupted", "5094"},
		{"store", "TestTruncateInterrupted_ZOOKEEPER_5094", "5094-store"},
	}, ""},
	{"4837", []scenario{
		{"zab", "TestZK4837TruncationBelowTheSnapshot", "4837"},
		{"store", "TestTruncateTakesSnapshots_ZOOKEEPER_4837", "4837-store"},
	}, ""},
	{"4541, 4712, 4502, 4409", []scenario{
		{"zab", "TestZK4541StaleSyncedIsDropped", "4541"},
		{"store", "TestRepeatedTransactions_ZOOKEEPER_4541", "4541-store"},
		{"sim", "TestZK4541EndOfARoleInAWholeServer", ""},
		{"zab", "TestZK4712LeaderForgetsItsHistory", "4712-trunc"},
		{"zab", "TestZK4712LeaderForgetsItsHistory", "4712-diff"},
	}, ""},
	{"2325, 3056, 3644", []scenario{
		{"store", "TestNoSnapshotIsNotEmpty_ZOOKEEPER_2325_3056", "2325"},
		{"store", "TestNoSnapshotIsNotEmpty_ZOOKEEPER_2325_3056", "3056"},
		{"store", "TestTrustEmptyReplaysLogs_ZOOKEEPER_3644", "3644"},
	}, ""},
	{"a flipped bit at the end of a sector", []scenario{{"store", "TestFlippedBitAtTheEndOfASector", "sector-zeros"}}, ""},
	{"2332", []scenario{{"store", "TestLogWithoutRecords_ZOOKEEPER_2332", "2332"}}, ""},
	{"2623", []scenario{{"tree", "TestCheckOnlyInMulti_ZOOKEEPER_2623", "2623"}}, ""},
	{"4846", []scenario{{"tree", "TestListsOfSnapshot_ZOOKEEPER_4846", "4846"}}, ""},
	{"4743", []scenario{{"tree", "TestVersionNeverMinusOne_ZOOKEEPER_4743", "4743"}}, ""},
	{"Zab specification 1", []scenario{{"zab", "TestZabSpecAttachedBeforeNewLeader", "spec-1"}}, ""},
	{"Zab specification 2", []scenario{{"zab", "TestZabSpecProposalTwice", "spec-2"}}, ""},
	{"Zab specification 3", []scenario{{"zab", "TestZabSpecAttachedBeforeNewLeader", "spec-3"}}, ""},
	{"2247", []scenario{{"zab", "TestZK2247LeaderThatCannotWriteResigns", "2247"}}, ""},
	{"a newcomer during a reconfiguration", []scenario{{"zab", "TestNewLearnerGetsCommittedConfiguration", "own-1"}}, ""},
	{"a reconfiguration before UPTODATE", []scenario{{"zab", "TestLearnerActivates", "own-2"}}, ""},
	{"reads without a quorum", []scenario{
		{"sim", "TestReadersSeeNothingUncommitted", "readonly-start"},
		{"sim", "TestReadersSeeNoSnapshotOfAnUnfinishedTerm", "readonly-snapshot"},
	}, ""},
	{"2725", []scenario{{"replica", "TestZK2725MultiUpgradesSession", "2725"}}, ""},
	{"3471", []scenario{{"replica", "TestZK3471UpgradingSessionDoesNotExpire", "3471"}}, ""},
	{"local sessions after their end", []scenario{
		{"sim", "TestNoRequestAfterTheEndOfAnUpgradedSession", "local-gone"},
		{"sim", "TestUpgradesWhileTheLeaderEnds", "local-stay"},
	}, ""},
	{"a leader after its leadership transfer", []scenario{{"sim", "TestTransferEndsTheEpoch", "own-3"}}, ""},
	{"a leadership transfer too early", []scenario{
		{"sim", "TestTransferAnswersEveryWriteOnce", "own-4"},
		{"zab", "TestTransferWaitsForEverything", "own-5"},
	}, ""},
}

// elections are the bugs of elections and of the connections between servers.
var elections = []bug{
	{"2080, 2778", []scenario{{"peer", "TestZookeeper2080And2778MembershipChangesUnderLoad", ""}}, ""},
	{"2164", []scenario{{"peer", "TestZookeeper2164SmallerIDIsDialledBackAlsoFromAWildcard", ""}}, ""},
	{"3756", []scenario{{"peer", "TestZookeeper3756SilentAddressDelaysNobody", ""}}, ""},
	{"3769", []scenario{
		{"election", "TestZK3769HalfDeliveredVote", ""},
		{"peer", "TestZookeeper3769RecordedNotificationsLeaveTheReceiverAlive", "3769"},
	}, ""},
	{"4787", []scenario{
		{"election", "TestZK4787ForeignCharset", "4787"},
		{"peer", "TestZookeeper4787InitialMessageIsUTF8", ""},
	}, ""},
	{"3829, 3814, 3830, 3842", []scenario{
		{"election", "TestZK3829RollingToFourMembers", "3829"},
		{"sim", "TestZK3829TheFourthLeadsAndCommits", ""},
	}, ""},
	{"1817, 1818, 1805", []scenario{{"election", "TestZK1817JoinerAmongUnequalVotes", "1817"}}, ""},
	{"3109", []scenario{{"election", "TestZK3109ChangedMind", "3109"}}, ""},
	{"3218", []scenario{
		{"election", "TestZK3218BackOff", "3218"},
		{"election", "TestZK3218BackOff", "3218-up"},
	}, ""},
	{"3320", []scenario{{"peer", "TestZookeeper3320ListenerComesBack", "3320"}}, ""},
	{"4886", []scenario{
		{"peer", "TestZookeeper4886StrangersAreServedAndForgotten", "4886"},
		{"peer", "TestZookeeper4886SecureHooksAreCalled", ""},
	}, ""},
	{"4537", []scenario{{"sim", "TestZK4537SyncsAndWritesOfOneClient", ""}}, ""},
	{"4736", []scenario{{"peer", "TestZookeeper4736NothingLeaks", ""}}, ""},
	{"3479", []scenario{{"election", "TestZK3479ElectionTime", "3479"}}, ""},
	{"1514", []scenario{{"election", "TestZK1514FollowersOfAnEarlierRound", "1514"}}, ""},
	{"1732", []scenario{{"election", "TestZK1732MixedVersions", "1732"}}, ""},
	{"975", []scenario{{"election", "TestZK975SmallerLeader", ""}}, ""},
	{"a disk that hangs without an error", []scenario{
		{"election", "TestAbstainingServerIsNoCandidate", "hung-candidate"},
		{"sim", "TestHungDiskOfTheLeaderPassesLeadershipOn", "hung-leader"},
	}, ""},
	{"a candidate that cannot lead, elected again", []scenario{
		{"sim", "TestCandidateThatCannotBeJoined", "failed-forgotten"},
		{"sim", "TestFilteredLeaderWithMoreHistory", "failed-history"},
		{"sim", "TestSilentLeaderIsNotElectedAgain", "failed-silent"},
		{"sim", "TestFilteredMinorityStopsNoElection", "failed-pause"},
		{"election", "TestDifferentMemoriesAgree", "failed-split"},
		{"election", "TestFewFailedTermsAreForgivenFirst", "failed-forgiven"},
		{"sim", "TestServerBehindRemembersOneMoreFailedTerm", "failed-behind"},
		{"election", "TestServerThatOthersElectAcceptsIt", "failed-accept"},
		{"election", "TestLeaderThatOthersHaveLeftIsGivenUp", "failed-kept"},
	}, ""},
	{"a snapshot that counts as more history", []scenario{
		{"sim", "TestSnapshotGivesNoMoreHistory", "snapshot-zero"},
		{"sim", "TestSnapshotOfZooKeeperGivesNoMoreHistory", "snapshot-foreign"},
	}, ""},
	{"heartbeats in the middle of a batch", []scenario{
		{"sim", "TestLeaseOfABusyLeader", "beat-ahead"},
		{"sim", "TestLeaseOfALeaderCutOffWhileBusy", "beat-newest"},
		{"sim", "TestBusyLeaderHasNothingOnItsDisk", "beat-logged"},
		{"sim", "TestBusyBatches", "beat-ack"},
		{"sim", "TestBusyObserverLagsBehind", "beat-lag"},
		{"zab", "TestHeartbeatBetweenTwoSteps", "beat-overtakes"},
		{"zab", "TestBusyLearnerAnswersPings", "beat-echo"},
	}, ""},
	{"a promise lost with its disk", []scenario{
		{"zab", "TestAcceptedEpochIsLostWithItsLink", "promise-link"},
		{"zab", "TestPromiseIsNotRepeated", "promise-again"},
		{"sim", "TestWipedServerIsNotInTheQuorumOfATerm", "promise-wiped"},
		{"sim", "TestLostDiskElectsNobodyThatIsBehind", "lost-votes"},
		{"election", "TestVoteOfARestartedServerDoesNotCount", "vote-restarted"},
	}, ""},
}

// orders are bugs in the order in which the goroutines of one server act.
var orders = []bug{
	{"a watch set after the lock is released", []scenario{
		{"interleave", "TestOrders", "order-watch"},
		{"interleave", "TestOrders", "order-zxid"},
	}, ""},
	{"events and replies in the wrong order", []scenario{
		{"interleave", "TestOrders", "order-reserved"},
		{"interleave", "TestOrders", "order-event"},
		{"interleave", "TestOrders", "order-reply"},
	}, ""},
	{"durability reported before fsync", []scenario{{"interleave", "TestOrders", "order-fsync"}}, ""},
	{"output that nobody writes", []scenario{{"interleave", "TestOrders", "order-flush"}}, ""},
}

// all returns the rows in order.
func all() []bug { return slices.Concat(synchronisation, elections, orders, recipes) }
