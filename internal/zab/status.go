package zab

import (
	"bellwether/internal/ensemble"
	"bellwether/wire"
)

// LearnerStatus describes one learner, for operators.
type LearnerStatus struct {
	Link     LinkID
	Server   ensemble.ServerID
	Observer bool
	// Synced says that the learner has the leader's history. Otherwise it is being
	// synchronised.
	Synced bool
	// Native says that the learner is a native peer.
	Native  bool
	Unfit   string    // why it should not lead, as it says itself; empty if it may
	Acked   wire.Zxid // the learner has the log up to here on its disk
	HeardMS int64     // how long ago its last packet came
}

// Learners describes the learners in the order in which they connected, except those
// that have not said who they are.
func (l *Leader) Learners() []LearnerStatus {
	var out []LearnerStatus
	for _, k := range l.order {
		if k.state == linkNew {
			continue
		}
		out = append(out, LearnerStatus{
			Link: k.id, Server: k.server, Observer: k.observer, Synced: k.adopted, Native: k.native, Unfit: l.whyUnfit(k),
			Acked: k.durable, HeardMS: l.now - k.heard,
		})
	}
	return out
}
