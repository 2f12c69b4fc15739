package record_test

import (
	"testing"

	"bellwether/internal/record"
	"bellwether/internal/wiretest"
	"bellwether/wire"
)

// FuzzTxn decodes any input as a whole transaction. A valid transaction encodes to the same bytes, unless
// parts of it are not canonical. For any other input an error says what is wrong.
func FuzzTxn(f *testing.F) {
	samplePayloads(f, func(_ string, _ logRecord, payload []byte) { f.Add(payload) })
	f.Fuzz(func(t *testing.T, b []byte) {
		var txn *record.Txn
		var err error
		wiretest.CheckAllocated(t, wiretest.AllocBudget(len(b)), func() { txn, err = record.DecodeTxn(b) })
		if (txn == nil) != (err != nil) {
			t.Fatalf("%v, error %v", txn, err)
		}
		if err != nil {
			return
		}
		again, err := record.DecodeTxn(txn.Append(nil))
		if err != nil {
			t.Fatalf("%+v does not decode again: %v", txn, err)
		}
		wiretest.EqualBytes(t, again.Append(nil), txn.Append(nil))
		family.Check(t, func() wire.Record { return new(record.Txn) }, b)
	})
}

// seedRecords yields every transaction of the sample logs.
func seedRecords(f *testing.F, add func(wire.Record, []byte)) {
	samplePayloads(f, func(_ string, _ logRecord, payload []byte) { add(new(record.Txn), payload) })
}
