package record

// NewSubTxnBody and the other identifiers of this file are for tests outside of the package.
var NewSubTxnBody = newSubTxnBody

// CreateTxnV0 returns t as a record of servers before 3.4, which is read and
// written without ParentCversion.
func CreateTxnV0(t CreateTxn) *CreateTxn {
	t.ParentCversion, t.noParent = -1, true
	return &t
}

const OwnerTTLMark = ownerTTL
