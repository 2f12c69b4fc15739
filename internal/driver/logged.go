package driver

import (
	"bellwether/internal/ensemble"
	"bellwether/internal/record"
	"bellwether/internal/tree"
	"bellwether/internal/zab"
)

// Logged collects the memberships that the disk of a server contains while it is loaded:
// that of the snapshot, and those of the reconfigurations in the log.
type Logged struct{ All []*ensemble.Membership }

// Snapshot notes that the tree holds a snapshot and nothing of the log.
func (l *Logged) Snapshot(t *tree.Tree) {
	l.All = nil
	if text, _ := t.Described(); text != "" {
		l.add(text)
	}
}

// Txn notes a transaction of the log.
func (l *Logged) Txn(t *record.Txn) {
	if m := zab.MembershipOf(t); m != nil {
		l.All = append(l.All, m)
	}
}

// add adds the membership of a text. A text that cannot be read comes from a tree of a
// server without reconfiguration, and says nothing.
func (l *Logged) add(text string) {
	if m, err := ensemble.Parse(text); err == nil {
		l.All = append(l.All, m)
	}
}
