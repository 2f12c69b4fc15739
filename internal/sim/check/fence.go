package check

import (
	"fmt"
	"strconv"

	"bellwether/internal/record"
	"bellwether/wire"
)

// fence checks that the tokens of successive holders grow, that the protected resource is
// used in the order of the tokens, and that it does not refuse a present holder. Only the
// order among readers does not matter. A holder whose bid an operator has deleted counts as
// none.
type fence struct {
	given     wire.Zxid // newest token of an exclusive holder
	admitted  wire.Zxid // newest token that the resource has admitted
	exclusive wire.Zxid // newest one of an exclusive holder among these
	written   wire.Zxid // newest token that was written to the guarded znode
}

func (*fence) Name() string { return "Fence" }

func (f *fence) See(o any) string {
	switch e := o.(type) {
	case TermBegan:
		if e.Exclusive && !e.Deleted {
			return grows(&f.given, e.Token, "is given to a holder")
		}
	case ResourceUsed:
		return f.used(e)
	case Committed:
		if token, ok := guardedWrite(e.Txn); ok {
			return grows(&f.written, token, "goes through the guard")
		}
	}
	return ""
}

// used checks one use of the resource.
func (f *fence) used(e ResourceUsed) string {
	switch {
	case !e.Admitted && e.Holds:
		return fmt.Sprintf("the resource refuses candidate %d, which holds token %v", e.Client, e.Token)
	case !e.Admitted:
	case e.Shared && e.Token < f.exclusive:
		return fmt.Sprintf("reader %d is admitted with token %v after %v of a writer", e.Client, e.Token, f.exclusive)
	case e.Shared:
		f.admitted = max(f.admitted, e.Token)
	default:
		f.exclusive = e.Token
		return grows(&f.admitted, e.Token, "is admitted")
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
