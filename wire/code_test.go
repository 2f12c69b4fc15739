package wire

import (
	"errors"
	"fmt"
	"testing"
)

// TestCodesHaveTheirNumbers: the numbers of the protocol, each with words.
func TestCodesHaveTheirNumbers(t *testing.T) {
	numbers := map[Code]int32{
		OK: 0, ErrSystem: -1, ErrRuntimeInconsistency: -2, ErrDataInconsistency: -3, ErrConnectionLoss: -4,
		ErrMarshalling: -5, ErrUnimplemented: -6, ErrOperationTimeout: -7, ErrBadArguments: -8,
		ErrInvalidState: -9, ErrUnknownSession: -12, ErrNewConfigNoQuorum: -13, ErrReconfigInProgress: -14,
		ErrAPI: -100, ErrNoNode: -101, ErrNoAuth: -102, ErrBadVersion: -103, ErrNoChildrenForEphemerals: -108,
		ErrNodeExists: -110, ErrNotEmpty: -111, ErrSessionExpired: -112, ErrInvalidCallback: -113,
		ErrInvalidACL: -114, ErrAuthFailed: -115, ErrClosing: -116, ErrNothing: -117, ErrSessionMoved: -118,
		ErrNotReadOnly: -119, ErrEphemeralOnLocalSession: -120, ErrNoWatcher: -121, ErrRequestTimeout: -122,
		ErrReconfigDisabled: -123, ErrSessionClosedRequireAuth: -124, ErrQuotaExceeded: -125, ErrThrottledOp: -127,
	}
	if len(numbers) != len(codeNames) {
		t.Errorf("%d codes here, %d with words", len(numbers), len(codeNames))
	}
	words := map[string]Code{}
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

// TestCodesAreErrors: OK is none, and any other number is one that says it.
func TestCodesAreErrors(t *testing.T) {
	if err := OK.Err(); err != nil {
		t.Errorf("OK is the error %v", err)
	}
	if err := fmt.Errorf("get /a: %w", ErrNoNode.Err()); !errors.Is(err, ErrNoNode) || errors.Is(err, ErrNoAuth) {
		t.Errorf("%v is not %v alone", err, ErrNoNode)
	}
	if got, want := Code(-999).Err().Error(), "zookeeper error -999"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestOperationsHaveTheirNumbersAndNames: and those without a name a number.
func TestOperationsHaveTheirNumbersAndNames(t *testing.T) {
	numbers := map[string]int32{
		"notification": 0, "create": 1, "delete": 2, "exists": 3, "getData": 4, "setData": 5, "getACL": 6,
		"setACL": 7, "getChildren": 8, "sync": 9, "ping": 11, "getChildren2": 12, "check": 13, "multi": 14,
		"create2": 15, "reconfig": 16, "checkWatches": 17, "removeWatches": 18, "createContainer": 19,
		"deleteContainer": 20, "createTTL": 21, "multiRead": 22, "auth": 100, "setWatches": 101, "sasl": 102,
		"getEphemerals": 103, "getAllChildrenNumber": 104, "setWatches2": 105, "addWatch": 106, "whoAmI": 107,
		"error": -1, "createSession": -10, "closeSession": -11,
	}
	if len(numbers) != len(opNames) {
		t.Errorf("%d operations here, %d with names", len(numbers), len(opNames))
	}
	for name, number := range numbers {
		if got := OpCode(number).String(); got != name {
			t.Errorf("%d is %q, want %q", number, got, name)
		}
	}
	if got := OpCode(10).String(); got != "op 10" {
		t.Errorf("%q for an operation without a name", got)
	}
}

// TestWritesGoThroughTheLeader: exactly those that become transactions.
func TestWritesGoThroughTheLeader(t *testing.T) {
	writes := map[OpCode]bool{
		OpCreate: true, OpCreate2: true, OpCreateContainer: true, OpCreateTTL: true, OpDelete: true,
		OpSetData: true, OpSetACL: true, OpMulti: true, OpReconfig: true,
	}
	for op := OpCode(-20); op < 200; op++ {
		if op.IsWrite() != writes[op] {
			t.Errorf("%v: write %v, want %v", op, op.IsWrite(), writes[op])
		}
	}
}

// TestZxidsPrintInHex and take themselves apart.
func TestZxidsPrintInHex(t *testing.T) {
	for _, tt := range []struct {
		zxid    Zxid
		text    string
		epoch   Epoch
		counter uint32
	}{
		{0, "0x0", 0, 0},
		{0x100000001, "0x100000001", 1, 1},
		{0x1fffffffe, "0x1fffffffe", 1, 0xfffffffe},
		{MakeZxid(0x7fffffff, 0xffffffff), "0x7fffffffffffffff", 0x7fffffff, 0xffffffff},
		{-1, "0xffffffffffffffff", 0xffffffff, 0xffffffff},
	} {
		if got := tt.zxid.String(); got != tt.text {
			t.Errorf("%q, want %q", got, tt.text)
		}
		if tt.zxid.Epoch() != tt.epoch || tt.zxid.Counter() != tt.counter || MakeZxid(tt.epoch, tt.counter) != tt.zxid {
			t.Errorf("%v: epoch %d, counter %d", tt.zxid, tt.zxid.Epoch(), tt.zxid.Counter())
		}
	}
	if got, want := SessionID(-1<<56).String(), "0xff00000000000000"; got != want {
		t.Errorf("session %q, want %q", got, want)
	}
}
