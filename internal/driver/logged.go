package driver

import (
	"bellwether/internal/ensemble"
	"bellwether/internal/record"
	"bellwether/internal/tree"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// Logged collects the memberships that the disk of a server contains while it is loaded:
// that of the snapshot, and those of the reconfigurations in the log.
type Logged struct{ All []*ensemble.Membership }

// Snapshot notes that the tree holds a snapshot and nothing of the log. A reconfiguration
// writes its own zxid into the text of the znode. Another text comes from a client that may
// write the znode or from a server without reconfiguration, and says nothing.
func (l *Logged) Snapshot(t *tree.Tree) {
	l.All = nil
	text, at := t.Described()
	if m, err := ensemble.Parse(text); err == nil && wire.Zxid(m.Version()) == at {
		l.All = append(l.All, m)
	}
}

// Txn notes a transaction of the log.
func (l *Logged) Txn(t *record.Txn) {
	if m := zab.MembershipOf(t); m != nil {
		l.All = append(l.All, m)
	}
}
