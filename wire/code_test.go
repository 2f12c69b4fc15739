package wire_test

import (
	"errors"
	"fmt"
	"testing"

	"bellwether/wire"
)

// TestCodesHaveTheirNumbers: each code has its number in the protocol and a text.
func TestCodesHaveTheirNumbers(t *testing.T) {
	numbers := map[wire.Code]int32{
		wire.OK: 0, wire.ErrSystem: -1, wire.ErrRuntimeInconsistency: -2, wire.ErrDataInconsistency: -3, wire.ErrConnectionLoss: -4,
		wire.ErrMarshalling: -5, wire.ErrUnimplemented: -6, wire.ErrOperationTimeout: -7, wire.ErrBadArguments: -8,
		wire.ErrInvalidState: -9, wire.ErrUnknownSession: -12, wire.ErrNewConfigNoQuorum: -13, wire.ErrReconfigInProgress: -14,
		wire.ErrAPI: -100, wire.ErrNoNode: -101, wire.ErrNoAuth: -102, wire.ErrBadVersion: -103, wire.ErrNoChildrenForEphemerals: -108,
		wire.ErrNodeExists: -110, wire.ErrNotEmpty: -111, wire.ErrSessionExpired: -112, wire.ErrInvalidCallback: -113,
		wire.ErrInvalidACL: -114, wire.ErrAuthFailed: -115, wire.ErrClosing: -116, wire.ErrNothing: -117, wire.ErrSessionMoved: -118,
		wire.ErrNotReadOnly: -119, wire.ErrEphemeralOnLocalSession: -120, wire.ErrNoWatcher: -121, wire.ErrRequestTimeout: -122,
		wire.ErrReconfigDisabled: -123, wire.ErrSessionClosedRequireAuth: -124, wire.ErrQuotaExceeded: -125, wire.ErrThrottledOp: -127,
	}
	if len(numbers) != len(wire.CodeNames) {
		t.Errorf("%d codes here, %d with words", len(numbers), len(wire.CodeNames))
	}
	words := map[string]wire.Code{}
	for code, number := range numbers {
		if int32(code) != number {
			t.Errorf("%v is %d, want %d", code, int32(code), number)
		}
		if other, ok := words[code.Error()]; ok {
			t.Errorf("%d and %d are both %q", code, other, code)
		}
		words[code.Error()] = code
	}
}

// TestCodesAreErrors: OK is not an error. Any other number is an error, whose text contains the number if the
// number is unknown.
func TestCodesAreErrors(t *testing.T) {
	if err := wire.OK.Err(); err != nil {
		t.Errorf("OK is the error %v", err)
	}
	if err := fmt.Errorf("get /a: %w", wire.ErrNoNode.Err()); !errors.Is(err, wire.ErrNoNode) || errors.Is(err, wire.ErrNoAuth) {
		t.Errorf("%v is not %v alone", err, wire.ErrNoNode)
	}
	if got, want := wire.Code(-999).Err().Error(), "zookeeper error -999"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestOperationsHaveTheirNumbersAndNames also checks that operations without a name print as a number.
func TestOperationsHaveTheirNumbersAndNames(t *testing.T) {
	numbers := map[string]int32{
		"notification": 0, "create": 1, "delete": 2, "exists": 3, "getData": 4, "setData": 5, "getACL": 6,
		"setACL": 7, "getChildren": 8, "sync": 9, "ping": 11, "getChildren2": 12, "check": 13, "multi": 14,
		"create2": 15, "reconfig": 16, "checkWatches": 17, "removeWatches": 18, "createContainer": 19,
		"deleteContainer": 20, "createTTL": 21, "multiRead": 22, "auth": 100, "setWatches": 101, "sasl": 102,
		"getEphemerals": 103, "getAllChildrenNumber": 104, "setWatches2": 105, "addWatch": 106, "whoAmI": 107,
		"error": -1, "createSession": -10, "closeSession": -11,
	}
	if len(numbers) != len(wire.OpNames) {
		t.Errorf("%d operations here, %d with names", len(numbers), len(wire.OpNames))
	}
	for name, number := range numbers {
		if got := wire.OpCode(number).String(); got != name {
			t.Errorf("%d is %q, want %q", number, got, name)
		}
	}
	if got := wire.OpCode(10).String(); got != "op 10" {
		t.Errorf("%q for an operation without a name", got)
	}
}

// TestWritesGoThroughTheLeader: exactly those operations that become transactions count as writes.
func TestWritesGoThroughTheLeader(t *testing.T) {
	writes := map[wire.OpCode]bool{
		wire.OpCreate: true, wire.OpCreate2: true, wire.OpCreateContainer: true, wire.OpCreateTTL: true, wire.OpDelete: true,
		wire.OpSetData: true, wire.OpSetACL: true, wire.OpMulti: true, wire.OpReconfig: true,
	}
	for op := wire.OpCode(-20); op < 200; op++ {
		if op.IsWrite() != writes[op] {
			t.Errorf("%v: write %v, want %v", op, op.IsWrite(), writes[op])
		}
	}
}

// TestZxidsPrintInHex also checks the epoch and the counter of a zxid.
func TestZxidsPrintInHex(t *testing.T) {
	for _, tt := range []struct {
		zxid    wire.Zxid
		text    string
		epoch   wire.Epoch
		counter uint32
	}{
		{0, "0x0", 0, 0},
		{0x100000001, "0x100000001", 1, 1},
		{0x1fffffffe, "0x1fffffffe", 1, 0xfffffffe},
		{wire.MakeZxid(0x7fffffff, 0xffffffff), "0x7fffffffffffffff", 0x7fffffff, 0xffffffff},
		{-1, "0xffffffffffffffff", 0xffffffff, 0xffffffff},
	} {
		if got := tt.zxid.String(); got != tt.text {
			t.Errorf("%q, want %q", got, tt.text)
		}
		if tt.zxid.Epoch() != tt.epoch || tt.zxid.Counter() != tt.counter || wire.MakeZxid(tt.epoch, tt.counter) != tt.zxid {
			t.Errorf("%v: epoch %d, counter %d", tt.zxid, tt.zxid.Epoch(), tt.zxid.Counter())
		}
	}
	if got, want := wire.SessionID(-1<<56).String(), "0xff00000000000000"; got != want {
		t.Errorf("session %q, want %q", got, want)
	}
}
