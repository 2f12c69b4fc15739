package record_test

import (
	"testing"

	"bellwether/internal/record"
	"bellwether/internal/wiretest"
	"bellwether/wire"
)

// family is every record of the package.
var family = wiretest.Family{
	New: []func() wire.Record{
		func() wire.Record { return new(record.StatPersisted) },
		func() wire.Record { return new(record.DataNode) },
		func() wire.Record { return new(record.TxnHeader) },
		func() wire.Record { return new(record.TxnDigest) },
		func() wire.Record { return new(record.Txn) },
		func() wire.Record { return new(record.CreateTxn) },
		func() wire.Record { return new(record.CreateContainerTxn) },
		func() wire.Record { return new(record.CreateTTLTxn) },
		func() wire.Record { return new(record.DeleteTxn) },
		func() wire.Record { return new(record.SetDataTxn) },
		func() wire.Record { return new(record.SetACLTxn) },
		func() wire.Record { return new(record.CheckTxn) },
		func() wire.Record { return new(record.ErrorTxn) },
		func() wire.Record { return new(record.CreateSessionTxn) },
		func() wire.Record { return new(record.CloseSessionTxn) },
		func() wire.Record { return new(record.MultiTxn) },
		func() wire.Record { return new(record.SubTxn) },
	},
	NoEnd: []wire.Record{new(record.Txn)},
}

// TestEveryRecordIsListed: every type with a method Code is in family, and so is tested and fuzzed.
func TestEveryRecordIsListed(t *testing.T) { family.CheckListed(t) }

// TestGreedyInputStaysWithinItsBudget: input that contains many small elements, or claims to, cannot make
// a decoder allocate much more than the length of the input.
func TestGreedyInputStaysWithinItsBudget(t *testing.T) { family.CheckBudgets(t) }

// TestRecordsWithoutAnEndAreNotReadFromStreams: a record without an end would take the bytes that follow
// it in a stream.
func TestRecordsWithoutAnEndAreNotReadFromStreams(t *testing.T) {
	raw := make([]byte, 100)
	raw[31] = byte(wire.OpDelete) // the type of the transaction
	family.CheckNoEnd(t, raw)
}

// FuzzRecord decodes any input as any record; wiretest.Family.Check holds the rules.
func FuzzRecord(f *testing.F) {
	seedRecords(f, func(r wire.Record, b []byte) { f.Add(family.Kind(f, r), b) })
	f.Fuzz(func(t *testing.T, kind byte, b []byte) {
		family.Check(t, family.New[int(kind)%len(family.New)], b)
	})
}
