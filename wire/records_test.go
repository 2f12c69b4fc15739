package wire_test

import (
	"testing"

	"bellwether/internal/wiretest"
	"bellwether/wire"
)

// family is every record of the package.
var family = wiretest.Family{
	New: []func() wire.Record{
		func() wire.Record { return new(wire.ConnectRequest) },
		func() wire.Record { return new(wire.ConnectResponse) },
		func() wire.Record { return new(wire.RequestHeader) },
		func() wire.Record { return new(wire.ReplyHeader) },
		func() wire.Record { return new(wire.CreateRequest) },
		func() wire.Record { return new(wire.CreateTTLRequest) },
		func() wire.Record { return new(wire.PathRequest) },
		func() wire.Record { return new(wire.NullPathRequest) },
		func() wire.Record { return new(wire.PathVersionRequest) },
		func() wire.Record { return new(wire.PathWatchRequest) },
		func() wire.Record { return new(wire.SetDataRequest) },
		func() wire.Record { return new(wire.SetACLRequest) },
		func() wire.Record { return new(wire.ReconfigRequest) },
		func() wire.Record { return new(wire.AuthRequest) },
		func() wire.Record { return new(wire.SASLRequest) },
		func() wire.Record { return new(wire.AddWatchRequest) },
		func() wire.Record { return new(wire.WatchesRequest) },
		func() wire.Record { return new(wire.SetWatchesRequest) },
		func() wire.Record { return new(wire.SetWatches2Request) },
		func() wire.Record { return new(wire.MultiRequest) },
		func() wire.Record { return new(wire.MultiResponse) },
		func() wire.Record { return new(wire.MultiHeader) },
		func() wire.Record { return new(wire.PathResponse) },
		func() wire.Record { return new(wire.NullPathResponse) },
		func() wire.Record { return new(wire.PathStatResponse) },
		func() wire.Record { return new(wire.StatResponse) },
		func() wire.Record { return new(wire.DataResponse) },
		func() wire.Record { return new(wire.ACLResponse) },
		func() wire.Record { return new(wire.ChildrenResponse) },
		func() wire.Record { return new(wire.ChildrenStatResponse) },
		func() wire.Record { return new(wire.EphemeralsResponse) },
		func() wire.Record { return new(wire.CountResponse) },
		func() wire.Record { return new(wire.ErrorResponse) },
		func() wire.Record { return new(wire.ClientInfo) },
		func() wire.Record { return new(wire.WhoAmIResponse) },
		func() wire.Record { return new(wire.SASLResponse) },
		func() wire.Record { return new(wire.WatcherEvent) },
		func() wire.Record { return new(wire.Stat) },
		func() wire.Record { return new(wire.ID) },
		func() wire.Record { return new(wire.ACL) },
		func() wire.Record { return new(wire.Code) },
		func() wire.Record { return new(wire.OpCode) },
		func() wire.Record { return new(wire.Zxid) },
		func() wire.Record { return new(wire.Epoch) },
		func() wire.Record { return new(wire.SessionID) },
	},
}

// TestEveryRecordIsListed: every type with a method Code is in family, and so is tested and fuzzed.
func TestEveryRecordIsListed(t *testing.T) { family.CheckListed(t) }

// TestGreedyInputStaysWithinItsBudget: input that contains many small elements, or claims to, cannot make
// a decoder allocate much more than the length of the input.
func TestGreedyInputStaysWithinItsBudget(t *testing.T) { family.CheckBudgets(t) }

// FuzzRecord decodes any input as any record; wiretest.Family.Check holds the rules.
func FuzzRecord(f *testing.F) {
	seedRecords(f, func(r wire.Record, b []byte) { f.Add(family.Kind(f, r), b) })
	f.Fuzz(func(t *testing.T, kind byte, b []byte) {
		family.Check(t, family.New[int(kind)%len(family.New)], b)
	})
}
