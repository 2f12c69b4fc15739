package wire

import (
	"reflect"
	"testing"
)

// A body fits the types for which an empty one of its kind is made, and no
// others; in a multi those that a multi may hold.
func TestFitsIsWhatCanBeReadAgain(t *testing.T) {
	var bodies []TxnBody
	for op := OpCode(-100); op < 200; op++ {
		if b := NewTxnBody(op); b != nil {
			bodies = append(bodies, b)
		}
	}
	for op := OpCode(-100); op < 200; op++ {
		for _, body := range bodies {
			same := reflect.TypeOf(NewTxnBody(op)) == reflect.TypeOf(body)
			alone := &Txn{TxnHeader: TxnHeader{Type: op}, Body: body}
			if got := alone.Fits(); got != same {
				t.Errorf("%v with %T fits: %v", op, body, got)
			}
			inside := &Txn{TxnHeader: TxnHeader{Type: OpMulti}, Body: &MultiTxn{Ops: []SubTxn{
				{Type: OpCheck, Body: &CheckTxn{}}, {Type: op, Body: body},
			}}}
			_, err := DecodeTxn(inside.Append(nil))
			if want := same && newSubTxnBody(op) != nil; inside.Fits() != want || want && err != nil {
				t.Errorf("%v with %T in a multi fits: %v, read: %v", op, body, inside.Fits(), err)
			}
		}
		bare := &Txn{TxnHeader: TxnHeader{Type: op}}
		if got := bare.Fits(); got != (op == OpCloseSession) {
			t.Errorf("%v without a body fits: %v", op, got)
		}
	}
	empty := &Txn{TxnHeader: TxnHeader{Type: OpMulti}, Body: &MultiTxn{Ops: []SubTxn{{Type: OpDelete}}}}
	if empty.Fits() {
		t.Error("an operation without a body fits")
	}
}
