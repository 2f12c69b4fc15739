package claim

import (
	"errors"

	"bellwether/wire"
)

// planLeave removes what the claim has put on the server: the bid, and LEADER
// with it where it names the bid. What cannot be known is found out first.
func (e *Election) planLeave() {
	switch {
	case e.watched != "":
		e.planUnwatch()
	case e.own.Name == "" && (e.doubtful || len(e.probes) > 0):
		e.planJoin()
	case e.own.Name == "":
		e.finish(nil)
	case e.pub.stage == doubted:
		e.ask(stepRead, Op{Kind: OpGet, Path: e.cfg.Leader})
	case e.pub.stage == published:
		bid := e.path(e.own.Name)
		e.ask(stepResign, Op{Kind: OpMulti, Path: bid, Ops: []Op{
			{Kind: OpCheck, Path: bid, Version: AnyVersion},
			{Kind: OpDelete, Path: e.cfg.Leader, Version: e.pub.version},
			{Kind: OpDelete, Path: bid, Version: AnyVersion},
		}})
	default:
		e.ask(stepDelete, Op{Kind: OpDelete, Path: e.path(e.own.Name), Version: AnyVersion})
	}
}

// tookResign reads the outcome of the multi: a missing bid means that it, or
// an earlier try whose reply was lost, is through. A LEADER that is not ours
// any more is left alone.
func (e *Election) tookResign(r Result) {
	switch {
	case r.Err == nil, r.Failed == 0 && errors.Is(r.Err, wire.ErrNoNode):
		e.finish(nil)
	case r.Failed == 1:
		e.pub = publication{}
	default:
		e.finish(r.Err)
	}
}

func (e *Election) tookDelete(r Result) {
	if errors.Is(r.Err, wire.ErrNoNode) {
		r.Err = nil
	}
	e.finish(r.Err)
}

// finish is the end: the bid is gone, or err says why it stays behind.
func (e *Election) finish(err error) {
	if e.own.Name != "" || err != nil {
		e.tell(Left{e.own.Name, err})
	}
	e.phase, e.out, e.asked, e.watched = Done, nil, nothing, ""
}
