package lines

import (
	"errors"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// planLeave removes the bid, and LEADER with it if LEADER names the bid. If it is unknown whether they
// exist, planLeave finds out first.
func (l *Line) planLeave() {
	switch {
	case l.watched != "":
		l.planUnwatch()
	case l.own.Name == "" && (l.doubtful || len(l.probes) > 0):
		l.planJoin()
	case l.own.Name == "":
		l.finish(nil)
	case l.lingers():
	case l.pub.stage == unknown:
		l.AskOne(l.tookRead, claim.Get(l.cfg.Leader))
	case l.pub.stage == published:
		bid := l.path(l.own.Name)
		l.AskOne(l.tookResign, claim.Multi(bid, claim.Check(bid),
			claim.Op{Kind: claim.OpDelete, Path: l.cfg.Leader, Version: l.pub.version}, claim.Delete(bid)))
	default:
		l.AskOne(l.tookDelete, claim.Delete(l.path(l.own.Name)))
	}
}

// lingers reports whether the bid must stay after its term has ended. The work done in the term may
// continue until the deadline of the lease, so the bid keeps other clients out until then or until Resign.
func (l *Line) lingers() bool {
	return l.phase == Leaving && l.led && !l.Leaving && !l.cfg.NoLease && l.lease.Left(l.Now) > 0
}

// tookResign processes the result of the multi. A missing bid means that this attempt, or an earlier one
// whose reply was lost, has succeeded. A LEADER that no longer names this Line's bid is left unchanged.
func (l *Line) tookResign(r claim.Result) {
	switch {
	case r.Err == nil, r.Failed == 0 && errors.Is(r.Err, wire.ErrNoNode):
		l.finish(nil)
	case r.Failed == 1:
		l.pub = publication{}
	default:
		l.finish(r.Err)
	}
}

func (l *Line) tookDelete(r claim.Result) {
	if errors.Is(r.Err, wire.ErrNoNode) {
		r.Err = nil
	}
	l.finish(r.Err)
}

// finish ends the Line. The bid is gone, or err says why it could not be removed.
func (l *Line) finish(err error) {
	if l.own.Name != "" || err != nil {
		l.Report(Left{l.own.Name, l.path(l.own.Name), err})
	}
	l.phase, l.watched, l.removeErr = Done, "", err
	l.End(claim.Succeeded, nil)
}
