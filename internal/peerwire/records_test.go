package peerwire_test

import (
	"testing"

	"bellwether/internal/peerwire"
	"bellwether/internal/wiretest"
	"bellwether/wire"
)

// family is every record of the package.
var family = wiretest.Family{
	New: []func() wire.Record{
		func() wire.Record { return new(peerwire.QuorumPacket) },
		func() wire.Record { return new(peerwire.LearnerInfo) },
		func() wire.Record { return new(peerwire.LeaderInfo) },
		func() wire.Record { return new(peerwire.EpochAck) },
		func() wire.Record { return new(peerwire.ForwardedRequest) },
		func() wire.Record { return new(peerwire.Revalidation) },
		func() wire.Record { return new(peerwire.Revalidated) },
		func() wire.Record { return new(peerwire.TouchedSession) },
		func() wire.Record { return new(peerwire.TouchedSessions) },
		func() wire.Record { return new(peerwire.Activation) },
		func() wire.Record { return new(peerwire.Handover) },
		func() wire.Record { return new(peerwire.Relayed) },
		func() wire.Record { return new(peerwire.Notification) },
		func() wire.Record { return new(peerwire.InitialMessage) },
		func() wire.Record { return new(peerwire.QuorumAuthPacket) },
		func() wire.Record { return new(peerwire.Extension) },
		func() wire.Record { return new(peerwire.PingInfo) },
		func() wire.Record { return new(peerwire.Fitness) },
		func() wire.Record { return new(peerwire.TreeReport) },
		func() wire.Record { return new(peerwire.TreeOrder) },
	},
	NoEnd: []wire.Record{new(peerwire.ForwardedRequest), new(peerwire.Activation), new(peerwire.Handover), new(peerwire.TouchedSessions), new(peerwire.Notification), new(peerwire.LearnerInfo)},
}

// TestEveryRecordIsListed: every type with a method Code is in family, and so is tested and fuzzed.
func TestEveryRecordIsListed(t *testing.T) { family.CheckListed(t) }

// TestGreedyInputStaysWithinItsBudget: input that contains many small elements, or claims to, cannot make
// a decoder allocate much more than the length of the input.
func TestGreedyInputStaysWithinItsBudget(t *testing.T) { family.CheckBudgets(t) }

// TestRecordsWithoutAnEndAreNotReadFromStreams: a record without an end would take the bytes that follow
// it in a stream.
func TestRecordsWithoutAnEndAreNotReadFromStreams(t *testing.T) {
	family.CheckNoEnd(t, make([]byte, 100))
}

// FuzzRecord decodes any input as any record; wiretest.Family.Check holds the rules.
func FuzzRecord(f *testing.F) {
	seedRecords(f, func(r wire.Record, b []byte) { f.Add(family.Kind(f, r), b) })
	f.Fuzz(func(t *testing.T, kind byte, b []byte) {
		family.Check(t, family.New[int(kind)%len(family.New)], b)
	})
}
