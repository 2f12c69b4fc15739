package record_test

import (
	"reflect"
	"testing"

	"bellwether/internal/record"
	"bellwether/wire"
)

// TestFitsIsWhatCanBeReadAgain: a body fits exactly those types for which NewTxnBody makes a body of its
// kind. In a multi it fits only the types that a multi may contain.
func TestFitsIsWhatCanBeReadAgain(t *testing.T) {
	var bodies []record.TxnBody
	for op := wire.OpCode(-100); op < 200; op++ {
		if b := record.NewTxnBody(op); b != nil {
			bodies = append(bodies, b)
		}
	}
	for op := wire.OpCode(-100); op < 200; op++ {
		for _, body := range bodies {
			same := reflect.TypeOf(record.NewTxnBody(op)) == reflect.TypeOf(body)
			alone := &record.Txn{TxnHeader: record.TxnHeader{Type: op}, Body: body}
			if got := alone.Fits(); got != same {
				t.Errorf("%v with %T fits: %v", op, body, got)
			}
			inside := &record.Txn{TxnHeader: record.TxnHeader{Type: wire.OpMulti}, Body: &record.MultiTxn{Ops: []record.SubTxn{
				{Type: wire.OpCheck, Body: &record.CheckTxn{}}, {Type: op, Body: body},
			}}}
			_, err := record.DecodeTxn(inside.Append(nil))
			if want := same && record.NewSubTxnBody(op) != nil; inside.Fits() != want || want && err != nil {
				t.Errorf("%v with %T in a multi fits: %v, read: %v", op, body, inside.Fits(), err)
			}
		}
		bare := &record.Txn{TxnHeader: record.TxnHeader{Type: op}}
		if got := bare.Fits(); got != (op == wire.OpCloseSession) {
			t.Errorf("%v without a body fits: %v", op, got)
		}
	}
	empty := &record.Txn{TxnHeader: record.TxnHeader{Type: wire.OpMulti}, Body: &record.MultiTxn{Ops: []record.SubTxn{{Type: wire.OpDelete}}}}
	if empty.Fits() {
		t.Error("an operation without a body fits")
	}
}
