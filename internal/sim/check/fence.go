package check

import (
	"fmt"
	"strconv"

	"bellwether/internal/record"
	"bellwether/wire"
)

// fence checks that the tokens of successive holders grow, that the protected resource is
// used in the order of the tokens, and that it does not refuse a present holder.
type fence struct{ given, admitted, written wire.Zxid }

func (*fence) Name() string { return "Fence" }

func (f *fence) See(o any) string {
	switch e := o.(type) {
	case TermBegan:
		if e.Exclusive {
			return grows(&f.given, e.Token, "is given to a holder")
		}
	case ResourceUsed:
		if e.Admitted {
			return grows(&f.admitted, e.Token, "is admitted")
		}
		if e.Holds {
			return fmt.Sprintf("the resource refuses candidate %d, which holds token %v", e.Client, e.Token)
		}
	case Committed:
		if token, ok := guardedWrite(e.Txn); ok {
			return grows(&f.written, token, "goes through the guard")
		}
	}
	return ""
}

// grows records a token, which must not be smaller than the earlier ones.
func grows(last *wire.Zxid, token wire.Zxid, what string) string {
	if token < *last {
		return fmt.Sprintf("token %v %s after %v", token, what, *last)
	}
	*last = token
	return ""
}

// guardedWrite returns the token that a transaction writes to the guarded znode.
func guardedWrite(t *record.Txn) (wire.Zxid, bool) {
	m, ok := t.Body.(*record.MultiTxn)
	if !ok || m.Failed() {
		return 0, false
	}
	for _, part := range m.Ops {
		if set, ok := part.Body.(*record.SetDataTxn); ok && set.Path == GuardedPath {
			n, err := strconv.ParseInt(string(set.Data), 10, 64)
			return wire.Zxid(n), err == nil
		}
	}
	return 0, false
}
