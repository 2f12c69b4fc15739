package lines

import (
	"errors"

	"bellwether/internal/claim"
	"bellwether/wire"
)

// planLeave removes what the claim has put on the server: the bid, and LEADER
// with it where it names the bid. What cannot be known is found out first.
func (l *Line) planLeave() {
	switch {
	case l.watched != "":
		l.planUnwatch()
	case l.own.Name == "" && (l.doubtful || len(l.probes) > 0):
		l.planJoin()
	case l.own.Name == "":
		l.finish(nil)
	case l.lingers():
	case l.pub.stage == doubted:
		l.ask(stepRead, claim.Op{Kind: claim.OpGet, Path: l.cfg.Leader})
	case l.pub.stage == published:
		bid := l.path(l.own.Name)
		l.ask(stepResign, claim.Op{Kind: claim.OpMulti, Path: bid, Ops: []claim.Op{
			{Kind: claim.OpCheck, Path: bid, Version: claim.AnyVersion},
			{Kind: claim.OpDelete, Path: l.cfg.Leader, Version: l.pub.version},
			{Kind: claim.OpDelete, Path: bid, Version: claim.AnyVersion},
		}})
	default:
		l.ask(stepDelete, claim.Op{Kind: claim.OpDelete, Path: l.path(l.own.Name), Version: claim.AnyVersion})
	}
}

// lingers: the term is over, and what was done in it may go on until the deadline
// of the lease; so long the bid keeps others out.
func (l *Line) lingers() bool {
	return l.phase == Leaving && l.led && !l.freed && !l.cfg.Loose && l.lease.Left(l.now) > 0
}

// tookResign reads the outcome of the multi: a missing bid means that it, or
// an earlier try whose reply was lost, is through. A LEADER that is not ours
// any more is left alone.
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

// finish is the end: the bid is gone, or err says why it stays behind.
func (l *Line) finish(err error) {
	if l.own.Name != "" || err != nil {
		l.tell(Left{l.own.Name, l.path(l.own.Name), err})
	}
	l.phase, l.out, l.asked, l.watched, l.stays = Done, nil, nothing, "", err
}
