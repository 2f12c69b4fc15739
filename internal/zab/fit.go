package zab

import "bellwether/internal/ensemble"

// checkFit notes since when each learner could lead next. It is called at each heartbeat, so
// that a short silence or a late ACK interrupts that time.
func (l *Leader) checkFit() {
	if l.phase != serving {
		return
	}
	for _, k := range l.order {
		switch {
		case k.state != linkServing || l.whyNotSuccessor(k.server) != "":
			k.fitSince = Never
		case k.fitSince == Never:
			k.fitSince = l.now
		}
	}
}

// FitMS returns for how long a server has been able to lead next, without interruption: it
// is a native voter, has been heard from within the lease, and has acknowledged each
// proposal in time. It returns 0 if the server cannot lead next.
func (l *Leader) FitMS(id ensemble.ServerID) int64 {
	k := l.linkOf(id)
	if k == nil || k.fitSince == Never {
		return 0
	}
	return l.now - k.fitSince
}

// Writes reports whether a server has acknowledged a proposal within the last tick. That is the
// only proof that its disk works: as long as nothing is proposed, a hung disk is noticed
// nowhere.
func (l *Leader) Writes(id ensemble.ServerID) bool {
	k := l.linkOf(id)
	return k != nil && k.ackedAt != Never && l.now-k.ackedAt <= l.opt.TickMS
}
