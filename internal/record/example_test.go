package record_test

import (
	"fmt"

	"bellwether/internal/record"
	"bellwether/wire"
)

func ExampleDecodeTxn() {
	txn := &record.Txn{
		TxnHeader: record.TxnHeader{Session: 0x100000ed48f0000, Cxid: 1, Zxid: 0x100000002, Type: wire.OpDelete},
		Body:      &record.DeleteTxn{Path: "/a"},
	}
	again, err := record.DecodeTxn(txn.Append(nil))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(again.Zxid, again.Type, again.Body.(*record.DeleteTxn).Path)
	// Output: 0x100000002 delete /a
}
